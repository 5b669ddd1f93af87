// SPDX-License-Identifier: Apache-2.0
#include "agent/session/session_child.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "agent/session/session_protocol.h"

namespace syncline::agent {

int RunSessionChild(int socket_fd, LttngControl& control) {
  std::string packet;
  for (;;) {
    packet.resize(kSessionPacketBytesMax);
    const ssize_t length = ::recv(socket_fd, packet.data(), packet.size(), 0);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return 0;
    packet.resize(static_cast<size_t>(length));
    SessionReply reply;
    if (auto call = DecodeCall(packet); call.ok()) {
      reply = Perform(control, *call);
    } else {
      reply.status = call.status();
    }
    const std::string answer = EncodeReply(reply);
    if (::send(socket_fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return 1;
  }
}

}  // namespace syncline::agent
