// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace syncline::pack {
namespace {

absl::Status Exists(const std::filesystem::path& path) {
  return absl::AlreadyExistsError(absl::StrCat(
      "\"", path.string(), "\" is there already; remove it, or name another file with -o"));
}

// Moves without replacing anything.
absl::Status Rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    return absl::OkStatus();
  }
  if (errno == EEXIST) return Exists(to);
  // A file system that knows no such renaming.
  if (errno == EINVAL && ::access(to.c_str(), F_OK) != 0 &&
      ::rename(from.c_str(), to.c_str()) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, absl::StrCat("cannot rename ", from.string(), " to ", to.string()));
}

}  // namespace

Archive::Archive(std::filesystem::path path, std::filesystem::path part, int fd)
    : path_(std::move(path)), part_(std::move(part)), fd_(fd), writer_(::archive_write_new()) {}

Archive::~Archive() {
  if (writer_ != nullptr) ::archive_write_free(writer_);
  ::close(fd_);
  if (!part_.empty()) ::unlink(part_.c_str());
}

absl::Status Archive::Failed(const char* what) {
  const char* const reason = writer_ != nullptr ? ::archive_error_string(writer_) : nullptr;
  return absl::UnavailableError(absl::StrCat("cannot ", what, " \"", path_.string(), "\": ",
                                             reason != nullptr ? reason : "no memory is left"));
}

absl::StatusOr<std::unique_ptr<Archive>> Archive::Create(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const bool zstd = name.ends_with(".tar.zst");
  if (!zstd && !name.ends_with(".tar.gz") && !name.ends_with(".tgz")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path.string(),
                     "\" must end in .tar.gz or .tar.zst, which says how it is compressed"));
  }
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) return Exists(path);
  std::string part = absl::StrCat(path.string(), ".part-XXXXXX");
  const int fd = ::mkostemp(part.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path.string()));
  std::unique_ptr<Archive> made(new Archive(path, part, fd));
  ::archive* const writer = made->writer_;
  if (writer == nullptr || ::archive_write_set_format_pax_restricted(writer) != ARCHIVE_OK ||
      (zstd ? ::archive_write_add_filter_zstd(writer) : ::archive_write_add_filter_gzip(writer)) !=
          ARCHIVE_OK ||
      // The time of packing would make two packs of one recording differ.
      (!zstd &&
       ::archive_write_set_filter_option(writer, "gzip", "timestamp", nullptr) != ARCHIVE_OK) ||
      ::archive_write_open_fd(writer, fd) != ARCHIVE_OK) {
    return made->Failed("begin");
  }
  return made;
}

absl::Status Archive::Add(const std::string& name, uint64_t bytes, int64_t modified_unix_s) {
  constexpr unsigned kMode = 0644;
  const std::unique_ptr<::archive_entry, decltype(&::archive_entry_free)> entry(
      ::archive_entry_new(), ::archive_entry_free);
  ::archive_entry_set_pathname(entry.get(), name.c_str());
  ::archive_entry_set_size(entry.get(), static_cast<int64_t>(bytes));
  ::archive_entry_set_filetype(entry.get(), AE_IFREG);
  ::archive_entry_set_perm(entry.get(), kMode);
  ::archive_entry_set_mtime(entry.get(), modified_unix_s, 0);
  // A warning: the name is not plain ASCII. It is written as it is.
  const int written = ::archive_write_header(writer_, entry.get());
  return written >= ARCHIVE_WARN ? absl::OkStatus() : Failed("write");
}

absl::Status Archive::Write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const la_ssize_t written = ::archive_write_data(writer_, bytes.data(), bytes.size());
    if (written <= 0) return Failed("write");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status Archive::Close() {
  if (closed_) return absl::OkStatus();
  closed_ = true;
  return ::archive_write_close(writer_) == ARCHIVE_OK ? absl::OkStatus() : Failed("write");
}

absl::StatusOr<uint64_t> Archive::Finish() {
  SYNCLINE_RETURN_IF_ERROR(Close());
  const int64_t bytes = ::archive_filter_bytes(writer_, -1);
  if (::fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path_.string()));
  SYNCLINE_RETURN_IF_ERROR(Rename(part_, path_));
  part_.clear();
  return static_cast<uint64_t>(bytes);
}

}  // namespace syncline::pack
