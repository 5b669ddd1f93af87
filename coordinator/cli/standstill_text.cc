// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/standstill_text.h"

#include <algorithm>
#include <set>
#include <vector>

#include "coordinator/cli/stacks_text.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {
namespace {

constexpr size_t kShownMax = 4;

using Processes = std::set<const v1::ProcessStacks*>;

bool HasHook(const v1::ProcessStacks& process) {
  const auto& sources = process.process().sources();
  return std::find(sources.begin(), sources.end(), "python") != sources.end();
}

void Add(const v1::ProcessStacks* process, Processes* shown) {
  if (shown->size() < kShownMax) shown->insert(process);
}

// Whose stacks say something: those who are behind, else some of each group, and those who did not
// answer themselves.
Processes WhoIsShown(const stacks::KeptLook& look, const stacks::Standstill& standstill) {
  Processes shown;
  for (const stacks::GroupVerdict& group : standstill.groups) {
    if (group.kind == stacks::GroupKind::kMoves) continue;
    for (const stacks::Member& member : group.members) {
      const bool behind =
          std::find(group.behind.begin(), group.behind.end(), member.rank) != group.behind.end();
      // Who waits for a rank that is dead is worth as much as who is behind.
      const bool waits =
          group.kind == stacks::GroupKind::kDead || group.kind == stacks::GroupKind::kStopped;
      if (behind || waits || group.behind.empty()) Add(member.process, &shown);
    }
  }
  for (const stacks::NodeLook& node : look.looks) {
    if (!node.answer.ok()) continue;
    for (const v1::ProcessStacks& process : node.answer->processes()) {
      const bool silent = process.source() != v1::ProcessStacks::HOOK;
      if (HasHook(process) && (silent || standstill.groups.empty())) Add(&process, &shown);
    }
  }
  return shown;
}

}  // namespace

std::string StandstillText(const stacks::KeptLook& look, const StandstillOptions& options) {
  const stacks::Standstill standstill = stacks::JudgeStandstill(look);
  std::string text = LabelledText(standstill.moves ? "NO STEP" : "STILL",
                                  stacks::StandstillSentence(look, standstill), options.width);
  text += VerdictsText(standstill.groups, options.width);
  for (const stacks::NodeLook& node : look.looks) {
    if (node.answer.ok()) continue;
    text += LabelledText("UNKNOWN",
                         "node " + node.node + " did not say where its processes stand: " +
                             std::string(node.answer.status().message()),
                         options.width);
  }
  if (!options.stacks) return text;
  const Processes shown = WhoIsShown(look, standstill);
  return text +
         ProcessesText(
             look.looks,
             {.width = options.width, .all = true, .only = &shown, .main_threads_only = true});
}

}  // namespace syncline::cli
