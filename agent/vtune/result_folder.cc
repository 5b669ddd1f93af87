// SPDX-License-Identifier: Apache-2.0
#include "agent/vtune/result_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/utf8.h"

namespace syncline::agent {
namespace {

constexpr int kDepthMax = 16;
constexpr size_t kRemovedMax = 100'000;
constexpr size_t kPieceBytes = size_t{1} << 20;

// An entry of the directory `at`, and nothing else: no link, nothing that is mounted there.
Descriptor OpenIn(int at, const std::string& name, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
  return Descriptor(static_cast<int>(::syscall(SYS_openat2, at, name.c_str(), &how, sizeof how)));
}

struct Entry {
  std::string name;
  bool is_directory = false;
  bool is_file = false;
};

Entry EntryOf(int directory, const dirent& one) {
  Entry entry{one.d_name, one.d_type == DT_DIR, one.d_type == DT_REG};
  struct stat facts {};
  // Some file systems do not tell.
  if (one.d_type == DT_UNKNOWN &&
      ::fstatat(directory, one.d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0) {
    entry.is_directory = S_ISDIR(facts.st_mode);
    entry.is_file = S_ISREG(facts.st_mode);
  }
  return entry;
}

// At most so many of what is in the open directory.
absl::StatusOr<std::vector<Entry>> EntriesOf(int directory, size_t most) {
  std::vector<Entry> entries;
  const int again = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = again < 0 ? nullptr : ::fdopendir(again);
  if (stream == nullptr) {
    const int error = errno;
    if (again >= 0) ::close(again);
    return ErrnoStatus(error, "Cannot list a folder of it");
  }
  for (const dirent* one = nullptr;
       entries.size() < most && (one = ::readdir(stream)) != nullptr;) {
    const std::string_view name = one->d_name;
    if (name != "." && name != "..") entries.push_back(EntryOf(directory, *one));
  }
  ::closedir(stream);
  return entries;
}

class Copier {
 public:
  Copier(uint32_t uid, const CopyLimits& limits) : uid_(uid), limits_(limits) {}

  absl::Status CopyDirectory(int from, const std::filesystem::path& to, int depth) {
    SYNCLINE_RETURN_IF_ERROR(MakeDirectories(to, 0700));
    SYNCLINE_ASSIGN_OR_RETURN(const std::vector<Entry> entries,
                              EntriesOf(from, limits_.entries_max + 1));
    for (const Entry& entry : entries) {
      if (++entries_ > limits_.entries_max) {
        return absl::ResourceExhaustedError(
            absl::StrCat("it has more than ", limits_.entries_max, " files"));
      }
      if (limits_.late()) return Late();
      const Descriptor opened =
          entry.is_directory || entry.is_file
              ? OpenIn(from, entry.name, O_RDONLY | (entry.is_directory ? O_DIRECTORY : 0))
              : Descriptor(-1);
      struct stat facts {};
      const bool wanted = opened.get() >= 0 && ::fstat(opened.get(), &facts) == 0 &&
                          facts.st_uid == uid_ && RepairedUtf8(entry.name) == entry.name &&
                          (S_ISREG(facts.st_mode) || (S_ISDIR(facts.st_mode) && depth > 0));
      if (!wanted) {
        ++copied_.left_out;
        copied_.data_left_out += entry.is_directory || entry.is_file ? 1 : 0;
        continue;
      }
      SYNCLINE_RETURN_IF_ERROR(S_ISDIR(facts.st_mode)
                                   ? CopyDirectory(opened.get(), to / entry.name, depth - 1)
                                   : CopyFile(opened.get(), to / entry.name));
    }
    return absl::OkStatus();
  }

  const CopiedResult& copied() const { return copied_; }

 private:
  static absl::Status Late() {
    return absl::DeadlineExceededError("there was no time to copy all of it");
  }

  absl::Status CopyFile(int from, const std::filesystem::path& to) {
    const Descriptor into(
        ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (into.get() < 0) return ErrnoStatus(errno, absl::StrCat("Cannot create ", to.string()));
    std::string piece(kPieceBytes, '\0');
    for (;;) {
      if (limits_.late()) return Late();
      const ssize_t got = ::read(from, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "Cannot read it");
      if (got == 0) return absl::OkStatus();
      copied_.bytes += static_cast<uint64_t>(got);
      if (copied_.bytes > limits_.bytes_max) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "it is larger than the ", limits_.bytes_max >> 20, " MiB that may be kept of it"));
      }
      for (ssize_t done = 0; done < got;) {
        const ssize_t put =
            ::write(into.get(), piece.data() + done, static_cast<size_t>(got - done));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return ErrnoStatus(errno, absl::StrCat("Cannot write ", to.string()));
        done += put;
      }
    }
  }

  const uint32_t uid_;
  const CopyLimits& limits_;
  CopiedResult copied_;
  size_t entries_ = 0;
};

// `left`: so many entries are removed, a user can make any number.
void RemoveBelow(int directory, int depth, size_t* left) {
  const auto entries = EntriesOf(directory, *left);
  if (!entries.ok()) return;
  for (const Entry& entry : *entries) {
    if (*left == 0) return;
    --*left;
    if (::unlinkat(directory, entry.name.c_str(), 0) == 0 || !entry.is_directory || depth == 0) {
      continue;
    }
    const Descriptor below = OpenIn(directory, entry.name, O_RDONLY | O_DIRECTORY);
    if (below.get() >= 0) RemoveBelow(below.get(), depth - 1, left);
    ::unlinkat(directory, entry.name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace

absl::StatusOr<ResultFolder> ResultFolder::Make(const std::filesystem::path& work, uint32_t uid) {
  std::string path = (work / "syncline-vtune-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    return ErrnoStatus(errno, absl::StrCat("Cannot make a folder in \"", work.string(), "\""));
  }
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const passwd* const user = ::getpwuid(uid);
  const gid_t gid = user != nullptr ? user->pw_gid : static_cast<gid_t>(uid);
  if (fd.get() < 0 || (uid != ::geteuid() && ::fchown(fd.get(), uid, gid) != 0)) {
    const int error = errno;
    ::rmdir(path.c_str());
    return ErrnoStatus(error, absl::StrCat("Cannot give \"", path, "\" to user ", uid));
  }
  return ResultFolder(path, std::move(fd), uid);
}

absl::StatusOr<CopiedResult> ResultFolder::Copy(const std::string& name,
                                                const std::filesystem::path& to,
                                                const CopyLimits& limits) const {
  const Descriptor from = OpenIn(fd_.get(), name, O_RDONLY | O_DIRECTORY);
  if (from.get() < 0 && errno == ENOENT) return absl::NotFoundError("there is no result");
  if (from.get() < 0) return ErrnoStatus(errno, "Cannot open the result");
  Copier copier(uid_, limits);
  const absl::Status status = copier.CopyDirectory(from.get(), to, kDepthMax);
  if (status.ok()) return copier.copied();
  // There is a result: what is not found is where it should go.
  return absl::IsNotFound(status) ? absl::UnavailableError(status.message()) : status;
}

void ResultFolder::Remove() const {
  size_t left = kRemovedMax;
  RemoveBelow(fd_.get(), kDepthMax, &left);
  // Its name may be another folder's by now: that one is not empty, or the user's own.
  ::rmdir(path_.c_str());
}

}  // namespace syncline::agent
