// SPDX-License-Identifier: Apache-2.0
// Control blocks and recording.json joined.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/process_part.h"
#include "common/text.h"
#include "control_block/block_file.h"
#include "coordinator/merge/inputs.h"

namespace syncline::merge {
namespace {

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

timeline::KnownProcess OfRecord(const recording::ProcessRecord& record) {
  timeline::KnownProcess process;
  process.key.pid_namespace = static_cast<uint64_t>(record.pid_namespace_inode);
  process.key.pid = record.own_pid;
  process.key.start_ticks = record.start_ticks;
  process.uid = record.uid;
  process.command_line = record.command_line;
  process.job = record.job;
  process.incarnation = record.incarnation;
  process.role = record.role;
  process.part = record.part;
  process.rank = record.rank;
  process.world_size = record.world_size;
  process.became_another_program = record.became_another_program;
  if (record.ended_monotonic_ns != 0) process.ended_ns = record.ended_monotonic_ns;
  if (!record.has_control_block) return process;
  if (record.lost != 0) process.counted_lost = record.lost;  // also before it was switched on
  if (record.on_monotonic_ns == 0) return process;
  process.on_ns = record.on_monotonic_ns;
  if (record.off_monotonic_ns != 0) process.off_ns = record.off_monotonic_ns;
  process.counted_events = record.events;
  process.counted_lost = record.lost;
  process.cost = recording::CostOf(record);
  return process;
}

// What the block says and the record does not: keys, threads, and whatever is unknown so far.
void AddBlock(const control_block::Block& block, timeline::KnownProcess* process) {
  process->process_key = block.facts.process_key;
  process->uid = block.facts.uid;
  if (process->command_line.empty()) process->command_line = block.facts.command_line;
  if (process->job.empty()) process->job = block.facts.job;
  if (process->incarnation.empty()) process->incarnation = block.facts.incarnation;
  if (process->role.empty()) process->role = block.facts.role;
  // That of a launcher's environment is no rank of the job.
  if (process->rank < 0 && process->part != kPartLauncher) process->rank = block.facts.rank;
  if (process->world_size < 0) process->world_size = block.facts.world_size;
  // Only if the block is still about this recording.
  const auto on_ns = static_cast<int64_t>(block.gate.on_monotonic_ns);
  if (process->on_ns == on_ns && block.gate.asked_monotonic_ns != 0) {
    process->asked_ns = static_cast<int64_t>(block.gate.asked_monotonic_ns);
    process->lost_before_on = block.gate.lost_before_on;
  }
  for (const control_block::ThreadSlot& slot : block.threads) {
    process->threads.push_back({slot.thread_key, slot.tid, slot.name});
  }
}

void AddNames(const control_block::NameTable& names, timeline::KnownProcess* process) {
  for (uint32_t id = 1; id <= names.size(); ++id) {
    process->names[id] = {static_cast<uint8_t>(names.Kind(id)), std::string(names.Text(id))};
  }
}

// The processes whose control blocks are in `directory`, by their files' names; what else is there
// is nobody's.
std::set<control_block::BlockId> IdsIn(const std::filesystem::path& directory) {
  std::set<control_block::BlockId> ids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    // A table of names without its block is worth reading, too.
    const std::filesystem::path block = entry->path().filename().replace_extension(".block");
    if (const auto id = control_block::ParseBlockFileName(block.string())) ids.insert(*id);
  }
  return ids;
}

// From 0, as PyTorch and ranks do: where one loader was made once these are PyTorch's own numbers.
void NumberWorkers(std::vector<timeline::KnownProcess>* processes) {
  using Rank = std::tuple<std::string, std::string, int32_t>;
  std::map<Rank, std::vector<timeline::KnownProcess*>> workers;
  for (timeline::KnownProcess& one : *processes) {
    if (one.part != kPartLoaderWorker) continue;
    workers[{one.job, one.incarnation, one.rank}].push_back(&one);
  }
  for (auto& [rank, of_rank] : workers) {
    std::sort(of_rank.begin(), of_rank.end(), [](const auto* a, const auto* b) {
      return std::tie(a->key.start_ticks, a->key.pid) < std::tie(b->key.start_ticks, b->key.pid);
    });
    for (size_t i = 0; i < of_rank.size(); ++i) of_rank[i]->worker_id = static_cast<int32_t>(i);
  }
}

// Joins one node's processes, as recording.json has them, with the files in processes/.
class ProcessReader {
 public:
  ProcessReader(std::filesystem::path directory, const recording::NodeRecord& node)
      : directory_(std::move(directory)), node_(node) {}

