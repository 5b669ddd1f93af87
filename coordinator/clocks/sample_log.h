// SPDX-License-Identifier: Apache-2.0
// The file of one edge's samples while it grows: clocks/A--B.samples.
//
// What is appended is in the file at once, so that a coordinator that is killed leaves what it has.
// What is older than a minute or two is thinned now and then (clocksync/thinning.h): an hour of
// probing needs a quarter of the bytes or less, and bounds stay as narrow. For that the file is
// written anew beside the old one and renamed, whenever a third of it can be thinned: whoever is
// killed leaves the one or the other. The file is not held open: a coordinator has thousands.
#ifndef SYNCLINE_COORDINATOR_CLOCKS_SAMPLE_LOG_H_
#define SYNCLINE_COORDINATOR_CLOCKS_SAMPLE_LOG_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "clocksync/samples.h"

namespace syncline::clocks {

class SampleLog {
 public:
  // Nothing is written before the first Append(). A file that is there is begun anew. With an empty
  // path nothing is written at all.
  SampleLog(std::filesystem::path path, std::string_view local, std::string_view remote);

  // Also of no samples: the file is there then. What failed is lost, what comes later is not.
  // DataLoss: somebody removed or cut the file meanwhile; it begins anew with these samples.
  absl::Status Append(std::span<const clocksync::ProbeSample> samples);

 private:
  absl::Status Write(std::span<const clocksync::ProbeSample> samples);
  // Whether enough can be thinned for the file to be written anew.
  bool IsRipe(const clocksync::ProbeSample& newest) const;
  absl::Status Thin(int64_t newest_cell);

  std::filesystem::path path_;
  std::string header_;
  int64_t size_bytes_ = 0;
  // From here on, and from this cell on, nothing is thinned yet.
  int64_t whole_from_bytes_ = 0;
  int64_t whole_from_cell_ = 0;
};

}  // namespace syncline::clocks

#endif  // SYNCLINE_COORDINATOR_CLOCKS_SAMPLE_LOG_H_
