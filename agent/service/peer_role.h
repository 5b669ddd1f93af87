// SPDX-License-Identifier: Apache-2.0
// Who a peer is, by its certificate: the fleet's CA signs two roles, told by the subject's OU
// ("syncline operator", "syncline node", with O=Syncline). The chain was verified by TLS before.
// Pure.
#ifndef SYNCLINE_AGENT_SERVICE_PEER_ROLE_H_
#define SYNCLINE_AGENT_SERVICE_PEER_ROLE_H_

#include <string>
#include <string_view>

namespace syncline::agent {

enum class PeerRole { kNone, kNode, kOperator };

struct Peer {
  PeerRole role = PeerRole::kNone;
  std::string name;  // the subject's common name, for the log
};

// kNone for what is no certificate, has another organization, or names no role or more than one.
Peer PeerOfCertificate(std::string_view pem);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SERVICE_PEER_ROLE_H_
