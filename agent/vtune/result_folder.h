// SPDX-License-Identifier: Apache-2.0
// Where VTune, running as a user, leaves a result: a folder of that user's below /var/tmp, until
// the result is copied into the recording.
//
// Whatever lies there is the user's. It is reached from the folder's own descriptor, by openat2
// that follows no link and crosses no mount, and only regular files of the user's are taken.
// Not thread-safe.
#ifndef SYNCLINE_AGENT_VTUNE_RESULT_FOLDER_H_
#define SYNCLINE_AGENT_VTUNE_RESULT_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/files.h"

namespace syncline::agent {

struct CopyLimits {
  uint64_t bytes_max = 0;
  size_t entries_max = 20'000;                        // guess: VTune makes some hundred
  std::function<bool()> late = [] { return false; };  // asked before each file
};

struct CopiedResult {
  uint64_t bytes = 0;
  size_t left_out = 0;       // links, other users' files, what is no file, names that are no UTF-8,
                             // what could not be opened
  size_t data_left_out = 0;  // of these, files and folders
};

class ResultFolder {
 public:
  // Makes one, `uid`'s alone, below `work`.
  static absl::StatusOr<ResultFolder> Make(const std::filesystem::path& work, uint32_t uid);

  const std::filesystem::path& path() const { return path_; }

  // Copies what is below `name` in it to `to`. NotFound: there is none. ResourceExhausted,
  // DeadlineExceeded: a limit is reached; what was copied until then stays.
  absl::StatusOr<CopiedResult> Copy(const std::string& name, const std::filesystem::path& to,
                                    const CopyLimits& limits) const;
  // Removes it, with everything in it that can be removed.
  void Remove() const;

 private:
  ResultFolder(std::filesystem::path path, Descriptor fd, uint32_t uid)
      : path_(std::move(path)), fd_(std::move(fd)), uid_(uid) {}

  std::filesystem::path path_;
  Descriptor fd_;
  uint32_t uid_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_VTUNE_RESULT_FOLDER_H_
