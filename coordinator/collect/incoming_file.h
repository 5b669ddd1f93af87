// SPDX-License-Identifier: Apache-2.0
// One file on its way in: NAME.part, hashed as it grows.
#ifndef SYNCLINE_COORDINATOR_COLLECT_INCOMING_FILE_H_
#define SYNCLINE_COORDINATOR_COLLECT_INCOMING_FILE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::collect {

class IncomingFile {
 public:
  // Opens NAME.part (or NAME, if that is there already, as its own prefix) and hashes what it
  // holds. With `from_scratch` what was there is dropped.
  static absl::StatusOr<std::unique_ptr<IncomingFile>> Open(const std::filesystem::path& path,
                                                            bool from_scratch);
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  uint64_t size_bytes() const { return size_bytes_; }
  absl::Status Append(std::string_view bytes);
  // Compares size and hash with the sender's and gives the file its name. DataLoss removes it.
  absl::Status Finish(uint64_t size_bytes, std::string_view sha256);

  // Bytes of NAME or NAME.part that are here already.
  static uint64_t PrefixBytes(const std::filesystem::path& path);
  // Drops them.
  static void Remove(const std::filesystem::path& path);

 private:
  IncomingFile(std::filesystem::path path, int fd);
  absl::Status HashWhatIsThere();

  struct Hash;
  const std::filesystem::path path_;
  const std::filesystem::path part_path_;
  int fd_ = -1;
  uint64_t size_bytes_ = 0;
  std::unique_ptr<Hash> hash_;
};

}  // namespace syncline::collect

#endif  // SYNCLINE_COORDINATOR_COLLECT_INCOMING_FILE_H_
