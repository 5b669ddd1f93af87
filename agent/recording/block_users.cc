// SPDX-License-Identifier: Apache-2.0
// Whose processes are in BlockGate's recording: users who are locked, refused or left out.
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "agent/recording/block_complaints.h"
#include "agent/recording/block_gate.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {

std::filesystem::path BlockGate::DirectoryOf(uint32_t uid) const {
  if (uid == options_.own_uid && !options_.configured_directory.empty()) {
    return options_.configured_directory;
  }
  return options_.shared_memory / absl::StrCat("syncline-", uid);
}

std::vector<uint32_t> BlockGate::RefusedUsers() {
  const std::lock_guard lock(mutex_);
  std::set<uint32_t> users = left_out_;
  for (const auto& [uid, why] : refused_) users.insert(uid);
  return {users.begin(), users.end()};
}

std::vector<uint32_t> BlockGate::Users() {
  return FindUsers(options_.shared_memory, options_.own_uid).users;
}

std::vector<std::pair<uint32_t, std::filesystem::path>> BlockGate::RuntimeDirectories() {
  const std::vector<uint32_t> users = Users();
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint32_t, std::filesystem::path>> directories;
  for (const uint32_t uid : users) {
    if (!IsRefused(uid)) directories.emplace_back(uid, DirectoryOf(uid));
  }
  return directories;
}

absl::Status BlockGate::Lock(const std::string& holder) {
  const std::vector<uint32_t> users = Users();
  const std::filesystem::path own = DirectoryOf(options_.own_uid);
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(own.parent_path(), 0700));
  ::mkdir(own.c_str(), 0700);  // what is there instead, LockDirectory says
  const std::lock_guard lock(mutex_);
  ForgetLocks();
  holder_ = holder;
  for (const uint32_t uid : users) {
    const absl::Status locked = LockUser(uid);
    if (locked.ok() || uid != options_.own_uid) continue;
    // Root records other users though somebody has taken the place of its own directory.
    if (uid == 0 && !absl::IsFailedPrecondition(locked)) continue;
    ForgetLocks();
    return absl::FailedPreconditionError(locked.message());  // whatever it is: mend the set-up
  }
  return absl::OkStatus();
}

absl::Status BlockGate::LockUser(uint32_t uid) {
  auto fd = LockDirectory(DirectoryOf(uid), uid, holder_.value_or("an agent that was killed"));
  if (!fd.ok()) {
    refused_[uid] = fd.status();
    return fd.status();
  }
  locks_.emplace(uid, *std::move(fd));
  return absl::OkStatus();
}

void BlockGate::Unlock() {
  const std::lock_guard lock(mutex_);
  ForgetLocks();
}

void BlockGate::ForgetLocks() {
  locks_.clear();
  refused_.clear();
  left_out_.clear();
  restricted_ = false;
  holder_.reset();
}

std::vector<uint32_t> BlockGate::Restrict(const std::set<uint32_t>& left_out) {
  const std::lock_guard lock(mutex_);
  left_out_ = left_out;
  restricted_ = true;
  for (const uint32_t uid : left_out) locks_.erase(uid);  // an agent of his own may have them
  std::vector<uint32_t> users;
  for (const auto& [uid, lock_file] : locks_) users.push_back(uid);
  return users;
}

bool BlockGate::IsRefused(uint32_t uid) const {
  return refused_.count(uid) != 0 || left_out_.count(uid) != 0;
}

bool BlockGate::Serves(uint32_t uid) {
  if (IsRefused(uid)) return false;
  if (!holder_.has_value()) return true;  // CloseLeftover has asked for the locks
  if (locks_.count(uid) != 0) return true;
  if (!restricted_) return LockUser(uid).ok();
  if (!BlocksOf(uid).empty()) {
    refused_[uid] = absl::AbortedError(
        "the first of them began after this recording was prepared, and because another user is "
        "left out LTTng records only the users who were there then");
  }
  return false;
}

bool BlockGate::Skips(uint32_t uid, std::vector<v1::Complaint>* complaints) {
  const std::lock_guard lock(mutex_);
  if (left_out_.count(uid) != 0) return true;  // whoever left him out has said why
  const auto refused = refused_.find(uid);
  if (refused == refused_.end()) return false;
  complaints->push_back(SkippedComplaint(uid, DirectoryOf(uid), refused->second));
  return true;
}

}  // namespace syncline::agent
