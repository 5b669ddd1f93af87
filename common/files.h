// SPDX-License-Identifier: Apache-2.0
// Whole files and directories, with errors for people. Thread-safe: no state.
#ifndef SYNCLINE_COMMON_FILES_H_
#define SYNCLINE_COMMON_FILES_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline {

// A file descriptor, closed at the end. Movable.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  // The caller closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct OpenFile {
  Descriptor fd;
  uint64_t size_bytes = 0;
};

// Opens for reading what should be a file and may be anything. FailedPrecondition that names the
// path and says what is there instead of a regular file; a FIFO or a device never makes it wait.
absl::StatusOr<OpenFile> OpenRegular(const std::filesystem::path& path);

// The whole file; NotFound, PermissionDenied, FailedPrecondition (not a regular file), or
// ResourceExhausted above `limit_bytes`.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path,
                                     uint64_t limit_bytes = uint64_t{1} << 32);

// The same of a file that the user named, which may be a pipe as well: `--hosts <(command)`.
absl::StatusOr<std::string> ReadFileOrPipe(const std::filesystem::path& path, uint64_t limit_bytes);
// The first `limit_bytes` of an open file, or all there are. Errors begin with `what`.
absl::StatusOr<std::string> ReadUpTo(int fd, uint64_t limit_bytes, std::string_view what);

// How many bytes the open file really has: it ends where its first hole begins, or at its end. A
// file of a few pages may claim gigabytes; what a hole reads as is no data. At most `bytes_max`.
uint64_t BytesBeforeHole(int fd, uint64_t bytes_max);

// What is left to its user on the file system of `path`; 0 when it is not known.
uint64_t FreeDiskBytes(const std::filesystem::path& path);

// Writes beside `path`, syncs and renames: readers see the old file or the new one, never a part.
// `mode`: permission bits of a new file.
absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes,
                                 unsigned mode = 0644);

// Writes what a user asked for to where he said: a file is replaced as above, also at the end of a
// link; what is no regular file (a pipe, a device) is written to, never replaced. "-" is the
// standard output.
absl::Status WriteOutput(const std::filesystem::path& path, std::string_view bytes);

// Writes all of `bytes` where the descriptor stands. `name` is for the message.
absl::Status WriteAll(int fd, std::string_view bytes, const std::string& name);

// Appends all of `bytes` to a file that was opened with O_APPEND, or nothing of it: what a full
// disk took in part is cut off again, so that what is appended later is not shifted. `path` is for
// the message.
absl::Status AppendWhole(int fd, std::string_view bytes, const std::filesystem::path& path);

// Makes the directory and its parents; an existing one is fine.
absl::Status MakeDirectories(const std::filesystem::path& path, unsigned mode = 0755);

// A read-only mapping of a whole file. Empty files map to an empty span. Movable.
// Trap: reading pages past a concurrent truncation raises SIGBUS; map only files nobody cuts.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  std::span<const uint8_t> bytes_;
};

}  // namespace syncline

#endif  // SYNCLINE_COMMON_FILES_H_
