// SPDX-License-Identifier: Apache-2.0
#include "agent/kineto/piece_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/host/process_folder.h"
#include "common/status.h"
#include "common/trusted_file.h"
#include "common/utf8.h"

namespace syncline::agent {
namespace {

using control_block::BlockId;
using xspace::ProfileRecord;

constexpr char kFolder[] = "kineto";
constexpr char kListSuffix[] = ".pieces";
constexpr char kFileSuffix[] = ".kineto.json";
// Parsed, a list can take two hundred times its size.
constexpr uint64_t kListBytesMax = 256 << 10;
constexpr size_t kTextBytesMax = 512;
constexpr size_t kCopyBytes = 1 << 20;
constexpr uint64_t kKeepFreeBytes = 64 << 20;  // profiles are not the recording's main thing

bool IsNameOfProfile(std::string_view name) {
  return name.ends_with(kFileSuffix) && name.front() != '.' && name.size() <= kTextBytesMax &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos &&
         RepairedUtf8(name) == name;  // it travels in messages
}

// Whether a process's list or profile has such a name, or what it had not finished of one. PyTorch
// adds ".tmp" to the name that it is given while it writes.
bool IsOfAProcess(std::string_view name) {
  for (const std::string_view list : {".pieces", ".pieces.new"}) {
    if (name.ends_with(list)) return IsStemOfProcess(name.substr(0, name.size() - list.size()));
  }
  for (const std::string_view unfinished : {".part.tmp", ".part"}) {
    if (name.ends_with(unfinished)) {
      name.remove_suffix(unfinished.size());
      break;
    }
  }
  if (!name.ends_with(kFileSuffix)) return false;
  name.remove_suffix(std::string_view(kFileSuffix).size());
  const size_t dash = name.rfind('-');
  return dash != std::string_view::npos && dash + 1 < name.size() &&
         name.find_first_not_of("0123456789", dash + 1) == std::string_view::npos &&
         IsStemOfProcess(name.substr(0, dash));
}

bool IsOf(const BlockId& process, const ProfileRecord& record) {
  return record.pid_namespace_inode == process.pid_namespace && record.own_pid == process.pid &&
         record.start_ticks == process.start_ticks;
}

// Names of files are no texts: they are refused rather than cut.
void CutTexts(ProfileRecord* record) {
  for (std::string* const text : {&record->address, &record->task, &record->incarnation,
                                  &record->session, &record->failure}) {
    text->resize(CutText(*text, kTextBytesMax).size());
  }
}

// What is left to read, at most `bytes_max`, to `into`.
absl::StatusOr<uint64_t> CopyRest(int from, int into, uint64_t bytes_max) {
  std::vector<char> buffer(kCopyBytes);
  uint64_t bytes = 0;
  for (;;) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "Cannot read the file");
    if (got == 0) return bytes;
    bytes += static_cast<uint64_t>(got);
    if (bytes > bytes_max) {
      return absl::InvalidArgumentError(
          absl::StrCat("The file grew beyond its ", bytes_max, " bytes"));
    }
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(into, buffer.data() + done, static_cast<size_t>(got - done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return ErrnoStatus(errno, "Cannot write the copy");
      done += put;
    }
  }
}

}  // namespace

absl::StatusOr<PieceFolder> PieceFolder::Open(const std::filesystem::path& runtime, uint32_t uid) {
  SYNCLINE_ASSIGN_OR_RETURN(Descriptor folder, OpenProcessFolder(runtime, uid, kFolder));
  return PieceFolder(std::move(folder), uid);
}

absl::StatusOr<Descriptor> PieceFolder::OpenFile(const std::string& name,
                                                 uint64_t bytes_max) const {
  SYNCLINE_ASSIGN_OR_RETURN(
      Descriptor file,
      OpenTrustedFile(fd_.get(), name, {.owner = uid_, .others_none = false, .flags = O_RDONLY}));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot stat \"", name, "\""));
  }
  if (static_cast<uint64_t>(info.st_size) <= bytes_max) return file;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" must have at most ", bytes_max, " bytes"));
}

absl::StatusOr<std::string> PieceFolder::ReadList(const std::string& name) const {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor from, OpenFile(name, kListBytesMax));
  return ReadUpTo(from.get(), kListBytesMax, absl::StrCat("Cannot read \"", name, "\""));
}

absl::StatusOr<std::vector<ProfileRecord>> PieceFolder::Records(const BlockId& process) const {
  const std::filesystem::path block = control_block::BlockFileName(process);
  const std::string name = block.stem().string() + kListSuffix;
  SYNCLINE_ASSIGN_OR_RETURN(const std::string text, ReadList(name));
  absl::StatusOr<std::vector<ProfileRecord>> listed = xspace::ParseProfileList(text);
  if (!listed.ok()) return WithContext(listed.status(), absl::StrCat("\"", name, "\""));
  std::vector<ProfileRecord> records;
  for (ProfileRecord& record : *listed) {
    if (!IsOf(process, record)) continue;
    CutTexts(&record);
    records.push_back(std::move(record));
  }
  return records;
}

absl::StatusOr<uint64_t> PieceFolder::Copy(const std::string& name, const std::filesystem::path& to,
                                           uint64_t bytes_max) const {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor from, OpenFile(name, bytes_max));
  struct stat info;
  if (::fstat(from.get(), &info) != 0) return ErrnoStatus(errno, "Cannot stat the file");
  const auto size = static_cast<uint64_t>(info.st_size);
  if (BytesBeforeHole(from.get(), size) != size) {
    return absl::InvalidArgumentError("The file has holes, thus is no profile");
  }
  const uint64_t free = FreeDiskBytes(to.parent_path());
  if (free < size || free - size < kKeepFreeBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("The agent's disk has ", free >> 20,
                                                     " MiB free, and ", kKeepFreeBytes >> 20,
                                                     " MiB must stay free"));
  }
  // So that nothing incomplete is ever found under the name.
  const std::filesystem::path part = to.string() + ".part";
  ::unlink(part.c_str());  // of an agent that was killed
  const Descriptor into(
      ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (into.get() < 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot create \"", part.string(), "\""));
  }
  // No more than was checked: it may grow meanwhile.
  absl::StatusOr<uint64_t> bytes = CopyRest(from.get(), into.get(), size);
  if (bytes.ok() && ::rename(part.c_str(), to.c_str()) != 0) {
    bytes = ErrnoStatus(errno, absl::StrCat("Cannot create \"", to.string(), "\""));
  }
  if (!bytes.ok()) ::unlink(part.c_str());
  return bytes;
}

absl::StatusOr<uint64_t> PieceFolder::Take(const std::string& name, const std::filesystem::path& to,
                                           uint64_t bytes_max) const {
  if (!IsNameOfProfile(name)) {
    return absl::InvalidArgumentError(name.size() > kTextBytesMax
                                          ? "The name of its profile is too long"
                                          : absl::StrCat("\"", name, "\" is not a profile's name"));
  }
  const absl::StatusOr<uint64_t> copied = Copy(name, to, bytes_max);
  ::unlinkat(fd_.get(), name.c_str(), 0);
  if (copied.ok()) return copied;
  return WithContext(copied.status(), absl::StrCat("The profile \"", name, "\" could not be kept"));
}

void PieceFolder::Remove(const std::string& name) const {
  if (IsNameOfProfile(name)) ::unlinkat(fd_.get(), name.c_str(), 0);
}

absl::Status PieceFolder::Clear(int entries_max) const {
  return ClearProcessFolder(fd_.get(), entries_max, IsOfAProcess);
}

}  // namespace syncline::agent
