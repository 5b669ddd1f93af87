// SPDX-License-Identifier: Apache-2.0
// A process and a recording's state, in a line for people.
#ifndef SYNCLINE_COORDINATOR_CLI_PROCESS_TEXT_H_
#define SYNCLINE_COORDINATOR_CLI_PROCESS_TEXT_H_

#include <string>
#include <vector>

#include "syncline/v1/agent.pb.h"

namespace syncline::cli {

// Whether a recording would hold what the process sends and receives.
bool SeesMessages(const v1::ProcessInfo& process);

// "pid 26 · worker · rank 1 of 2 · job 17 · itt+net · python train.py".
std::string ProcessText(const v1::ProcessInfo& process);

// Of each process, in their order; all of a rank's loader workers are one line, "2 loader workers
// of rank 0 · pids 36, 43 · job 17", and so are its other children of one command.
std::vector<std::string> ProcessTexts(const std::vector<v1::ProcessInfo>& processes);

// "ready", "recording", ...
const char* StateName(v1::RecordingState state);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_PROCESS_TEXT_H_
