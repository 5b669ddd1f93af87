// SPDX-License-Identifier: Apache-2.0
#include "vtune/commands.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace syncline::vtune {
namespace {

constexpr double kNsPerSecond = 1e9;

std::string Quoted(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || std::string_view("-_./=:,+%@").find(c) != std::string::npos;
  });
  return plain ? text : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::vector<std::string> CollectCommand(const std::string& program, const Request& request,
                                        int32_t pid, const std::string& result) {
  std::vector<std::string> command = {program, "-collect", request.analysis};
  for (const std::string& knob : KnobsOf(request)) {
    command.emplace_back("-knob");
    command.push_back(knob);
  }
  command.emplace_back("-start-paused");
  if (request.data_limit_mb != 0) {
    command.push_back(absl::StrCat("-data-limit=", request.data_limit_mb));
  }
  if (request.ring_buffer_s != 0) {
    command.push_back(absl::StrCat("-ring-buffer=", request.ring_buffer_s));
  }
  command.emplace_back("-finalization-mode=deferred");
  command.push_back(absl::StrCat("-target-pid=", pid));
  command.emplace_back("-result-dir");
  command.push_back(result);
  return command;
}

std::vector<std::string> ControlCommand(const std::string& program, const std::string& verb,
                                        const std::string& result) {
  return {program, "-command", verb, "-result-dir", result};
}

std::vector<std::string> VersionCommand(const std::string& program) {
  return {program, "-version"};
}

std::string ShellText(std::span<const std::string> arguments) {
  return absl::StrJoin(arguments, " ", [](std::string* out, const std::string& argument) {
    out->append(Quoted(argument));
  });
}

std::string FinalizeText(const std::string& result) {
  return absl::StrCat("vtune -finalize -result-dir ", Quoted(result));
}

std::string HotspotsText(const std::string& result) {
  return absl::StrCat("vtune -report hotspots -result-dir ", Quoted(result),
                      " -group-by thread,function");
}

std::string TimelineText(const std::string& result, const Part& part) {
  return absl::StrFormat(
      "vtune -report timeline -result-dir %s -report-knob column-by=CPUTime "
      "-report-knob start=%.6f -report-knob end=%.6f",
      Quoted(result), static_cast<double>(part.begin_ns) / kNsPerSecond,
      static_cast<double>(part.end_ns) / kNsPerSecond);
}

std::string ImportText(const std::string& csv, const std::string& result) {
  return absl::StrCat("vtune -import ", Quoted(csv), " -result-dir ", Quoted(result));
}

}  // namespace syncline::vtune
