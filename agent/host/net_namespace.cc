// SPDX-License-Identifier: Apache-2.0
#include "agent/host/net_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

bool IsNamespace(const struct stat& info, uint64_t inode) { return info.st_ino == inode; }

}  // namespace

absl::Status InNetNamespace(const std::filesystem::path& proc, int32_t pid, uint64_t inode,
                            const std::function<void()>& visit) {
  struct stat info {};
  if (::stat("/proc/self/ns/net", &info) == 0 && IsNamespace(info, inode)) {
    visit();
    return absl::OkStatus();
  }
  const std::filesystem::path path = proc / std::to_string(pid) / "ns" / "net";
  const Descriptor theirs(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (theirs.get() < 0) return ErrnoStatus(errno, "its network namespace cannot be opened");
  if (::fstat(theirs.get(), &info) != 0 || !IsNamespace(info, inode)) {
    return absl::UnavailableError("the process has ended");
  }
  absl::Status entered;
  // A thread of its own: one that has entered cannot surely go back.
  const auto enter = [&] {
    if (::setns(theirs.get(), CLONE_NEWNET) != 0) {
      entered = absl::PermissionDeniedError(
          absl::StrCat("its network namespace cannot be entered: ", std::strerror(errno)));
      return;
    }
    visit();
  };
  try {
    std::thread(enter).join();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("its network namespace cannot be entered: no thread is left: ", error.what()));
  }
  return entered;
}

}  // namespace syncline::agent
