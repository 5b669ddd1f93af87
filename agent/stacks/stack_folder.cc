// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/status.h"
#include "common/trusted_file.h"
#include "control_block/live_block.h"

namespace syncline::agent {
namespace {

constexpr char kFolder[] = "stacks";
constexpr char kSuffix[] = ".stacks";
constexpr char kUnfinished[] = ".new";
constexpr int kEntriesMax = 8192;
// Parsed, it can take two hundred times its size.
constexpr uint64_t kBytesMax = 256 << 10;

absl::StatusOr<Descriptor> OpenFolder(const std::filesystem::path& runtime, uint32_t uid) {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor parent,
                            control_block::OpenRuntimeDirectory(runtime, uid));
  return OpenTrustedDirectory(parent.get(), kFolder, {.owner = uid});
}

// Whether a process's answer has such a name; the user may keep other things there.
bool IsAnswer(absl::string_view name) {
  name = absl::StripSuffix(name, kUnfinished);
  if (!absl::EndsWith(name, kSuffix)) return false;
  return control_block::ParseBlockFileName(absl::StrCat(absl::StripSuffix(name, kSuffix), ".block"))
      .has_value();
}

}  // namespace

absl::StatusOr<std::string> ReadStackFile(const std::filesystem::path& runtime, uint32_t uid,
                                          const control_block::BlockId& process,
                                          std::optional<StackFileVersion>* seen) {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor folder, OpenFolder(runtime, uid));
  const std::filesystem::path block = control_block::BlockFileName(process);
  const std::string name = block.stem().string() + kSuffix;
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor file,
                            OpenTrustedFile(folder.get(), name, {.owner = uid, .flags = O_RDONLY}));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("Cannot stat \"", name, "\""));
  }
  const StackFileVersion version = {
      .inode = info.st_ino,
      .modified_ns = info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec,
      .size = info.st_size};
  if (*seen == version) return absl::NotFoundError("nothing new");
  *seen = version;
  if (static_cast<uint64_t>(info.st_size) > kBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" must have at most ", kBytesMax, " bytes"));
  }
  return ReadUpTo(file.get(), kBytesMax, absl::StrCat("Cannot read \"", name, "\""));
}

void ClearStackFolder(const std::filesystem::path& runtime, uint32_t uid) {
  const auto folder = OpenFolder(runtime, uid);
  if (!folder.ok()) return;
  const int again = ::openat(folder->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(again), ::closedir);
  for (int i = 0; i < kEntriesMax; ++i) {
    const dirent* entry = listing ? ::readdir(listing.get()) : nullptr;
    if (entry == nullptr) return;
    const auto* name = static_cast<const char*>(entry->d_name);
    if (IsAnswer(name)) ::unlinkat(folder->get(), name, 0);
  }
}

}  // namespace syncline::agent
