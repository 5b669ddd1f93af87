// SPDX-License-Identifier: Apache-2.0
// Recording as a part of another command: `syncline why` without a recording makes one first.
#ifndef SYNCLINE_COORDINATOR_CLI_RECORD_RUN_H_
#define SYNCLINE_COORDINATOR_CLI_RECORD_RUN_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/cli/context.h"

namespace syncline::cli {

struct RecordRun {
  int64_t window_ns = 0;
  std::string directory;  // to be made; empty: run-ID
  bool allow_missing = false;
  bool no_evidence = false;  // no samples of processor time
};

// Records the targets with `record`'s defaults and shows what `record` shows while it lasts. The
// recording's directory; an error means that there is none.
absl::StatusOr<std::filesystem::path> RecordFor(const Context& context, const RecordRun& run);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_RECORD_RUN_H_
