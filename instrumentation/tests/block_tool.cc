// SPDX-License-Identifier: Apache-2.0
// block_tool: looks at control blocks and switches gates, for tests.
//   block_tool set DIR GENERATION     every block in DIR; prints how many
//   block_tool leave-out DIR US BITS  tells every process what it is not to record
//   block_tool ask DIR NUMBER         asks every process for its stacks
//   block_tool show DIR               one line for each block: "pid state events lost cost_ns names
//                                     refused cost_lo_ns cost_hi_ns recording job rank role"
//   block_tool names NAMES_FILE       one line for each name: "id kind text"
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "common/files.h"
#include "control_block/cost.h"
#include "control_block/live_block.h"

namespace {

using syncline::control_block::Block;
using syncline::control_block::BlockId;
using syncline::control_block::ListBlocks;
using syncline::control_block::LiveBlock;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "block_tool: %s\n", status.ToString().c_str());
  return 1;
}

int Show(const Block& block) {
  const auto& facts = block.facts;
  const syncline::DurationEstimate cost = syncline::control_block::CostOf(block.gate);
  std::printf(
      "%d %d %llu %llu %llu %u %u %lld %lld recording=%u off=%d job=%s rank=%d role=%s %s\n",
      facts.id.pid, static_cast<int>(facts.state),
      static_cast<unsigned long long>(block.gate.events_since_on),
      static_cast<unsigned long long>(block.gate.lost_since_on),
      static_cast<unsigned long long>(block.gate.cost_ns_since_on), block.names_count,
      block.names_refused, static_cast<long long>(cost.lo_ns), static_cast<long long>(cost.hi_ns),
      block.gate.recording_generation, block.gate.off_monotonic_ns != 0 ? 1 : 0, facts.job.c_str(),
      facts.rank, facts.role.c_str(), facts.command_line.c_str());
  return 0;
}

using Change = std::function<absl::Status(LiveBlock*)>;

uint32_t Number(const char* text) { return static_cast<uint32_t>(std::strtoul(text, nullptr, 10)); }

// Shows every block, or changes it.
int ForEach(const std::string& directory, const Change& change) {
  const auto ids = ListBlocks(directory, ::geteuid());
  if (!ids.ok()) return Fail(ids.status());
  for (const BlockId& id : *ids) {
    auto block = LiveBlock::Open(directory, id, ::geteuid());
    if (!block.ok()) return Fail(block.status());
    if (change != nullptr) {
      const absl::Status changed = change(&*block);
      if (!changed.ok()) return Fail(changed);
    } else {
      const auto read = block->Read();
      if (!read.ok()) return Fail(read.status());
      Show(*read);
    }
  }
  if (change != nullptr) std::printf("%zu\n", ids->size());
  return 0;
}

int Names(const std::string& path) {
  const auto bytes = syncline::ReadFile(path);
  if (!bytes.ok()) return Fail(bytes.status());
  const auto names = syncline::control_block::ParseNames(
      {reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()});
  if (!names.ok()) return Fail(names.status());
  for (uint32_t id = 1; id <= names->size(); ++id) {
    std::printf("%u %d %s\n", id, static_cast<int>(names->Kind(id)),
                std::string(names->Text(id)).c_str());
  }
  return names->damaged() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const auto number = [&](int at) { return at < argc ? Number(argv[at]) : 0; };
  if (command == "set" && argc == 4) {
    return ForEach(argv[2], [&](LiveBlock* block) { return block->SetGeneration(number(3)); });
  }
  if (command == "leave-out" && argc == 5) {
    return ForEach(argv[2],
                   [&](LiveBlock* block) { return block->SetLeftOut(number(3), number(4)); });
  }
  if (command == "ask" && argc == 4) {
    return ForEach(argv[2], [&](LiveBlock* block) { return block->AskForStacks(number(3)); });
  }
  if (command == "show" && argc == 3) return ForEach(argv[2], nullptr);
  if (command == "names" && argc == 3) return Names(argv[2]);
  std::fprintf(stderr,
               "usage: block_tool set DIR GENERATION | leave-out DIR US BITS | ask DIR NUMBER | "
               "show DIR | names F\n");
  return 2;
}
