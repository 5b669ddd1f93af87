// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/user_directories.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/trusted_file.h"
#include "control_block/live_block.h"

namespace syncline::agent {
namespace {

constexpr const char* kLockFile = "agent.lock";

}  // namespace

std::filesystem::path RuntimePlaces::Of(uint32_t uid) const {
  if (uid == own_uid && !configured.empty()) return configured;
  return shared_memory / absl::StrCat("syncline-", uid);
}

UserDirectories FindUsers(const std::filesystem::path& shared_memory, uint32_t own_uid) {
  UserDirectories found;
  found.users = {own_uid};
  if (own_uid != 0) return found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(shared_memory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    absl::string_view number = name;
    uint32_t uid = 0;
    // One spelling only: "+1" and "01" are other files.
    if (!absl::ConsumePrefix(&number, "syncline-") || !absl::SimpleAtoi(number, &uid) ||
        absl::StrCat(uid) != number) {
      continue;
    }
    struct stat info;
    if (::lstat(it->path().c_str(), &info) != 0) continue;
    if (info.st_uid != uid) {
      found.planted[info.st_uid].push_back(it->path().string());
    } else if (uid != own_uid) {
      found.users.push_back(uid);
    }
  }
  std::sort(found.users.begin() + 1, found.users.end());
  return found;
}

absl::StatusOr<Descriptor> LockDirectory(const std::filesystem::path& directory, uint32_t uid,
                                         const std::string& holder) {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor opened,
                            control_block::OpenRuntimeDirectory(directory, uid));
  const std::filesystem::path path = directory / kLockFile;
  // Root may make it, the user's own agent must be able to use it.
  SYNCLINE_ASSIGN_OR_RETURN(
      Descriptor fd, OpenOrMakeTrustedFile(opened.get(), path, {.owner = uid, .flags = O_RDWR}));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char text[256];
    const ssize_t length = ::pread(fd.get(), text, sizeof text, 0);
    return absl::FailedPreconditionError(
        absl::StrCat("The processes of user ", uid, " are being recorded by another agent for ",
                     absl::string_view(text, length > 0 ? static_cast<size_t>(length) : 0),
                     "; wait until that recording has ended, or stop it"));
  }
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), holder.data(), holder.size(), 0) < 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot write \"", path.string(), "\""));
  }
  return fd;
}

}  // namespace syncline::agent
