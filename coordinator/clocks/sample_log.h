// The file of one edge's samples while it grows: clocks/A--B.samples.
//
// What is appended is in the file at once, so that a coordinator that is killed leaves what it has.
// Once it is two minutes old it is thinned (clocksync/thinning.h), in place and a minute at a time:
// an hour of probing needs a quarter of the bytes or less, and says the same. The file is not held
// open: a coordinator has thousands of them.
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
  absl::Status Append(std::span<const clocksync::ProbeSample> samples);

 private:
  absl::Status Thin(int fd);

  std::filesystem::path path_;
  std::string header_;
  int64_t size_bytes_ = 0;
  // From here on, and from this cell on, nothing is thinned yet.
  int64_t whole_from_bytes_ = 0;
  int64_t whole_from_cell_ = 0;
};

}  // namespace syncline::clocks

#endif  // SYNCLINE_COORDINATOR_CLOCKS_SAMPLE_LOG_H_
