// SPDX-License-Identifier: Apache-2.0
#include "agent/node/shared_ranks.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace syncline::agent {
namespace {

// One process with a rank that `syncline run --rank` planted.
struct Planted {
  int32_t pid = 0;
  std::string launcher_rank;  // what its launcher says; empty: nothing
};

std::string LauncherRank(const std::filesystem::path& proc, int32_t pid) {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const auto value = EnvironmentOf(proc, pid, name);
    if (value.has_value() && !value->empty()) return *value;
  }
  return "";
}

// Whether some ancestor of the process is among `pids`.
bool Descends(int32_t pid, const std::set<int32_t>& pids,
              const std::map<int32_t, int32_t>& parents) {
  constexpr int kGenerationsMax = 64;
  for (int i = 0; i < kGenerationsMax; ++i) {
    const auto parent = parents.find(pid);
    if (parent == parents.end() || parent->second == 0) return false;
    pid = parent->second;
    if (pids.count(pid) != 0) return true;
  }
  return false;
}

bool AreDifferent(const std::vector<Planted>& group, const std::map<int32_t, int32_t>& parents) {
  std::set<std::string> launcher_ranks;
  std::set<int32_t> pids;
  for (const Planted& one : group) {
    launcher_ranks.insert(one.launcher_rank);
    pids.insert(one.pid);
  }
  if (launcher_ranks.size() > 1) return true;
  int roots = 0;
  for (const int32_t pid : pids) roots += Descends(pid, pids, parents) ? 0 : 1;
  return roots > 1;
}

}  // namespace

std::vector<v1::Complaint> ComplainOfSharedRanks(const std::filesystem::path& proc,
                                                 std::span<const v1::ProcessInfo> infos,
                                                 std::span<const ProcessEntry> entries) {
  std::map<int32_t, int32_t> parents;
  for (const ProcessEntry& entry : entries) parents[entry.pid] = entry.parent_pid;
  std::map<std::tuple<uint32_t, std::string, std::string, int32_t>, std::vector<Planted>> groups;
  for (const v1::ProcessInfo& info : infos) {
    if (info.rank() < 0 || info.pid() == 0) continue;
    const auto planted = EnvironmentOf(proc, info.pid(), "SYNCLINE_RANK");
    if (planted != absl::StrCat(info.rank())) continue;
    groups[{info.uid(), info.job(), info.incarnation(), info.rank()}].push_back(
        {info.pid(), LauncherRank(proc, info.pid())});
  }
  std::vector<v1::Complaint> complaints;
  for (const auto& [key, group] : groups) {
    if (group.size() < 2 || !AreDifferent(group, parents)) continue;
    const std::string& job = std::get<1>(key);
    const std::string pids = absl::StrJoin(
        group, ", ", [](std::string* out, const Planted& one) { absl::StrAppend(out, one.pid); });
    v1::Complaint& complaint = complaints.emplace_back();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_pid(group.front().pid);
    complaint.set_what(
        absl::StrCat("Processes ", pids, job.empty() ? "" : absl::StrCat(" of job ", job),
                     " are all rank ", std::get<3>(key), ", by `syncline run --rank`"));
    complaint.set_fix(
        "omit --rank in front of a launcher: each process then gets its own rank from the "
        "launcher; give different jobs different names with --job");
  }
  return complaints;
}

}  // namespace syncline::agent
