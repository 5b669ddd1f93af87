// SPDX-License-Identifier: Apache-2.0
// A small file of /proc or of control groups that is read over and over.
#ifndef SYNCLINE_AGENT_EVIDENCE_SAMPLED_FILE_H_
#define SYNCLINE_AGENT_EVIDENCE_SAMPLED_FILE_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace syncline::agent {

// A file that stays open and is read from its begin again and again.
class SampledFile {
 public:
  SampledFile() = default;
  explicit SampledFile(const std::filesystem::path& path);
  SampledFile(SampledFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  SampledFile& operator=(SampledFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~SampledFile();

  bool is_open() const { return fd_ >= 0; }
  // What it says now, in `buffer`; empty: it says nothing (its thread has ended). At most so many
  // bytes: the usual number holds the longest file of one process.
  std::string_view Read(std::string* buffer, size_t bytes_max = 2048) const;

 private:
  int fd_ = -1;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_SAMPLED_FILE_H_
