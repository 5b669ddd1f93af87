// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/process_part.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/launcher.h"
#include "common/process_part.h"

namespace syncline::agent {
namespace {

std::string FirstThread(const control_block::Block& block, const ProcessEntry* entry) {
  if (entry != nullptr) return entry->name;
  for (const control_block::ThreadSlot& thread : block.threads) {
    if (thread.tid == block.facts.id.pid) return thread.name;
  }
  return "";
}

bool IsOfOneRank(const v1::ProcessInfo& a, const v1::ProcessInfo& b) {
  return a.rank() == b.rank() && a.job() == b.job() && a.incarnation() == b.incarnation();
}

// Whether the rank that it has was another process when it began. A rank that ended and was started
// again is the older one.
bool BeganBesideItsRank(const v1::ProcessInfo& info, std::span<const v1::ProcessInfo> infos) {
  if (info.job().empty()) return false;  // ranks of two jobs may have one number
  return std::any_of(infos.begin(), infos.end(), [&](const v1::ProcessInfo& other) {
    return other.pid() != 0 && other.part() == kPartRank && IsOfOneRank(other, info) &&
           other.start_ticks() < info.start_ticks();
  });
}

}  // namespace

std::string PartByThread(std::string_view first_thread) {
  if (first_thread == "pt_data_worker") return kPartLoaderWorker;  // _utils/worker.py
  return first_thread == "pt_elastic" ? kPartLauncher : "";        // distributed/run.py
}

std::string OwnPart(const control_block::Block& block, const ProcessEntry* entry) {
  std::string part = PartByThread(FirstThread(block, entry));
  if (!part.empty()) return part;
  // Blanks inside of an argument are lost in the block; a launcher is known by its first words.
  const std::vector<std::string> words =
      absl::StrSplit(block.facts.command_line, ' ', absl::SkipEmpty());
  const std::string launcher = LauncherIn(words);
  // GNU parallel runs as `perl .../parallel`; a program of that name may well be a rank.
  return launcher.empty() || launcher == "parallel" ? "" : kPartLauncher;
}

void NameRanksAndChildren(std::span<const ProcessEntry> entries, std::span<v1::ProcessInfo> infos) {
  constexpr int kGenerationsMax = 64;
  std::map<int32_t, int32_t> parents;
  for (const ProcessEntry& entry : entries) parents[entry.pid] = entry.parent_pid;
  std::map<int32_t, const v1::ProcessInfo*> by_pid;
  for (const v1::ProcessInfo& info : infos) {
    if (info.pid() != 0) by_pid[info.pid()] = &info;
  }
  for (v1::ProcessInfo& info : infos) {
    if (info.pid() == 0 || info.rank() < 0 || !info.part().empty()) continue;
    bool child = false;
    auto parent = parents.find(info.pid());
    for (int i = 0; i < kGenerationsMax && parent != parents.end() && !child; ++i) {
      const auto found = by_pid.find(parent->second);
      if (found != by_pid.end()) {
        if (found->second->part() == kPartLauncher) break;  // above it begins another job
        child = IsOfOneRank(*found->second, info);
      }
      parent = parents.find(parent->second);
    }
    info.set_part(child ? kPartChild : kPartRank);
  }
  for (v1::ProcessInfo& info : infos) {
    if (info.pid() != 0 || info.rank() < 0 || !info.part().empty()) continue;
    if (BeganBesideItsRank(info, infos)) info.set_part(kPartChild);
  }
}

}  // namespace syncline::agent
