// SPDX-License-Identifier: Apache-2.0
// A file's bytes to write over: the file itself stays as it is, and pages that nobody writes to
// cost no memory. Movable.
#ifndef SYNCLINE_COORDINATOR_PACK_PRIVATE_FILE_H_
#define SYNCLINE_COORDINATOR_PACK_PRIVATE_FILE_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace syncline::pack {

class PrivateFile {
 public:
  static absl::StatusOr<PrivateFile> Open(const std::filesystem::path& path);
  PrivateFile() = default;
  PrivateFile(PrivateFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  PrivateFile& operator=(PrivateFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PrivateFile();

  std::span<uint8_t> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  explicit PrivateFile(std::span<uint8_t> bytes) : bytes_(bytes) {}
  std::span<uint8_t> bytes_;
};

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_PRIVATE_FILE_H_
