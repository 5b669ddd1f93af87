// Whether LTTng's session daemon knows the programs that are about to be recorded. It drops a
// program that did not answer within its limit (LTTNG_APP_SOCKET_TIMEOUT, 5 s), and one that was
// there before the daemon asks for it only every 5 s: such a program comes back by itself, and a
// recording that begins before that has nothing of it.
#ifndef SYNCLINE_AGENT_RECORDING_REGISTRATION_H_
#define SYNCLINE_AGENT_RECORDING_REGISTRATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "agent/probe/clock.h"
#include "agent/recording/gate.h"
#include "agent/session/lttng_control.h"

namespace syncline::agent {

// Waits a few seconds until the daemon knows each process of `gate` that has a control block and is
// not stopped; returns a warning for each that lives on unknown. Errors: what LTTng said.
absl::StatusOr<std::vector<v1::Complaint>> AwaitRegistration(LttngControl& lttng, Gate& gate,
                                                             Clock& clock);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_REGISTRATION_H_
