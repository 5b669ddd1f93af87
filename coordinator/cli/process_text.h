// SPDX-License-Identifier: Apache-2.0
// A process and a recording's state, in a line for people.
#ifndef SYNCLINE_COORDINATOR_CLI_PROCESS_TEXT_H_
#define SYNCLINE_COORDINATOR_CLI_PROCESS_TEXT_H_

#include <string>

#include "syncline/v1/agent.pb.h"

namespace syncline::cli {

// Whether a recording would hold what the process sends and receives.
bool SeesMessages(const v1::ProcessInfo& process);

// "pid 26 · worker · rank 1 of 2 · job 17 · itt+net · python train.py".
std::string ProcessText(const v1::ProcessInfo& process);

// "ready", "recording", ...
const char* StateName(v1::RecordingState state);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_PROCESS_TEXT_H_
