// SPDX-License-Identifier: Apache-2.0
// A timeline that is larger than its viewer takes, in pieces.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_SHARDS_H_
#define SYNCLINE_COORDINATOR_MERGE_SHARDS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "timeline/builder.h"

namespace syncline::merge {

struct Shards {
  std::vector<std::string> files;  // names in `staging`
  std::string note;                // what they are, one line
  uint64_t largest_bytes = 0;      // of the windows
};

// Builds the timeline once more, into timeline/NNN.perfetto-trace, windows of equal length, and
// timeline.perfetto-trace, an overview, in place of the one that was too large with `bytes`. Where
// one window holds so much that it is too large again, it is done with more windows.
// `build` is how it was built, `covered` what there is of what it was cut to.
absl::StatusOr<Shards> WriteShards(const MergeOptions& options, const OpenedInputs& inputs,
                                   const timeline::BuildOptions& build, timeline::Interval covered,
                                   uint64_t bytes, const std::filesystem::path& staging);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_SHARDS_H_