  KnownProcesses Read() {
    std::set<control_block::BlockId> ids = IdsIn(directory_);
    for (const recording::ProcessRecord& record : node_.processes) {
      result_.processes.push_back(OfRecord(record));
      result_.processes.back().came_too_late = recording::CameTooLate(node_, record);
      if (const auto* said = recording::NotRecorded(node_, record)) {
        result_.processes.back().why_missed = said->what;
      }
      // Of a node that is not here, the node is the loss.
      result_.processes.back().expected = recording::MissedWindow(node_, record) &&
                                          node_.state != recording::NodeState::kMissing &&
                                          node_.state != recording::NodeState::kLeft;
      // Fetched whole once: what is not there now was lost since. One that recorded nothing may
      // have ended, and taken its block along, before there was anything to fetch.
      const bool recorded = record.on_monotonic_ns != 0 || record.lost != 0;
      if (!record.has_control_block || !node_.fetched.complete || !recorded) continue;
      ids.insert(
          {static_cast<uint64_t>(record.pid_namespace_inode), record.own_pid, record.start_ticks});
    }
    for (const control_block::BlockId& id : ids) ReadOne(id);
    NumberWorkers(&result_.processes);
    return std::move(result_);
  }

 private:
  void ReadOne(const control_block::BlockId& id) {
    timeline::KnownProcess* process = Find(id);
    const std::optional<control_block::Block> block = ReadBlock(id);
    if (block.has_value()) AddBlock(*block, process);
    const std::string file = control_block::NamesFileName(id);
    const auto bytes = ReadFile(directory_ / file);
    if (!bytes.ok()) return Complain(file, StdView(bytes.status().message()));
    const auto names = control_block::ParseNames(BytesOf(*bytes));
    if (!names.ok()) return Complain(file, StdView(names.status().message()));
    AddNames(*names, process);
    if (block.has_value() && names->valid_bytes() < block->names_bytes) {
      Complain(file, absl::StrCat("damaged or cut: ", names->size(), " of ", block->names_count,
                                  " names are left; of the others there are those that the trace "
                                  "announces"));
    } else if (names->damaged()) {
      Complain(file, absl::StrCat("damaged: ", names->size(), " names are left"));
    }
  }

  std::optional<control_block::Block> ReadBlock(const control_block::BlockId& id) {
    const std::string file = control_block::BlockFileName(id);
    const auto fail = [&](std::string_view why) {
      Complain(file, why);
      return std::nullopt;
    };
    const auto bytes = ReadFile(directory_ / file);
    if (!bytes.ok()) return fail(StdView(bytes.status().message()));
    auto block = control_block::ParseBlock(BytesOf(*bytes));
    if (!block.ok()) return fail(StdView(block.status().message()));
    if (block->facts.id != id) {
      return fail("it describes another process: " + control_block::BlockFileName(block->facts.id));
    }
    if (bytes->size() < block->bytes_expected) {
      Complain(file, absl::StrCat("cut: ", bytes->size(), " of ", block->bytes_expected,
                                  " bytes are left; threads may have no name"));
    }
    return *std::move(block);
  }

  timeline::KnownProcess* Find(const control_block::BlockId& id) {
    for (timeline::KnownProcess& known : result_.processes) {
      if (known.key.pid_namespace == id.pid_namespace && known.key.pid == id.pid &&
          known.key.start_ticks == id.start_ticks) {
        return &known;
      }
    }
    timeline::KnownProcess& made = result_.processes.emplace_back();
    made.key.pid_namespace = id.pid_namespace;
    made.key.pid = id.pid;
    made.key.start_ticks = id.start_ticks;
    return &made;
  }

  void Complain(const std::string& file, std::string_view why) {
    result_.complaints.push_back(
        absl::StrCat(node_.name, ": control block ", file, ": ", AbslView(why)));
  }

  std::filesystem::path directory_;
  const recording::NodeRecord& node_;
  KnownProcesses result_;
};

}  // namespace

KnownProcesses ReadProcesses(const recording::Layout& layout, const recording::NodeRecord& node) {
  return ProcessReader(layout.Processes(node.name), node).Read();
}

}  // namespace syncline::merge
