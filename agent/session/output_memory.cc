// SPDX-License-Identifier: Apache-2.0
#include "agent/session/output_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/status.h"

namespace syncline::agent {

absl::StatusOr<Descriptor> MakeOutputMemory(const char* name, size_t bytes_max) {
  Descriptor output(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (output.get() < 0 || ::ftruncate(output.get(), static_cast<off_t>(bytes_max)) != 0 ||
      ::fcntl(output.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return ErrnoStatus(errno, "Cannot create a memory file");
  }
  return output;
}

std::string ReadOutputMemory(int fd, size_t bytes_max) {
  std::string text(bytes_max, '\0');
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

}  // namespace syncline::agent
