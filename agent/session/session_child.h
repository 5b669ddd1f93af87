// SPDX-License-Identifier: Apache-2.0
// The child process that owns liblttng-ctl: reads calls from a socket, performs them, replies. Ends
// when the other end closes (the agent died or replaced it). One thread.
#ifndef SYNCLINE_AGENT_SESSION_SESSION_CHILD_H_
#define SYNCLINE_AGENT_SESSION_SESSION_CHILD_H_

#include "agent/session/lttng_control.h"

namespace syncline::agent {

// The exit code of the child process.
int RunSessionChild(int socket_fd, LttngControl& control);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SESSION_SESSION_CHILD_H_
