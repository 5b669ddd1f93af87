// SPDX-License-Identifier: Apache-2.0
// Whose processes are in a recording: the users whose runtime directories are locked for it, those
// who are refused, with why, and those who are left out. Thread-compatible.
#ifndef SYNCLINE_AGENT_RECORDING_BLOCK_USERS_H_
#define SYNCLINE_AGENT_RECORDING_BLOCK_USERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/recording/gate.h"
#include "agent/recording/user_directories.h"
#include "common/files.h"

namespace syncline::agent {

class BlockUsers {
 public:
  explicit BlockUsers(RuntimePlaces places) : places_(std::move(places)) {}

  // Gate::Lock, of those of `users` who can be had, in place of all that was before.
  absl::Status Lock(const std::string& holder, const std::vector<uint32_t>& users);
  // The same for what Gate::CloseLeftover closes.
  void LockLeftover(const std::vector<uint32_t>& users, const Leftover& leftover);
  void Unlock();
  std::vector<uint32_t> Restrict(const std::set<uint32_t>& left_out);

  // Whether the user's processes are this recording's: those of one who has come since are, and he
  // is locked now, until Restrict.
  bool Serves(uint32_t uid);
  // Refused or left out.
  bool IsRefused(uint32_t uid) const;
  // Who is, in order.
  std::vector<uint32_t> Refused() const;
  // Why; whoever left a user out has said that himself.
  const std::map<uint32_t, absl::Status>& reasons() const { return refused_; }
  // One who has come since Restrict, and has processes.
  void RefuseLatecomer(uint32_t uid);
  // Whether the user is refused, of which it complains, or left out.
  bool Skips(uint32_t uid, std::vector<v1::Complaint>* complaints) const;

 private:
  // Takes the user's directory for `holder_`, or remembers why not in `refused_`.
  absl::Status LockUser(uint32_t uid);

  const RuntimePlaces places_;
  std::optional<std::string> holder_;         // of the locks
  std::map<uint32_t, Descriptor> locks_;      // by user
  std::map<uint32_t, absl::Status> refused_;  // and why
  std::set<uint32_t> left_out_;               // by Restrict
  bool restricted_ = false;                   // nobody comes to the locks any more
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_BLOCK_USERS_H_
