// SPDX-License-Identifier: Apache-2.0
// Opens what `merge` is given: a recording, or CTF trace directories, as nodes ready for the
// builder.
#ifndef SYNCLINE_COORDINATOR_MERGE_INPUTS_H_
#define SYNCLINE_COORDINATOR_MERGE_INPUTS_H_

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/analyse.h"
#include "clocksync/clock_model.h"
#include "common/event_cursor.h"
#include "coordinator/merge/input_list.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/open_traces.h"
#include "coordinator/recording/recording.h"
#include "ctf/packet_walker.h"
#include "timeline/builder.h"
#include "timeline/node_input.h"

namespace syncline::merge {

// Everything opened. `nodes` point into the rest; movable as a whole.
struct OpenedInputs {
  std::filesystem::path run;  // of a recording, else empty
  std::optional<recording::Recording> recording;
  std::unique_ptr<clocksync::ClockModel> model;   // nullptr for trace directories
  std::unique_ptr<clocksync::ClockModel> likely;  // under `assumption`; nullptr: nothing is likely
  analysis::Assumption assumption;
  bool bounds_hold = true;                          // false: what was recorded contradicts `model`
  bool likely_holds = true;                         // the same of `likely`
  std::optional<analysis::FileClocks> file_clocks;  // of profiles without a recording
  std::unique_ptr<timeline::Collectives> collectives;  // that these show; `build` points to them
  struct TraceAt {
    std::string node;
    std::filesystem::path path;
    std::map<std::string, ctf::StreamBefore> before;  // of its files that go on from others
  };
  std::vector<std::unique_ptr<TraceReader>> readers;
  std::vector<TraceAt> traces;  // those of CTF among `readers`
  std::vector<std::unique_ptr<timeline::Placement>> placements;
  std::vector<std::unique_ptr<timeline::WallPlacement>> walls;
  std::vector<timeline::NodeInput> nodes;
  std::vector<analysis::NodeFacts> facts;  // beside `nodes`
  std::optional<uint32_t> reference;       // index into `nodes`
  timeline::BuildOptions build;
  int64_t epoch_unix_ns = 0;  // of timeline zero, for display
  std::vector<std::string> complaints;
  std::vector<std::string> notes;  // hints for whoever typed the command; never written to a file
  bool incomplete = false;
  bool begins_late = false;  // packets came before the first that is here

  // What statements across nodes may rest on.
  analysis::Models models() const {
    return {bounds_hold ? model.get() : nullptr,
            bounds_hold && likely_holds ? likely.get() : nullptr};
  }
  // What counts and tables are of: what it was cut to, or the recording's window.
  const std::optional<timeline::Interval>& CountedWindow() const {
    return build.cut.has_value() ? build.cut : build.window;
  }
};

// NotFound, InvalidArgument or DataLoss when there is nothing to merge at all.
absl::StatusOr<OpenedInputs> OpenInputs(const InputOptions& options);
// The same of inputs that were listed already.
absl::StatusOr<OpenedInputs> OpenInputs(const InputOptions& options, const InputList& list);

// Its two ways (recordings are in inputs.cc), and what both do with a trace.
absl::StatusOr<OpenedInputs> OpenDirectories(const InputOptions& options, const InputList& list);
// `--nodes`: nothing wanted is all. InvalidArgument: one is wanted that is not among `names`.
bool IsWanted(const std::vector<std::string>& wanted, const std::string& name);
absl::Status CheckNodeNames(const std::vector<std::string>& wanted,
                            const std::vector<std::string>& names);
void AddChain(const ChainedTraces& chained, const std::string& node, OpenedInputs* inputs);
void AddTrace(OpenedTrace trace, timeline::NodeInput* node, OpenedInputs* inputs);
void AddLoss(UnreadableTrace trace, timeline::NodeInput* node, OpenedInputs* inputs);

// Control blocks and recording.json joined: who ran on the node, with names. A file that is
// missing, damaged or cut becomes a complaint: something is lost.
struct KnownProcesses {
  std::vector<timeline::KnownProcess> processes;
  std::vector<std::string> complaints;
};
KnownProcesses ReadProcesses(const recording::Layout& layout, const recording::NodeRecord& node);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_INPUTS_H_
