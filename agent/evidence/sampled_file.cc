// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/sampled_file.h"

#include <fcntl.h>
#include <unistd.h>

namespace syncline::agent {

SampledFile::SampledFile(const std::filesystem::path& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

SampledFile::~SampledFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string_view SampledFile::Read(std::string* buffer, size_t bytes_max) const {
  if (fd_ < 0) return {};
  buffer->resize(bytes_max);  // of one that is used again: nothing to do
  const ssize_t bytes = ::pread(fd_, buffer->data(), buffer->size(), 0);
  return std::string_view(*buffer).substr(0, bytes > 0 ? static_cast<size_t>(bytes) : 0);
}

}  // namespace syncline::agent
