// SPDX-License-Identifier: Apache-2.0
// A recording again, with the clock samples of one node shifted: what is then said of its clock is
// wrong by a known time.
#ifndef SYNCLINE_COORDINATOR_SELFTEST_SHIFTED_CLOCK_H_
#define SYNCLINE_COORDINATOR_SELFTEST_SHIFTED_CLOCK_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace syncline::selftest {

// A directory of its own below the system's for temporary files, removed at the end.
class ScratchDirectory {
 public:
  static absl::StatusOr<ScratchDirectory> Make();
  ScratchDirectory(ScratchDirectory&& other) noexcept;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// `bytes` of a clocks/*.samples with the stamps of `node`, where it takes part, later by
// `shift_ns`. InvalidArgument: no such file.
absl::StatusOr<std::string> ShiftSamples(std::string_view bytes, const std::string& node,
                                         int64_t shift_ns);

// Makes `copy`: the recording `run`, whose traces are linked and not copied, with the samples
// shifted as above and a model made of these. NotFound: no samples of this node.
absl::Status CopyWithShiftedClock(const std::filesystem::path& run, const std::string& node,
                                  int64_t shift_ns, const std::filesystem::path& copy);

}  // namespace syncline::selftest

#endif  // SYNCLINE_COORDINATOR_SELFTEST_SHIFTED_CLOCK_H_
