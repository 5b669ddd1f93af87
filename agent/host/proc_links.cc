// SPDX-License-Identifier: Apache-2.0
#include "agent/host/proc_links.h"

#include <string>
#include <system_error>

#include "absl/strings/numbers.h"

namespace syncline::agent {

uint64_t InodeOfLink(const std::filesystem::path& link, std::string_view kind) {
  std::error_code error;
  const std::string target = std::filesystem::read_symlink(link, error).string();
  uint64_t inode = 0;
  if (error || !target.starts_with(kind) || target.size() < kind.size() + 3) return 0;
  const std::string digits = target.substr(kind.size() + 2, target.size() - kind.size() - 3);
  return absl::SimpleAtoi(digits, &inode) ? inode : 0;
}

std::set<uint64_t> OpenSockets(const std::filesystem::path& proc, int32_t pid, size_t* left) {
  std::set<uint64_t> inodes;
  std::error_code error;
  const std::filesystem::path directory = proc / std::to_string(pid) / "fd";
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (left != nullptr && (*left)-- == 0) {
      *left = 0;
      break;
    }
    if (const uint64_t inode = InodeOfLink(it->path(), "socket"); inode != 0) inodes.insert(inode);
  }
  return inodes;
}

uint64_t NetNamespaceOf(const std::filesystem::path& proc, int32_t pid) {
  return InodeOfLink(proc / std::to_string(pid) / "ns" / "net", "net");
}

}  // namespace syncline::agent
