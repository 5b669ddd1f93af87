// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "agent/host/process_folder.h"
#include "common/files.h"
#include "common/status.h"
#include "common/trusted_file.h"

namespace syncline::agent {
namespace {

constexpr char kFolder[] = "stacks";
constexpr char kSuffix[] = ".stacks";
constexpr char kUnfinished[] = ".new";
// Parsed, it can take two hundred times its size.
constexpr uint64_t kBytesMax = 256 << 10;

// Whether a process's answer has such a name.
bool IsAnswer(std::string_view name) {
  if (name.ends_with(kUnfinished)) name.remove_suffix(std::string_view(kUnfinished).size());
  if (!name.ends_with(kSuffix)) return false;
  name.remove_suffix(std::string_view(kSuffix).size());
  return IsStemOfProcess(name);
}

}  // namespace

absl::StatusOr<std::string> ReadStackFile(const std::filesystem::path& runtime, uint32_t uid,
                                          const control_block::BlockId& process,
                                          std::optional<StackFileVersion>* seen) {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor folder, OpenProcessFolder(runtime, uid, kFolder));
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

absl::Status ClearStackFolder(const std::filesystem::path& runtime, uint32_t uid, int entries_max) {
  const auto folder = OpenProcessFolder(runtime, uid, kFolder);
  if (!folder.ok()) return absl::OkStatus();  // nothing is read there either
  return ClearProcessFolder(folder->get(), entries_max, IsAnswer);
}

}  // namespace syncline::agent
