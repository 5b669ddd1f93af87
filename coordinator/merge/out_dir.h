// SPDX-License-Identifier: Apache-2.0
// The directory that a merge writes: all of what a merge made is replaced, or nothing.
#ifndef SYNCLINE_COORDINATOR_MERGE_OUT_DIR_H_
#define SYNCLINE_COORDINATOR_MERGE_OUT_DIR_H_

#include <filesystem>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::merge {

// Files are written into staging(); Commit() puts them in the place of those that the merge before
// made, in one step, and keeps what others put beside them.
// Without Commit the destructor removes them and the directory stays as it was. What a merge that
// was killed left beside it is removed by the next one; a lock tells it from one that runs.
class OutDir {
 public:
  // FailedPrecondition when `path` exists, is not empty, and no merge made it, or is a link.
  // Changes nothing: for a refusal before the work is done.
  static absl::Status Check(const std::filesystem::path& path);
  // The same, and makes staging().
  static absl::StatusOr<OutDir> Prepare(const std::filesystem::path& path);
  OutDir(OutDir&& other) noexcept;
  OutDir& operator=(OutDir&&) = delete;
  ~OutDir();

  const std::filesystem::path& staging() const { return staging_; }
  absl::Status Commit();
  // Removes what was written so far and keeps Commit from happening: for another thread, which then
  // ends the program.
  void Abandon();

 private:
  OutDir(std::filesystem::path path, std::filesystem::path staging);

  absl::Status KeepOthers();

  std::filesystem::path path_;
  std::filesystem::path staging_;  // empty: nothing to clean up
  int lock_fd_ = -1;               // of the mark in staging_
  std::unique_ptr<std::mutex> committing_ = std::make_unique<std::mutex>();
};

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_OUT_DIR_H_
