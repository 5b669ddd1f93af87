// TensorFlow's profiles of a node, as a recording holds them: nodes/<node>/xspace/profiles.json and
// the XSpaces beside it.
#ifndef SYNCLINE_COORDINATOR_MERGE_PROFILES_H_
#define SYNCLINE_COORDINATOR_MERGE_PROFILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "common/time.h"
#include "coordinator/recording/recording.h"
#include "timeline/node_input.h"

namespace syncline::merge {

// One entry of profiles.json. Times are the host's CLOCK_REALTIME; 0, "": not known.
struct ProfileRecord {
  std::string file;  // empty when nothing came
  int32_t own_pid = 0;
  uint64_t pid_namespace_inode = 0;
  uint64_t start_ticks = 0;
  std::string task;
  int32_t piece = 0;
  int64_t asked_start_realtime_ns = 0;
  int64_t asked_duration_ns = 0;
  int64_t begin_realtime_ns = 0;
  int64_t end_realtime_ns = 0;
  std::string state;  // complete, cut, busy, missing, failed, empty
  std::string failure;
  uint64_t bytes = 0;
};

// InvalidArgument for text that is no profiles.json of a format_version this program reads.
absl::StatusOr<std::vector<ProfileRecord>> ParseProfiles(std::string_view json);

struct OpenedProfiles {
  std::vector<std::unique_ptr<TraceReader>> readers;
  std::vector<timeline::ProfileInput> profiles;  // point into `readers`
  std::vector<std::string> complaints;
  bool incomplete = false;
};

// What is damaged or gone becomes losses and complaints. A job whose profiler was busy, or that has
// none, is named, and is not incomplete for that.
OpenedProfiles ReadProfiles(const recording::Layout& layout, const std::string& node);

// Tensors between nodes as facts that a clock model must agree with: the begin of a send is before
// its receive. Nodes are numbered as in the recording.
std::vector<CausalPair> CausalPairsOf(const recording::Layout& layout,
                                      const recording::Recording& recording);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_PROFILES_H_
