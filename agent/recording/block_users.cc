// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/block_users.h"

#include "agent/recording/block_complaints.h"

namespace syncline::agent {

absl::Status BlockUsers::Lock(const std::string& holder, const std::vector<uint32_t>& users) {
  Unlock();
  holder_ = holder;
  for (const uint32_t uid : users) {
    const absl::Status locked = LockUser(uid);
    if (locked.ok() || uid != places_.own_uid) continue;
    // Root records other users though somebody has taken the place of its own directory.
    if (uid == 0 && !absl::IsFailedPrecondition(locked)) continue;
    Unlock();
    return absl::FailedPreconditionError(locked.message());  // whatever it is: mend the set-up
  }
  return absl::OkStatus();
}

void BlockUsers::LockLeftover(const std::vector<uint32_t>& users, const Leftover& leftover) {
  Unlock();
  for (const uint32_t uid : users) {
    if (leftover.agent_lives) break;  // it has the locks
    // Whoever has come in the meantime counts on his own: the same number is another recording.
    // What hinders us otherwise leaves no gate open.
    if (!absl::IsFailedPrecondition(LockUser(uid))) refused_.erase(uid);
  }
  for (const uint32_t uid : leftover.others) {
    locks_.erase(uid);
    refused_[uid] = absl::FailedPreconditionError("The recording had nothing of this user");
  }
}

absl::Status BlockUsers::LockUser(uint32_t uid) {
  auto fd = LockDirectory(places_.Of(uid), uid, holder_.value_or("an agent that was killed"));
  if (!fd.ok()) {
    refused_[uid] = fd.status();
    return fd.status();
  }
  locks_.emplace(uid, *std::move(fd));
  return absl::OkStatus();
}

void BlockUsers::Unlock() {
  locks_.clear();
  refused_.clear();
  left_out_.clear();
  restricted_ = false;
  holder_.reset();
}

std::vector<uint32_t> BlockUsers::Restrict(const std::set<uint32_t>& left_out) {
  left_out_ = left_out;
  restricted_ = true;
  for (const uint32_t uid : left_out) locks_.erase(uid);  // an agent of his own may have them
  std::vector<uint32_t> users;
  for (const auto& [uid, lock_file] : locks_) users.push_back(uid);
  return users;
}

bool BlockUsers::IsRefused(uint32_t uid) const {
  return refused_.count(uid) != 0 || left_out_.count(uid) != 0;
}

std::vector<uint32_t> BlockUsers::Refused() const {
  std::set<uint32_t> users = left_out_;
  for (const auto& [uid, why] : refused_) users.insert(uid);
  return {users.begin(), users.end()};
}

bool BlockUsers::Serves(uint32_t uid) {
  if (IsRefused(uid)) return false;
  if (!holder_.has_value()) return true;  // CloseLeftover has asked for the locks
  if (locks_.count(uid) != 0) return true;
  return !restricted_ && LockUser(uid).ok();
}

void BlockUsers::RefuseLatecomer(uint32_t uid) {
  refused_[uid] = absl::AbortedError(
      "the first of them began after this recording was prepared, and because another user is "
      "left out LTTng records only the users who were there then");
}

bool BlockUsers::Skips(uint32_t uid, std::vector<v1::Complaint>* complaints) const {
  if (left_out_.count(uid) != 0) return true;  // whoever left him out has said why
  const auto refused = refused_.find(uid);
  if (refused == refused_.end()) return false;
  complaints->push_back(SkippedComplaint(uid, places_.Of(uid), refused->second));
  return true;
}

}  // namespace syncline::agent
