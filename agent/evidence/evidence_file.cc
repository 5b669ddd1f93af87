// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/evidence_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

constexpr char kFolder[] = "evidence";

}  // namespace

absl::Status EvidenceFile::Create(const std::filesystem::path& recording, const char* name) {
  const std::filesystem::path folder = recording / kFolder;
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(folder, 0700));
  const std::filesystem::path file = folder / name;
  fd_ =
      Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (is_open()) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("Cannot create \"", file.string(), "\""));
}

std::string EvidenceFile::Stop(std::string why) {
  stopped_ = true;
  return why;
}

std::optional<std::string> EvidenceFile::Write(std::string_view text) {
  if (stopped_ || !is_open()) return std::nullopt;
  if (bytes_ + text.size() > bytes_max_) {
    std::string note;
    evidence::AppendNote("the file has reached its size limit: sampling ends here", &note);
    // If the disk is full, too, the limit is what is said.
    if (::write(fd_.get(), note.data(), note.size()) < 0) note.clear();
    return Stop(absl::StrCat("their file has reached ", bytes_max_ >> 20, " MiB"));
  }
  while (!text.empty()) {
    const ssize_t written = ::write(fd_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Stop(absl::StrCat("they cannot be written: ", std::strerror(errno)));
    text.remove_prefix(static_cast<size_t>(written));
    bytes_ += static_cast<uint64_t>(written);
  }
  return std::nullopt;
}

}  // namespace syncline::agent
