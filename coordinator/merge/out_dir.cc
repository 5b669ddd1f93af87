// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/out_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::merge {
namespace {

constexpr char kMark[] = ".syncline-merge";  // says that the directory is ours to replace
constexpr char kMarkText[] =
    "Made by syncline merge, which replaces what it made, and keeps what else is here. It made:\n";

// The mark's descriptor, locked as long as it is open; -1: another merge holds it, or there is
// none.
int LockMark(const std::filesystem::path& staging) {
  const int fd = ::open((staging / kMark).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return -1;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

// What lies in a directory, but for the mark.
std::set<std::string> NamesIn(const std::filesystem::path& directory) {
  std::set<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.insert(entry->path().filename().string());
  }
  names.erase(kMark);
  return names;
}

// What others put beside what the mark lists; nothing where it is of a version that listed nothing.
std::set<std::string> Foreign(const std::filesystem::path& directory) {
  const absl::StatusOr<std::string> mark = ReadFile(directory / kMark);
  if (!mark.ok() || !mark->starts_with(kMarkText)) return {};
  std::set<std::string> names = NamesIn(directory);
  const std::vector<std::string> made = absl::StrSplit(*mark, '\n');
  for (const std::string& name : made) names.erase(name);
  return names;
}

// Into the mark itself, which is locked.
absl::Status ListMade(const std::filesystem::path& staging) {
  const std::string list = absl::StrCat(absl::StrJoin(NamesIn(staging), "\n"), "\n");
  const int fd = ::open((staging / kMark).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  const ssize_t written = fd < 0 ? -1 : ::write(fd, list.data(), list.size());
  const int error_number = written < 0 ? errno : ENOSPC;
  if (fd >= 0) ::close(fd);
  if (written == static_cast<ssize_t>(list.size())) return absl::OkStatus();
  return ErrnoStatus(error_number, absl::StrCat("cannot write ", (staging / kMark).string()));
}

// Moves what others put into `old` over. Whatever cannot be moved stays, and so does `old`: without
// its mark nobody takes it for a merge that was killed.
absl::Status KeepForeign(const std::filesystem::path& old, const std::filesystem::path& path) {
  const std::set<std::string> foreign = Foreign(old);
  if (foreign.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::remove(old / kMark, error);
  const std::set<std::string> taken = NamesIn(path);
  for (const std::string& name : foreign) {
    if (taken.contains(name)) continue;  // what was given that name is a merge's now
    if (rename((old / name).c_str(), (path / name).c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("the merge is done, but cannot move ",
                                             (old / name).string(), " to ", path.string()));
    }
  }
  return absl::OkStatus();
}

std::filesystem::path WithoutSlash(const std::filesystem::path& given) {
  const std::filesystem::path path = given.lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

// ".out.1234.tmp" of merges of `path` that were killed.
void RemoveLeftovers(const std::filesystem::path& path) {
  const std::string prefix = absl::StrCat(".", path.filename().string(), ".");
  const std::filesystem::path parent =
      path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (const std::string& name : NamesIn(parent)) {
    if (!name.starts_with(prefix) || !name.ends_with(".tmp")) continue;
    const int fd = LockMark(parent / name);
    if (fd < 0) continue;
    std::error_code ignored;
    std::filesystem::remove_all(parent / name, ignored);
    ::close(fd);
  }
}

}  // namespace

OutDir::OutDir(std::filesystem::path path, std::filesystem::path staging)
    : path_(std::move(path)), staging_(std::move(staging)) {}

OutDir::OutDir(OutDir&& other) noexcept
    : path_(std::move(other.path_)),
      staging_(std::exchange(other.staging_, {})),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      committing_(std::move(other.committing_)) {}

OutDir::~OutDir() {
  std::error_code ignored;
  if (!staging_.empty()) std::filesystem::remove_all(staging_, ignored);
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

void OutDir::Abandon() {
  committing_->lock();  // for good
  std::error_code ignored;
  if (!staging_.empty()) std::filesystem::remove_all(staging_, ignored);
}

absl::Status OutDir::Check(const std::filesystem::path& given) {
  const std::filesystem::path path = WithoutSlash(given);
  std::error_code error;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) {
    // It would be the link that is replaced, not the directory.
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write the merge: ", path.string(), " is a symbolic link; give ",
                     std::filesystem::read_symlink(path, error).string(), " itself with --out"));
  }
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none) {
    return ErrnoStatus(error.value(), absl::StrCat("cannot write the merge: ", path.string()));
  }
  if (std::filesystem::exists(status)) {
    if (!std::filesystem::is_directory(path, error)) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot write the merge: not a directory: ", path.string()));
    }
    const bool empty = std::filesystem::is_empty(path, error);
    if (!empty && !std::filesystem::exists(path / kMark, error)) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot write the merge: ", path.string(),
                       " is not empty and no merge made it; name another --out, or empty it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<OutDir> OutDir::Prepare(const std::filesystem::path& given) {
  SYNCLINE_RETURN_IF_ERROR(Check(given));
  const std::filesystem::path path = WithoutSlash(given);
  std::error_code error;
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(path.has_parent_path() ? path.parent_path() : "."));
  RemoveLeftovers(path);
  const std::filesystem::path staging =
      path.parent_path() / absl::StrCat(".", path.filename().string(), ".", getpid(), ".tmp");
  std::filesystem::remove_all(staging, error);
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(staging));
  OutDir out(path, staging);
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(staging / kMark, kMarkText));
  out.lock_fd_ = LockMark(staging);
  return out;
}

absl::Status OutDir::Commit() {
  const std::lock_guard<std::mutex> lock(*committing_);
  SYNCLINE_RETURN_IF_ERROR(ListMade(staging_));
  if (rename(staging_.c_str(), path_.c_str()) == 0) {  // there was none, or an empty one
    staging_.clear();
    return absl::OkStatus();
  }
  if (errno != ENOTEMPTY && errno != EEXIST) {
    return ErrnoStatus(errno, absl::StrCat("cannot put the merge in place: ", path_.string()));
  }
  // Exchange: whoever looks sees the old directory or the new one. The destructor removes the old.
  if (renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) {
    return KeepOthers();
  }
  // File systems without exchange (NFS): the old one moves aside first.
  const std::filesystem::path old = staging_.string() + ".old";
  if (rename(path_.c_str(), old.c_str()) != 0 || rename(staging_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot put the merge in place: ", path_.string()));
  }
  staging_ = old;
  return KeepOthers();
}

// Of the directory that was there before, which is staging_ now.
absl::Status OutDir::KeepOthers() {
  const absl::Status kept = KeepForeign(staging_, path_);
  if (!kept.ok()) staging_.clear();
  return kept;
}

}  // namespace syncline::merge
