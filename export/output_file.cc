// SPDX-License-Identifier: Apache-2.0
#include "export/output_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline {

void OutputFile::Flush() {
  if (status_.ok() && !made_) status_ = MakeDirectories(path_.parent_path());
  if (status_.ok()) {
    const Descriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                                 0644));  // NOLINT(*-vararg)
    made_ = true;
    status_ = file.get() < 0 ? ErrnoStatus(errno, absl::StrCat("cannot write ", path_.string()))
                             : AppendWhole(file.get(), buffer_, path_);
  }
  buffer_.clear();
}

absl::Status OutputFile::Close() {
  Flush();
  return status_;
}

std::string FileNameOf(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  std::replace(name.begin(), name.end(), '\0', '_');
  return name.empty() || name.starts_with('.') ? absl::StrCat("_", name) : name;
}

}  // namespace syncline
