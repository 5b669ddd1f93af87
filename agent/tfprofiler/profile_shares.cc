// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/profile_shares.h"

#include <algorithm>
#include <map>

namespace syncline::agent {

std::vector<uint64_t> ShareBytes(const std::vector<uint32_t>& users, uint64_t bytes) {
  std::map<uint32_t, size_t> counts;
  for (const uint32_t user : users) ++counts[user];
  std::map<uint32_t, size_t> asked;
  std::vector<uint64_t> shares;
  for (const uint32_t user : users) {
    const bool too_many = ++asked[user] > kProfilesOfUserMax;
    const uint64_t alike = std::min(counts[user], kProfilesOfUserMax);
    shares.push_back(too_many ? 0 : bytes / counts.size() / alike);
  }
  return shares;
}

std::vector<size_t> InTurns(const std::vector<uint32_t>& users, size_t of_user_max) {
  std::map<uint32_t, size_t> seen;
  std::vector<std::vector<size_t>> turns;
  for (size_t i = 0; i < users.size(); ++i) {
    const size_t turn = seen[users[i]]++;
    if (turn >= of_user_max) continue;
    if (turn >= turns.size()) turns.resize(turn + 1);
    turns[turn].push_back(i);
  }
  std::vector<size_t> order;
  for (const std::vector<size_t>& turn : turns) order.insert(order.end(), turn.begin(), turn.end());
  return order;
}

}  // namespace syncline::agent
