// SPDX-License-Identifier: Apache-2.0
// A file among many that one export writes: its bytes are gathered and appended some hundred
// kilobytes at a time, and the file is open only while that is done, so that a thousand of them
// cost no descriptors.
//
// Errors are kept and surface in Close(). Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_OUTPUT_FILE_H_
#define SYNCLINE_EXPORT_OUTPUT_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace syncline {

class OutputFile {
 public:
  // Nothing is written yet; what `path` holds already is appended to. Directories above are made.
  explicit OutputFile(std::filesystem::path path) : path_(std::move(path)) {}

  // Append to this, then call Written().
  std::string* buffer() { return &buffer_; }
  void Written() {
    if (buffer_.size() >= kBufferBytes) Flush();
  }
  // ResourceExhausted where the disk is full.
  absl::Status Close();

  const std::filesystem::path& path() const { return path_; }

 private:
  static constexpr size_t kBufferBytes = 256 << 10;

  void Flush();

  std::filesystem::path path_;
  std::string buffer_;
  bool made_ = false;
  absl::Status status_;
};

// `name` (a node's, a job's) as the name of a file or directory: it may be called anything.
std::string FileNameOf(std::string name);

}  // namespace syncline

#endif  // SYNCLINE_EXPORT_OUTPUT_FILE_H_
