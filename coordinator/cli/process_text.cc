// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/process_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {

bool SeesMessages(const v1::ProcessInfo& process) {
  return std::find(process.sources().begin(), process.sources().end(), "net") !=
         process.sources().end();
}

std::string ProcessText(const v1::ProcessInfo& process) {
  constexpr size_t kCommandMax = 100;
  constexpr const char* kDot = " · ";
  std::string text = absl::StrCat("pid ", process.pid());
  if (!process.role().empty()) absl::StrAppend(&text, kDot, process.role());
  if (process.rank() >= 0) absl::StrAppend(&text, kDot, "rank ", process.rank());
  if (process.rank() >= 0 && process.world_size() > 0) {
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
  std::string command = process.command_line();
  if (command.size() > kCommandMax) command = command.substr(0, kCommandMax) + "...";
  absl::StrAppend(&text, kDot, command);
  return Printable(text);
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
