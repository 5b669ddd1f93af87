// SPDX-License-Identifier: Apache-2.0
// What the agent says of one result of VTune: vtune/<pid>/syncline-vtune.json in the recording of a
// node, beside the result itself (vtune/<pid>/result). Versioned JSON: readers skip keys that they
// do not know. Thread-safe: no state.
#ifndef SYNCLINE_VTUNE_RESULT_RECORD_H_
#define SYNCLINE_VTUNE_RESULT_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::vtune {

inline constexpr char kFolder[] = "vtune";
inline constexpr char kRecordFile[] = "syncline-vtune.json";
inline constexpr char kResultFolder[] = "result";

// One of VTune's commands, as it ran, by the node's CLOCK_MONOTONIC_RAW.
struct CommandRun {
  std::vector<std::string> arguments;
  int64_t begin_raw_ns = 0;  // 0: it was not run
  int64_t end_raw_ns = 0;    // when it was seen to have ended; 0: it had not
  int exit_code = -1;        // -1: it had not ended
};

struct ResultRecord {
  std::string analysis;
  std::string version;  // of VTune, as it says itself
  int32_t pid = 0;      // as the agent sees the process
  int32_t own_pid = 0;  // as it sees itself
  int64_t pid_namespace_inode = 0;
  uint64_t start_ticks = 0;
  uint32_t uid = 0;
  int32_t rank = -1;
  CommandRun collect;
  int64_t ready_raw_ns = 0;  // VTune had said that the collection has begun; 0: it had not
  CommandRun resume;
  CommandRun stop;
  uint64_t bytes = 0;   // of the result that was kept; 0: none
  std::string problem;  // what went wrong; empty: nothing
};

std::string FormatRecord(const ResultRecord& record);

// DataLoss: it is none, or of a later version.
absl::StatusOr<ResultRecord> ParseRecord(std::string_view text);

}  // namespace syncline::vtune

#endif  // SYNCLINE_VTUNE_RESULT_RECORD_H_
