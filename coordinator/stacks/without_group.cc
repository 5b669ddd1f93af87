// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/without_group.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace syncline::stacks {
namespace {

constexpr int32_t kWorldMax = 1 << 16;

struct Job {
  std::vector<Member> members;
  int32_t world_size = -1;
  bool has_group = false;
  bool differs = false;  // its ranks do not agree on how many they are
};

// Whether its main thread makes a process group: it waits for the others there.
bool MakesGroup(const v1::ProcessStacks& process) {
  for (const v1::PythonThreads& threads : process.threads()) {
    if (!threads.main()) continue;
    for (const v1::StackFrame& frame : threads.frames()) {
      const bool makes =
          frame.function() == "init_process_group" || frame.function() == "new_group";
      if (makes && absl::EndsWith(frame.file(), "/distributed_c10d.py")) return true;
    }
  }
  return false;
}

std::map<JobKey, Job> JobsOf(const std::vector<NodeLook>& looks) {
  std::map<JobKey, Job> jobs;
  for (const NodeLook& look : looks) {
    if (!look.answer.ok()) continue;
    for (const v1::ProcessStacks& process : look.answer->processes()) {
      const v1::ProcessInfo& info = process.process();
      if (process.source() != v1::ProcessStacks::HOOK || !IsRankItself(info)) continue;
      if (HasEndedMeanwhile(info, *look.answer)) continue;
      Job& job = jobs[JobOf(info)];
      job.has_group = job.has_group || !process.groups().empty();
      job.differs = job.differs || (!job.members.empty() && job.world_size != info.world_size());
      job.world_size = info.world_size();
      job.members.push_back(
          {info.rank(), &look.node, &process, nullptr, -1, AgeNs(info, *look.answer)});
    }
  }
  return jobs;
}

GroupKind KindOf(const AbsentRanks& absent) {
  if (std::any_of(absent.known.begin(), absent.known.end(), EndedBadly)) return GroupKind::kDead;
  if (absent.Any(AbsentState::kStopped)) return GroupKind::kStopped;
  return absent.nowhere.empty() ? GroupKind::kUndecided : GroupKind::kMissing;
}

// nullopt: there is nothing to say.
std::optional<GroupVerdict> JudgeJob(const JobKey& key, Job* job,
                                     const std::vector<NodeLook>& looks) {
  if (job->has_group || job->differs || job->world_size < 2 || job->world_size > kWorldMax) {
    return std::nullopt;
  }
  const auto waiting =
      std::find_if(job->members.begin(), job->members.end(),
                   [](const Member& member) { return MakesGroup(*member.process); });
  if (waiting == job->members.end()) return std::nullopt;
  const Member shown = *waiting;
  GroupVerdict verdict;
  verdict.job = key.job;
  verdict.size = static_cast<size_t>(job->world_size);
  std::sort(job->members.begin(), job->members.end(),
            [](const Member& a, const Member& b) { return a.rank < b.rank; });
  verdict.members = job->members;
  std::set<int32_t> here;
  for (const Member& member : verdict.members) here.insert(member.rank);
  for (int32_t rank = 0; rank < job->world_size; ++rank) {
    if (here.count(rank) == 0) verdict.unknown.push_back(rank);
  }
  if (verdict.unknown.empty()) return std::nullopt;
  verdict.absent = FindAbsent(
      {.job = key, .ranks = &verdict.unknown, .members = &verdict.members, .group = nullptr},
      looks);
  verdict.kind = KindOf(verdict.absent);
  for (const AbsentState state :
       {AbsentState::kEnded, AbsentState::kStopped, AbsentState::kSilent}) {
    AppendSentence(AbsentText(verdict.absent, state), &verdict.sentence);
  }
  AppendSentence(NowhereText(verdict.absent), &verdict.sentence);
  AppendSentence(absl::StrCat("No rank that answered has a process group yet, and rank ",
                              shown.rank, " waits for the others where one is made"),
                 &verdict.sentence);
  AppendSentence(Where(shown), &verdict.sentence);
  return verdict;
}

}  // namespace

std::vector<GroupVerdict> JudgeWithoutGroups(const std::vector<NodeLook>& looks) {
  std::vector<GroupVerdict> verdicts;
  for (auto& [key, job] : JobsOf(looks)) {
    auto verdict = JudgeJob(key, &job, looks);
    if (verdict.has_value()) verdicts.push_back(*std::move(verdict));
  }
  return verdicts;
}

}  // namespace syncline::stacks
