// SPDX-License-Identifier: Apache-2.0
// A text file of evidence that is written as it goes, so that a killed agent leaves what it had. It
// ends at a limit of its size, and where the disk is full; the recording goes on.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_EVIDENCE_EVIDENCE_FILE_H_
#define SYNCLINE_AGENT_EVIDENCE_EVIDENCE_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/files.h"

namespace syncline::agent {

class EvidenceFile {
 public:
  static constexpr uint64_t kBytesMax = 256 << 20;

  explicit EvidenceFile(uint64_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // Makes evidence/`name` of a recording.
  absl::Status Create(const std::filesystem::path& recording, const char* name);
  bool is_open() const { return fd_.get() >= 0; }
  // Why nothing more is written from now on, the first time: "their file has reached 256 MiB".
  [[nodiscard]] std::optional<std::string> Write(std::string_view text);
  void Close() { fd_ = Descriptor(-1); }

 private:
  std::string Stop(std::string why);

  const uint64_t bytes_max_;
  Descriptor fd_{-1};
  uint64_t bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_EVIDENCE_FILE_H_
