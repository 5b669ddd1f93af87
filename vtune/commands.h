// SPDX-License-Identifier: Apache-2.0
// VTune's command lines, as Intel's user guide documents them (docs/vtune.md: each line with its
// source). Pure.
#ifndef SYNCLINE_VTUNE_COMMANDS_H_
#define SYNCLINE_VTUNE_COMMANDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vtune/analyses.h"

namespace syncline::vtune {

// Attaches to process `pid`, paused, and keeps the result in the new directory `result`. Symbols
// are looked up later, not on the node: -finalization-mode=deferred.
std::vector<std::string> CollectCommand(const std::string& program, const Request& request,
                                        int32_t pid, const std::string& result);

// "resume" or "stop", for the collection into `result`.
std::vector<std::string> ControlCommand(const std::string& program, const std::string& verb,
                                        const std::string& result);

std::vector<std::string> VersionCommand(const std::string& program);

// A part of a result: times since its collection began.
struct Part {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// Commands for people, quoted for a shell.
std::string FinalizeText(const std::string& result);
std::string HotspotsText(const std::string& result);
// The processor time in that part: "timeline" is the only report of VTune's for which the user
// guide documents a begin and an end.
std::string TimelineText(const std::string& result, const Part& part);
std::string ImportText(const std::string& csv, const std::string& result);

// A command line as a shell reads it.
std::string ShellText(std::span<const std::string> arguments);

}  // namespace syncline::vtune

#endif  // SYNCLINE_VTUNE_COMMANDS_H_
