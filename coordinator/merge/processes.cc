// Control blocks and recording.json joined.
#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/files.h"
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
  process.rank = record.rank;
  process.world_size = record.world_size;
  if (!record.has_control_block) return process;
  if (record.lost != 0) process.counted_lost = record.lost;  // also before it was switched on
  if (record.on_monotonic_ns == 0) return process;
  process.on_ns = record.on_monotonic_ns;
  if (record.off_monotonic_ns != 0) process.off_ns = record.off_monotonic_ns;
  process.counted_events = record.events;
  process.counted_lost = record.lost;
  if (record.cost_valid) process.cost_ns = record.cost_ns;
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
  if (process->rank < 0) process->rank = block.facts.rank;
  if (process->world_size < 0) process->world_size = block.facts.world_size;
  for (const control_block::ThreadSlot& slot : block.threads) {
    process->threads.push_back({slot.thread_key, slot.tid, slot.name});
  }
}

void AddNames(const control_block::NameTable& names, timeline::KnownProcess* process) {
  for (uint32_t id = 1; id <= names.size(); ++id) {
    process->names[id] = {static_cast<uint8_t>(names.Kind(id)), std::string(names.Text(id))};
  }
}

std::vector<std::filesystem::path> BlockFiles(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".block") files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

KnownProcesses ReadProcesses(const recording::Layout& layout, const recording::NodeRecord& node) {
  KnownProcesses result;
  for (const recording::ProcessRecord& record : node.processes) {
    result.processes.push_back(OfRecord(record));
    // Of a node that is not here, the node is the loss.
    result.processes.back().expected = record.present_at_prepare &&
                                       node.state != recording::NodeState::kMissing &&
                                       node.state != recording::NodeState::kLeft;
  }
  for (const std::filesystem::path& file : BlockFiles(layout.Processes(node.name))) {
    const auto complain = [&](const absl::Status& status) {
      result.complaints.push_back(absl::StrCat(node.name, ": control block ",
                                               file.filename().string(), ": ", status.message()));
    };
    const auto bytes = ReadFile(file);
    if (!bytes.ok()) {
      complain(bytes.status());
      continue;
    }
    const auto block = control_block::ParseBlock(BytesOf(*bytes));
    if (!block.ok()) {
      complain(block.status());
      continue;
    }
    const control_block::BlockId& id = block->facts.id;
    auto process = std::find_if(
        result.processes.begin(), result.processes.end(), [&](const timeline::KnownProcess& known) {
          return known.key.pid_namespace == id.pid_namespace && known.key.pid == id.pid &&
                 known.key.start_ticks == id.start_ticks;
        });
    if (process == result.processes.end()) {
      timeline::KnownProcess made;
      made.key.pid_namespace = id.pid_namespace;
      made.key.pid = id.pid;
      made.key.start_ticks = id.start_ticks;
      result.processes.push_back(std::move(made));
      process = result.processes.end() - 1;
    }
    AddBlock(*block, &*process);
    const auto names_bytes =
        ReadFile(layout.Processes(node.name) / control_block::NamesFileName(id));
    if (!names_bytes.ok()) {
      complain(names_bytes.status());
      continue;
    }
    const auto names = control_block::ParseNames(BytesOf(*names_bytes));
    if (!names.ok()) {
      complain(names.status());
      continue;
    }
    AddNames(*names, &*process);
  }
  return result;
}

}  // namespace syncline::merge
