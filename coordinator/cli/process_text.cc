// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/process_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/process_part.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {
namespace {

constexpr size_t kPidsShown = 4;

std::string CommandText(const v1::ProcessInfo& process) {
  constexpr size_t kCommandMax = 100;
  const std::string& command = process.command_line();
  return command.size() > kCommandMax ? command.substr(0, kCommandMax) + "..." : command;
}

}  // namespace

bool SeesMessages(const v1::ProcessInfo& process) {
  return std::find(process.sources().begin(), process.sources().end(), "net") !=
         process.sources().end();
}

std::string ProcessText(const v1::ProcessInfo& process) {
  constexpr const char* kDot = " · ";
  // Not visible to the agent: what it calls itself.
  std::string text = process.pid() != 0
                         ? absl::StrCat("pid ", process.pid())
                         : absl::StrCat("pid ", process.own_pid(), " in its own namespace");
  if (!process.role().empty()) absl::StrAppend(&text, kDot, process.role());
  const std::string part = PartText({process.part(), process.rank()});
  if (!part.empty()) absl::StrAppend(&text, kDot, part);
  if (process.rank() >= 0 && process.world_size() > 0 && part.substr(0, 4) == kPartRank) {
    absl::StrAppend(&text, " of ", process.world_size());
  }
  if (!process.job().empty()) absl::StrAppend(&text, kDot, "job ", process.job());
  if (process.sources_size() > 0) {
    absl::StrAppend(&text, kDot, absl::StrJoin(process.sources(), "+"));
    if (!SeesMessages(process)) absl::StrAppend(&text, kDot, "messages not recorded");
  } else if (!process.has_control_block()) {
    const bool has_profiler = process.tf_profiler().port_number() != 0;
    absl::StrAppend(&text, kDot, has_profiler ? "operators only" : "not traceable");
  }
  if (process.has_tf_profiler()) {
    const v1::TfProfiler& profiler = process.tf_profiler();
    absl::StrAppend(&text, kDot,
                    profiler.port_number() == 0 ? "no profiler port" : "profiler port ");
    if (profiler.port_number() != 0) absl::StrAppend(&text, profiler.port_number());
    if (!profiler.task().empty()) {
      absl::StrAppend(&text, " (", absl::StrReplaceAll(profiler.task(), {{"/replica:0", ""}}), ")");
    }
    if (profiler.runs_collectives()) absl::StrAppend(&text, ", used only on request");
  }
  if (process.stopped()) absl::StrAppend(&text, kDot, "stopped");
  absl::StrAppend(&text, kDot, CommandText(process));
  return Printable(text);
}

std::vector<std::string> ProcessTexts(const std::vector<v1::ProcessInfo>& processes) {
  struct Described {
    const v1::ProcessInfo* info;
    std::string part, job;
    int32_t rank;
    std::string name;
  };
  std::vector<Described> described;
  for (const v1::ProcessInfo& one : processes) {
    described.push_back(
        {&one, one.part(), one.job() + "\n" + one.incarnation(), one.rank(), one.command_line()});
  }
  std::vector<std::string> texts;
  for (const std::vector<const Described*>& row : Folded(described)) {
    const v1::ProcessInfo& first = *row.front()->info;
    if (row.size() == 1) {
      texts.push_back(ProcessText(first));
      continue;
    }
    std::vector<int32_t> pids;
    for (const Described* one : row) pids.push_back(one->info->pid());
    const size_t shown = std::min(pids.size(), kPidsShown);
    const bool workers = first.part() == kPartLoaderWorker;
    std::string text = absl::StrCat(
        workers ? WorkersText(row.size(), first.rank())
                : ChildrenText(row.size(), PartText({first.part(), first.rank()})),
        " · pids ",
        absl::StrJoin(pids.begin(), pids.begin() + static_cast<ptrdiff_t>(shown), ", "));
    if (shown < pids.size()) absl::StrAppend(&text, " and ", pids.size() - shown, " more");
    if (!first.job().empty()) absl::StrAppend(&text, " · job ", first.job());
    const auto silent = std::count_if(row.begin(), row.end(), [](const Described* one) {
      return one->info->sources_size() > 0 && !SeesMessages(*one->info);
    });
    const auto stopped = std::count_if(row.begin(), row.end(),
                                       [](const Described* one) { return one->info->stopped(); });
    const auto untraced = std::count_if(row.begin(), row.end(), [](const Described* one) {
      return !one->info->has_control_block();
    });
    if (untraced > 0) absl::StrAppend(&text, " · ", untraced, " not traceable");
    if (silent > 0) absl::StrAppend(&text, " · messages of ", silent, " not recorded");
    if (stopped > 0) absl::StrAppend(&text, " · ", stopped, " stopped");
    if (!workers) absl::StrAppend(&text, " · ", CommandText(first));
    texts.push_back(Printable(text));
  }
  return texts;
}

const char* StateName(v1::RecordingState state) {
  switch (state) {
    case v1::PREPARING:
      return "preparing";
    case v1::READY:
      return "ready";
    case v1::RECORDING:
      return "recording";
    case v1::STOPPING:
      return "stopping";
    case v1::STOPPED:
      return "stopped";
    case v1::FAILED:
      return "failed";
    case v1::RELEASED:
      return "released";
    default:
      return "unknown";
  }
}

}  // namespace syncline::cli
