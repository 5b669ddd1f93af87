// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/look.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/parallel.h"
#include "common/status.h"
#include "coordinator/merge/no_step.h"
#include "coordinator/merge/why.h"

namespace syncline::cli {
namespace {

// The agents are done within five seconds.
constexpr fleet::AgentClient::Timeout kStacksTimeout{15'000};
// Behind a window that itself shows who moved, the two looks may be closer together.
constexpr int64_t kBetweenLooksMs = 1'000;
// What is read in a quarter of a second.
constexpr uint64_t kReadEventsMax = 200'000;
constexpr uint64_t kReadBytesMax = uint64_t{32} << 20;

// Processes that Syncline does not record are no part of a recording.
void KeepOurs(stacks::NodeLook* look) {
  if (!look->answer.ok()) return;
  auto* const processes = look->answer->mutable_processes();
  processes->erase(std::remove_if(processes->begin(), processes->end(),
                                  [](const v1::ProcessStacks& one) {
                                    return !one.process().has_control_block();
                                  }),
                   processes->end());
}

bool IsQuicklyRead(const recording::Recording& recording) {
  uint64_t events = 0;
  uint64_t bytes = 0;
  for (const recording::NodeRecord& node : recording.nodes) {
    if (node.state == recording::NodeState::kLeft) return false;
    bytes += node.fetched.bytes;
    for (const recording::ProcessRecord& process : node.processes) events += process.events;
  }
  return events <= kReadEventsMax && bytes <= kReadBytesMax;
}

}  // namespace

std::vector<stacks::NodeLook> LookAll(const Context& context,
                                      const std::vector<fleet::Member>& members,
                                      const v1::StacksRequest& request) {
  std::vector<stacks::NodeLook> looks;
  for (const fleet::Member& member : members) {
    looks.push_back({member.node.name, absl::UnknownError("not asked")});
  }
  InParallel(members.size(), kThreadForEach, [&](size_t i) {
    looks[i].asked_ns = context.clock->RawNs();
    looks[i].answer = members[i].client->Stacks(request, kStacksTimeout);
    looks[i].answered_ns = context.clock->RawNs();
    if (absl::IsUnimplemented(looks[i].answer.status())) {
      looks[i].answer = absl::FailedPreconditionError(
          "the agent is older than `syncline stacks`: install this version there");
    }
  });
  return looks;
}

absl::StatusOr<std::optional<stacks::KeptLook>> LookAndKeep(const Context& context,
                                                            const analysis::why::NoStep& no_step,
                                                            const std::filesystem::path& run) {
  PrintNote(context, "note", "", "no step ends: asking where the ranks stand", "");
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<fleet::Member> members, ConnectTargets(context));
  v1::StacksRequest request;
  request.set_between_looks_ms(kBetweenLooksMs);
  stacks::KeptLook look{no_step, LookAll(context, members, request)};
  for (stacks::NodeLook& node : look.looks) KeepOurs(&node);
  if (no_step.steps > 0 && stacks::JudgeStandstill(look).moves) return std::nullopt;
  const absl::Status kept = stacks::WriteKeptLook(run, look);
  if (!kept.ok()) {
    PrintNote(context, "warning", "",
              absl::StrCat("where the ranks stand cannot be kept: ", kept.message()), "");
  }
  return look;
}

std::optional<stacks::KeptLook> LookBehindRecord(const Context& context,
                                                 const recording::Recording& recording,
                                                 const std::filesystem::path& run) {
  if (!merge::MayHaveNoStep(recording) || !IsQuicklyRead(recording)) return std::nullopt;
  merge::WhyOptions options;
  options.input.inputs = {run.string()};
  const auto no_step = merge::FindNoStep(options);
  if (!no_step.ok() || !no_step->has_value()) return std::nullopt;
  const stacks::KeptLook unseen{**no_step, {}};
  if (const stacks::Standstill found = stacks::JudgeStandstill(unseen); found.moves) {
    // One process alone may well be no training.
    if (unseen.no_step.ranks.size() > 1) {
      PrintNote(context, "note", "", stacks::StandstillSentence(unseen, found), "");
    }
    return std::nullopt;
  }
  auto look = LookAndKeep(context, **no_step, run);
  if (look.ok()) return *std::move(look);
  PrintNote(context, "warning", "",
            absl::StrCat("where the ranks stand is not known: ", look.status().message()), "");
  return std::nullopt;
}

}  // namespace syncline::cli
