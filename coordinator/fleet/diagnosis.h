// SPDX-License-Identifier: Apache-2.0
// Why an agent cannot be reached. gRPC reports a bad certificate like a closed port (UNAVAILABLE),
// so after such a failure this makes one plain connection and TLS handshake of its own and says
// what went wrong: unknown host, closed port, no answer, expired or not-yet-valid certificate
// (whose clock?), another fleet's authority, wrong role, wrong name, no TLS there at all.
//
// Thread-safety: functions without shared state. Blocking, bounded by the timeout (name resolution
// by the resolver's own).
#ifndef SYNCLINE_COORDINATOR_FLEET_DIAGNOSIS_H_
#define SYNCLINE_COORDINATOR_FLEET_DIAGNOSIS_H_

#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/certs/certs.h"
#include "coordinator/hosts/hosts.h"

namespace syncline::fleet {

struct DiagnosisOptions {
  std::chrono::milliseconds timeout{3000};
  int64_t now_unix_s = 0;  // this machine's wall clock: to tell which of two clocks is wrong
};

// Connects to `node` and shakes hands as `credentials`. OK when nothing is wrong with the
// connection. Otherwise Unavailable (nobody answers), Unauthenticated (certificates) or NotFound
// (unknown host), with the cause and what to do.
absl::Status Diagnose(const hosts::Node& node, const certs::Credentials& credentials,
                      const DiagnosisOptions& options);

// The handshake alone, on a connected socket, which stays the caller's.
absl::Status DiagnoseHandshake(int socket, const hosts::Node& node,
                               const certs::Credentials& credentials,
                               const DiagnosisOptions& options);

}  // namespace syncline::fleet

#endif  // SYNCLINE_COORDINATOR_FLEET_DIAGNOSIS_H_
