// SPDX-License-Identifier: Apache-2.0
// syncline stacks: where every rank of a job stands now, and who stands behind.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "common/text.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/look.h"
#include "coordinator/cli/stacks_text.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/record/translate.h"
#include "coordinator/stacks/stacks_json.h"

namespace syncline::cli {
namespace {

struct StacksOptions {
  bool json = false;
  bool all = false;
};

void PrintNotes(const Context& context, const stacks::NodeLook& look) {
  if (!look.answer.ok()) {
    PrintNote(context, "error", look.node, StdView(look.answer.status().message()), "");
    return;
  }
  for (const v1::Complaint& complaint : look.answer->complaints()) {
    const recording::ComplaintRecord record = record::FromComplaint(complaint);
    PrintNote(context, record.severity, look.node, record.what, record.fix);
  }
}

int Stacks(const Context& context, const StacksOptions& options) {
  const absl::StatusOr<std::vector<fleet::Member>> members = ConnectTargets(context);
  if (!members.ok()) return Fail(context, members.status());
  const std::vector<stacks::NodeLook> looks = LookAll(context, *members, {});
  const std::vector<stacks::GroupVerdict> verdicts = stacks::Judge(looks);
  if (options.json) {
    *context.out << stacks::StacksJson(looks, verdicts);
  } else {
    *context.out << StacksText(looks, verdicts,
                               {.width = TerminalWidth().value_or(80), .all = options.all});
  }
  size_t with_stacks = 0;
  // A rank that has ended, or is nowhere, has no stacks.
  bool whole = std::all_of(verdicts.begin(), verdicts.end(), [](const stacks::GroupVerdict& one) {
    return one.absent.nowhere.empty() && !one.absent.Any(stacks::AbsentState::kEnded);
  });
  size_t processes = 0;
  for (const stacks::NodeLook& look : looks) {
    PrintNotes(context, look);
    whole = whole && look.answer.ok();
    if (!look.answer.ok()) continue;
    for (const v1::ProcessStacks& process : look.answer->processes()) {
      ++processes;
      const bool has_stacks = process.source() != v1::ProcessStacks::KERNEL;
      with_stacks += has_stacks ? 1 : 0;
      whole = whole && has_stacks;
    }
  }
  const bool any_answered = std::any_of(
      looks.begin(), looks.end(), [](const stacks::NodeLook& look) { return look.answer.ok(); });
  if (processes == 0 && any_answered) {
    PrintNote(context, "error", "", "there is no program to look at",
              "start the job with `syncline run`: its processes then answer themselves");
  }
  if (with_stacks == 0) return kFailed;
  return whole ? kDone : kIncomplete;
}

}  // namespace

void RegisterStacks(CLI::App* app, Context* context) {
  CLI::App* const stacks = app->add_subcommand(
      "stacks", "Show where every rank of a job stands now, and who stands behind");
  const auto options = std::make_shared<StacksOptions>();
  stacks->add_flag("--all", options->all,
                   "Also the stacks of a rank's further processes (workers of its loader)");
  stacks->add_flag("--json", options->json, "All of it as JSON");
  stacks->footer(
      "For a job that stands still. Each process that was started with `syncline run` and has "
      "imported\n"
      "PyTorch says where its Python threads are, and the last collective of each of its process "
      "groups.\n"
      "It is asked twice, two seconds apart. BEHIND names the ranks that have not entered a "
      "collective\n"
      "which others have; it compares counts, never clocks. DEAD names ranks whose processes have "
      "ended,\n"
      "STOPPED those that are stopped, MISSING those of which no process is known on any node that "
      "answered.\n"
      "UNDECIDED says why it is not known.\n"
      "Of a process that does not answer, py-spy gives the Python stacks, where it is installed "
      "and\n"
      "allowed; otherwise there is what the kernel says of its threads. Native stacks are not "
      "shown.\n"
      "Nothing is recorded, nothing is stopped, and no source code, no variable is read.\n"
      "Exit code 0: all ranks have Python stacks; 3: some have not (also one that is dead or "
      "missing), or a\n"
      "node did not answer; 1: none has.\n\n"
      "Examples:\n"
      "  syncline stacks                                # this machine\n"
      "  syncline stacks --hosts hosts.txt --tls-dir tls\n"
      "  syncline stacks --json | jq -r '.groups[] | select(.verdict == \"behind\").sentence'");
  stacks->callback([=] { context->action = [=] { return Stacks(*context, *options); }; });
}

}  // namespace syncline::cli
