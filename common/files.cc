// SPDX-License-Identifier: Apache-2.0
#include "common/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace syncline {
namespace {

std::string Quoted(const std::filesystem::path& path) {
  return absl::StrCat("\"", path.string(), "\"");
}

// A new file beside `path`, and its name. In a folder that others may write into, a name that can
// be guessed may be theirs already; what is there is never opened.
int MakeBeside(const std::filesystem::path& path, unsigned mode, std::string* name) {
  constexpr int kTriesMax = 100;
  for (int tries = 0;; ++tries) {
    uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) return -1;
    *name = absl::StrCat(path.string(), ".tmp.", absl::Hex(random, absl::kZeroPad16));
    const int fd =
        ::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd >= 0 || errno != EEXIST || tries >= kTriesMax) return fd;
  }
}

std::string NotRegular(const std::filesystem::path& path, mode_t mode) {
  const char* what = S_ISDIR(mode)                    ? "a directory"
                     : S_ISFIFO(mode)                 ? "a FIFO"
                     : S_ISSOCK(mode)                 ? "a socket"
                     : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                                      : "something else";
  return absl::StrCat("Cannot read ", Quoted(path), ": it is ", what, ", not a regular file");
}

absl::StatusOr<std::string> ReadAll(int fd, const std::filesystem::path& path,
                                    uint64_t limit_bytes) {
  std::string bytes;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, absl::StrCat("Cannot read ", Quoted(path)));
    }
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<size_t>(n) > limit_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("Cannot read ", Quoted(path), ": larger than ", limit_bytes, " bytes"));
    }
    bytes.append(chunk, static_cast<size_t>(n));
  }
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<OpenFile> OpenRegular(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO would wait for its writer, a terminal for its line.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const int error_number = errno;
  struct stat info;
  if (fd.get() < 0) {
    // A socket cannot be opened at all.
    if (error_number == ENXIO && ::stat(path.c_str(), &info) == 0) {
      return absl::FailedPreconditionError(NotRegular(path, info.st_mode));
    }
    return ErrnoStatus(error_number, absl::StrCat("Cannot open ", Quoted(path)));
  }
  if (::fstat(fd.get(), &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot stat ", Quoted(path)));
  }
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(NotRegular(path, info.st_mode));
  return OpenFile{std::move(fd), static_cast<uint64_t>(info.st_size)};
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path, uint64_t limit_bytes) {
  SYNCLINE_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
  return ReadAll(file.fd.get(), path, limit_bytes);
}

absl::StatusOr<std::string> ReadFileOrPipe(const std::filesystem::path& path,
                                           uint64_t limit_bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("Cannot open ", Quoted(path)));
  return ReadAll(fd.get(), path, limit_bytes);
}

absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes,
                                 unsigned mode) {
  std::string temporary;
  {
    const Descriptor fd(MakeBeside(path, mode, &temporary));
    if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("Cannot create ", Quoted(temporary)));
    absl::Status written = WriteAll(fd.get(), bytes, Quoted(temporary));
    if (written.ok() && ::fsync(fd.get()) != 0) {
      written = ErrnoStatus(errno, absl::StrCat("Cannot sync ", Quoted(temporary)));
    }
    if (!written.ok()) {
      ::unlink(temporary.c_str());
      return written;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error_number = errno;
    ::unlink(temporary.c_str());
    return ErrnoStatus(error_number, absl::StrCat("Cannot rename to ", Quoted(path)));
  }
  return absl::OkStatus();
}

absl::Status WriteOutput(const std::filesystem::path& path, std::string_view bytes) {
  if (path == "-" || path == "/dev/stdout") return WriteAll(STDOUT_FILENO, bytes, Quoted(path));
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::directory) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(path), " is a directory"));
  }
  if (status.type() == std::filesystem::file_type::regular ||
      status.type() == std::filesystem::file_type::not_found) {
    const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
    return WriteFileAtomically(error ? path : target, bytes);
  }
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, absl::StrCat("Cannot open ", Quoted(path)));
  return WriteAll(fd.get(), bytes, Quoted(path));
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, absl::StrCat("Cannot write ", name));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status AppendWhole(int fd, std::string_view bytes, const std::filesystem::path& path) {
  const off_t before = ::lseek(fd, 0, SEEK_END);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error_number = errno;
      if (before >= 0 && ::ftruncate(fd, before) != 0) {
        return ErrnoStatus(error_number, absl::StrCat("Cannot write \"", path.string(),
                                                      "\", nor undo the half that was written"));
      }
      return ErrnoStatus(error_number, absl::StrCat("Cannot write \"", path.string(), "\""));
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::filesystem::path& path, unsigned mode) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return absl::OkStatus();
  if (path.has_parent_path() && path.parent_path() != path) {
    SYNCLINE_RETURN_IF_ERROR(MakeDirectories(path.parent_path(), mode));
  }
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, absl::StrCat("Cannot create directory ", Quoted(path)));
  }
  if (!std::filesystem::is_directory(path, error)) {
    return absl::AlreadyExistsError(absl::StrCat(Quoted(path), " exists and is not a directory"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadUpTo(int fd, uint64_t limit_bytes, std::string_view what) {
  std::string bytes(limit_bytes, '\0');
  uint64_t used = 0;
  while (used < limit_bytes) {
    const ssize_t n =
        ::pread(fd, bytes.data() + used, limit_bytes - used, static_cast<off_t>(used));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, what);
    if (n == 0) break;
    used += static_cast<uint64_t>(n);
  }
  bytes.resize(used);
  return bytes;
}

uint64_t BytesBeforeHole(int fd, uint64_t bytes_max) {
  struct stat info;
  if (::fstat(fd, &info) != 0 || info.st_size <= 0) return 0;
  const off_t before = ::lseek(fd, 0, SEEK_CUR);
  off_t end = ::lseek(fd, 0, SEEK_HOLE);
  ::lseek(fd, before, SEEK_SET);    // who looks has not read
  if (end < 0) end = info.st_size;  // the file system has no holes
  return std::min(static_cast<uint64_t>(end), bytes_max);
}

uint64_t FreeDiskBytes(const std::filesystem::path& path) {
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0) return 0;
  return uint64_t{info.f_bavail} * info.f_frsize;
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  SYNCLINE_ASSIGN_OR_RETURN(const OpenFile file, OpenRegular(path));
  if (file.size_bytes == 0) return MappedFile({});
  const auto size = static_cast<size_t>(file.size_bytes);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd.get(), 0);
  if (address == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("Cannot map ", Quoted(path)));
  return MappedFile({static_cast<const uint8_t*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace syncline
