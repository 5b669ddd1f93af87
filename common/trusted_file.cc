// SPDX-License-Identifier: Apache-2.0
#include "common/trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace syncline {
namespace {

constexpr mode_t kOthers = 077;
constexpr mode_t kOthersWrite = 022;
constexpr int kLinksMax = 40;  // as the kernel

std::string Quoted(const std::filesystem::path& path) {
  return absl::StrCat("\"", path.string(), "\"");
}

const char* KindName(mode_t mode) {
  return S_ISDIR(mode)    ? "a directory"
         : S_ISREG(mode)  ? "a regular file"
         : S_ISLNK(mode)  ? "a link"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

absl::Status Distrust(const std::filesystem::path& path, const struct stat& info, mode_t kind,
                      const TrustOptions& options) {
  return absl::PermissionDeniedError(absl::StrFormat(
      "Cannot trust %s: it must be %s that belongs to uid %d alone (it is %s of uid %d, mode "
      "0%o%s); remove it and start the job again",
      Quoted(path), KindName(kind), options.owner, KindName(info.st_mode), info.st_uid,
      info.st_mode & 07777,
      S_ISREG(info.st_mode) && info.st_nlink > 1 ? ", with a second name" : ""));
}

absl::Status Check(int fd, const std::filesystem::path& path, mode_t kind,
                   const TrustOptions& options) {
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot stat ", Quoted(path)));
  }
  const bool good = (info.st_mode & S_IFMT) == kind && info.st_uid == options.owner &&
                    (!options.others_none || (info.st_mode & kOthers) == 0) &&
                    (kind != S_IFREG || info.st_nlink <= 1);
  return good ? absl::OkStatus() : Distrust(path, info, kind, options);
}

absl::StatusOr<Descriptor> Open(int at, const std::filesystem::path& name,
                                const std::filesystem::path& path, mode_t kind,
                                const TrustOptions& options) {
  // O_NONBLOCK: a pipe must not hold us. O_NOCTTY: nor a terminal become ours.
  const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
                    (kind == S_IFDIR ? O_RDONLY | O_DIRECTORY : options.flags);
  Descriptor fd(::openat(at, name.c_str(), flags));
  const int error_number = errno;
  if (fd.get() >= 0) {
    SYNCLINE_RETURN_IF_ERROR(Check(fd.get(), path, kind, options));
    return fd;
  }
  // What cannot be opened so is looked at for the message: a link, a file for a directory, a
  // socket.
  struct stat info;
  const bool is_other = error_number == ELOOP || error_number == ENOTDIR || error_number == ENXIO ||
                        error_number == EISDIR;
  if (is_other && ::fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    return Distrust(path, info, kind, options);
  }
  return ErrnoStatus(error_number, absl::StrCat("Cannot open ", Quoted(path)));
}

// In a user namespace that does not hold them, root's directories appear to belong to this user.
constexpr uint32_t kUnmapped = 65534;

bool AllUsersAreMapped() {
  const auto map = ReadFile("/proc/self/uid_map", 4096);
  const std::vector<std::string> words =
      absl::StrSplit(map.ok() ? *map : "", absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return words == std::vector<std::string>{"0", "0", "4294967295"};
}

// Whether others can exchange what is in this directory.
bool IsOpenToOthers(const struct stat& info, uint32_t user) {
  if ((info.st_mode & S_ISVTX) != 0) return false;
  mode_t open = info.st_mode & kOthersWrite;
  // A group that bears the user's own number holds nobody else, by the custom of distributions.
  if (info.st_gid == user || info.st_gid == 0) open &= ~mode_t{020};
  return open != 0;
}

}  // namespace

absl::StatusOr<Descriptor> OpenTrustedDirectory(int at, const std::filesystem::path& path,
                                                const TrustOptions& options) {
  return Open(at, path, path, S_IFDIR, options);
}

absl::StatusOr<Descriptor> OpenTrustedFile(int at, const std::filesystem::path& path,
                                           const TrustOptions& options) {
  return Open(at, path.filename(), path, S_IFREG, options);
}

absl::StatusOr<Descriptor> OpenOrMakeTrustedFile(int at, const std::filesystem::path& path,
                                                 const TrustOptions& options) {
  const std::string name = path.filename().string();
  // O_EXCL: what this call makes is nobody else's, and may be given away.
  Descriptor made(
      ::openat(at, name.c_str(), options.flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (made.get() < 0 && errno == EEXIST) return OpenTrustedFile(at, path, options);
  if (made.get() < 0) return ErrnoStatus(errno, absl::StrCat("Cannot create ", Quoted(path)));
  struct stat info;
  if (::fstat(made.get(), &info) == 0 && info.st_uid != options.owner &&
      ::fchown(made.get(), options.owner, static_cast<gid_t>(-1)) != 0) {
    const int error_number = errno;
    ::unlinkat(at, name.c_str(), 0);
    return ErrnoStatus(error_number, absl::StrCat("Cannot give ", Quoted(path), " to its owner"));
  }
  return made;
}

absl::Status CheckWay(const std::filesystem::path& path, uint32_t user) {
  const uint32_t unmapped = AllUsersAreMapped() ? 0 : kUnmapped;
  std::filesystem::path rest = path.relative_path();
  std::filesystem::path here = "/";  // never has a link in it
  int links = 0;
  for (;;) {
    struct stat info;
    if (::lstat(here.c_str(), &info) != 0) {
      if (errno == ENOENT) return absl::OkStatus();
      return ErrnoStatus(errno, absl::StrCat("Cannot stat ", Quoted(here)));
    }
    if (info.st_uid != 0 && info.st_uid != user && info.st_uid != unmapped) {
      return absl::PermissionDeniedError(absl::StrCat("Cannot trust ", Quoted(here), ": it is ",
                                                      KindName(info.st_mode), " of user ",
                                                      info.st_uid));
    }
    if (S_ISLNK(info.st_mode)) {
      std::error_code error;
      const std::filesystem::path target = std::filesystem::read_symlink(here, error);
      if (error || ++links > kLinksMax) {
        return absl::PermissionDeniedError(absl::StrCat("Cannot follow ", Quoted(here)));
      }
      here = target.is_absolute() ? std::filesystem::path("/") : here.parent_path();
      rest = target.relative_path() / rest;
      continue;
    }
    if (S_ISDIR(info.st_mode) && IsOpenToOthers(info, user)) {
      return absl::PermissionDeniedError(absl::StrCat("Cannot trust ", Quoted(here),
                                                      ": others may write there (chmod go-w \"",
                                                      here.string(), "\")"));
    }
    if (rest.empty()) return absl::OkStatus();
    const std::filesystem::path part = *rest.begin();
    std::filesystem::path after;
    for (auto it = std::next(rest.begin()); it != rest.end(); ++it) after /= *it;
    rest = std::move(after);
    if (part == "..") {
      here = here.parent_path();
    } else if (!part.empty() && part != ".") {
      here /= part;
    }
  }
}

}  // namespace syncline
