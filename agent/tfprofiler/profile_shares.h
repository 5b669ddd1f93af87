// SPDX-License-Identifier: Apache-2.0
// What the users of a node may cost here, so that one who runs many look-alikes of TensorFlow keeps
// nobody else's workers from being asked. Pure.
#ifndef SYNCLINE_AGENT_TFPROFILER_PROFILE_SHARES_H_
#define SYNCLINE_AGENT_TFPROFILER_PROFILE_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace syncline::agent {

// More than a node's job has (one for each GPU, or for a few CPUs).
inline constexpr size_t kProfilesOfUserMax = 64;
// Of ports: a worker listens on one or two, some of its libraries on a few more.
inline constexpr size_t kPortsOfUserMax = 256;

// How many bytes each worker's answer may have, by its user: users share `bytes` alike, and each
// user's workers their user's part. 0: one too many of its user, not to be asked.
std::vector<uint64_t> ShareBytes(const std::vector<uint32_t>& users, uint64_t bytes);

// The order in which to ask, as indices: each user's first one, then each user's second one, and so
// on; no more than `of_user_max` of a user.
std::vector<size_t> InTurns(const std::vector<uint32_t>& users, size_t of_user_max);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_PROFILE_SHARES_H_
