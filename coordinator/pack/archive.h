// SPDX-License-Identifier: Apache-2.0
// A compressed tar file that is there whole or not at all. Entries belong to nobody: no user and no
// group of this machine is in them. The same entries give the same bytes.
//
// Thread-safety: none.
#ifndef SYNCLINE_COORDINATOR_PACK_ARCHIVE_H_
#define SYNCLINE_COORDINATOR_PACK_ARCHIVE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct archive;

namespace syncline::pack {

class Archive {
 public:
  // `path` ends in .tar.gz, .tgz or .tar.zst, which says how it is compressed (InvalidArgument
  // otherwise), and does not exist (AlreadyExists). Until Finish() the bytes lie in a file beside
  // it, which goes away with the object. Readable by this user only: mode 0600.
  static absl::StatusOr<std::unique_ptr<Archive>> Create(const std::filesystem::path& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // The next file, of `bytes` bytes, which the following Write() calls give.
  absl::Status Add(const std::string& name, uint64_t bytes, int64_t modified_unix_s);
  absl::Status Write(std::span<const uint8_t> bytes);
  // Ends the file. It can be read at part_file() then, and is not yet at `path`.
  absl::Status Close();
  const std::filesystem::path& part_file() const { return part_; }
  // Close() where that was not called, and the size of the finished file, bytes. AlreadyExists when
  // somebody else made `path` meanwhile.
  absl::StatusOr<uint64_t> Finish();

 private:
  Archive(std::filesystem::path path, std::filesystem::path part, int fd);
  absl::Status Failed(const char* what);

  std::filesystem::path path_;
  std::filesystem::path part_;  // empty: renamed
  int fd_;
  ::archive* writer_;
  bool closed_ = false;
};

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_ARCHIVE_H_
