// SPDX-License-Identifier: Apache-2.0
#include "agent/host/process_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/trusted_file.h"
#include "control_block/block_file.h"
#include "control_block/live_block.h"

namespace syncline::agent {
namespace {

bool IsDots(std::string_view name) { return name == "." || name == ".."; }

bool IsRegular(int folder, const char* name) {
  struct stat info;
  return ::fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

absl::StatusOr<Descriptor> OpenProcessFolder(const std::filesystem::path& runtime, uint32_t uid,
                                             const char* name) {
  SYNCLINE_ASSIGN_OR_RETURN(const Descriptor parent,
                            control_block::OpenRuntimeDirectory(runtime, uid));
  return OpenTrustedDirectory(parent.get(), name, {.owner = uid});
}

bool IsStemOfProcess(std::string_view text) {
  return control_block::ParseBlockFileName(std::string(text) + ".block").has_value();
}

absl::Status ClearProcessFolder(int folder, int entries_max,
                                const std::function<bool(std::string_view)>& ours) {
  Descriptor again(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (again.get() < 0) return ErrnoStatus(errno, "cannot be listed");
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(again.get()), ::closedir);
  if (!listing) return ErrnoStatus(errno, "cannot be listed");
  again.Release();
  int entries = 0;
  while (const dirent* entry = ::readdir(listing.get())) {
    const auto* name = static_cast<const char*>(entry->d_name);
    if (IsDots(name)) continue;
    if (++entries > entries_max) {
      return absl::OutOfRangeError(absl::StrCat(
          "has more than ", entries_max,
          " files, so that old ones of Syncline may be left there: remove the others"));
    }
    if (ours(name) && IsRegular(folder, name)) ::unlinkat(folder, name, 0);
  }
  return absl::OkStatus();
}

}  // namespace syncline::agent
