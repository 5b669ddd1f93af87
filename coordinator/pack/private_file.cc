// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/private_file.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::pack {

absl::StatusOr<PrivateFile> PrivateFile::Open(const std::filesystem::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
  if (file.size_bytes == 0) return PrivateFile();
  const auto size = static_cast<size_t>(file.size_bytes);
  void* const at =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.fd.get(), 0);
  if (at == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("cannot map ", path.string()));
  return PrivateFile(std::span(static_cast<uint8_t*>(at), size));
}

PrivateFile::~PrivateFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace syncline::pack
