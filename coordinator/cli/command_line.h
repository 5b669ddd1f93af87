// SPDX-License-Identifier: Apache-2.0
// The command line as a whole: global options, commands, help, and wrong usage said like any other
// error ("syncline: ...").
#ifndef SYNCLINE_COORDINATOR_CLI_COMMAND_LINE_H_
#define SYNCLINE_COORDINATOR_CLI_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <vector>

#include "coordinator/cli/context.h"

namespace syncline::cli {

// Reads the words behind the program's name into `context`; its action is then what is to be done.
// An exit code when there is nothing to be done: help was printed, or the usage is wrong. The
// action refers to `context`, which outlives it.
std::optional<int> ParseCommandLine(const std::vector<std::string>& words, Context* context);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_COMMAND_LINE_H_
