// SPDX-License-Identifier: Apache-2.0
// `syncline merge`, `events` and `report` without their command lines.
//
// An input is the directory of one recording, or any number of CTF trace directories (LTTng's own
// output from anywhere), or any number of profiles or tables of spans (profile_files.h), each
// "PATH" or "NAME=PATH". A recording is placed on the timeline by its clock model, the others by
// their own wall clocks, with the bound unknown.
//
// What cannot be read is named, kept where it is and left out; the rest is merged, and `incomplete`
// is set (exit status 3). Everything written is a function of the inputs alone: the same bytes from
// any directory, time zone and locale.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_MERGE_H_
#define SYNCLINE_COORDINATOR_MERGE_MERGE_H_

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "analysis/report.h"
#include "clocksync/clock_model.h"
#include "common/time.h"

namespace syncline::merge {

// How nodes are laid on one timeline.
enum class Alignment : uint8_t {
  kModel,      // by the recording's clock model
  kWallClock,  // by each node's wall clock: what other tools do; for comparison and tests only
};

struct InputOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> nodes;  // of these only; empty: all
  bool refit = false;              // a recording: build the model anew from the raw clock samples
  Alignment align = Alignment::kModel;
  bool without_bounds = false;  // place by the model, but believe no bound of it
  // What is called likely assumes that paths are at most so asymmetric (clock_model.h);
  // kAsymmetryPercentAny: nothing is.
  int64_t asymmetry_percent = clocksync::kAsymmetryPercentUsual;
};

// [from, to) of the timeline; nullopt: as far as there is something.
struct Range {
  std::optional<TimelineTime> from;
  std::optional<TimelineTime> to;
};

// Of a range: how far before it is read for what lasts until then (timeline/look_back.h says what
// a part cannot tell).
struct LookBack {
  enum class How : uint8_t {
    kAuto,    // everything, but where more than 2 minutes lie outside of the range kAtMost
    kAll,     // everything
    kAtMost,  // `most_ns`
  };
  How how = How::kAuto;
  int64_t most_ns = 32'000'000'000;
};

// What is being read.
struct Progress {
  std::string_view node;
  TimelineTime time;
  uint64_t events = 0;      // of the node, so far
  bool before_cut = false;  // what lies before Range::from, for what of it lasts until then
};

struct MergeOptions {
  InputOptions input;
  std::filesystem::path out_dir;  // empty: RUN/out; required for trace directories
  std::vector<std::string> formats = {"perfetto"};
  Range range;  // of the timeline and the report
  // Names of events, "*" for any characters; none: all. Of the timeline, the tables and what the
  // report says of tasks; what takes several events is shown whole (timeline/shown_events.h).
  std::vector<std::string> events;
  LookBack look_back;
  bool critical_path = false;  // drawn as a lane; takes what `why` takes, and reads the input twice
  std::optional<std::string> job;  // whose, where the recording has several
  // For format "parquet": Python interpreters that may have pyarrow, looked up in PATH.
  std::vector<std::string> pythons = {"python3"};
  // A Perfetto file that would be larger is written in pieces: viewers hold it in memory, several
  // times as large.
  uint64_t perfetto_bytes_max = uint64_t{1} << 30;
  unsigned threads = 0;  // 0: one per processor; what is written does not depend on it
  // Called now and then while it lasts, if it is given.
  std::function<void(const Progress&)> progress;
  // When it stops, what was written so far is removed, an earlier merge stays, and `leave` is
  // called by whoever stopped it; it must end the program.
  std::stop_token interrupt;
  std::function<void()> leave = [] { std::abort(); };
};

struct MergeResult {
  std::filesystem::path out_dir;
  std::vector<std::string> files;  // names in out_dir
  analysis::Report report;
  bool incomplete = false;
  std::vector<std::string> complaints;  // one line each, for people
  std::vector<std::string> notes;       // hints, likewise; in no file
};

// Replaces what an earlier merge made in out_dir, and only when everything was written.
// FailedPrecondition: out_dir is not empty and not an earlier merge's, or lies inside an input;
// InvalidArgument: unknown format, node or event, mixed inputs, an interval in which nothing lies,
// a CTF copy of some events, a critical path that is not known.
absl::StatusOr<MergeResult> Merge(const MergeOptions& options);

enum class EventFormat : uint8_t { kText, kJsonLines };

struct EventsResult {
  uint64_t events = 0;
  bool incomplete = false;
  std::vector<std::string> complaints;
  std::vector<std::string> notes;
};

struct EventsOptions {
  InputOptions input;
  EventFormat format = EventFormat::kText;
  Range range;
  // As in MergeOptions, but exactly these; "name:PATTERN": those with such a name.
  std::vector<std::string> events;
  bool raw = false;      // ids as they were recorded, not what they stand for
  unsigned threads = 0;  // 0: one per processor; the same lines for any number
};

// Every event in timeline order: by time, node, stream, as the stream has them; of a node, those of
// its traces before those of TensorFlow's profiles. A reader that closes its end of a pipe is no
// error.
absl::StatusOr<EventsResult> PrintEvents(const EventsOptions& options, std::ostream* out);

struct ReportOptions {
  InputOptions input;
  // "[DOMAIN:]NAME": which tasks are the job's steps; not given: found by their names.
  std::optional<std::string> step;
};
// InvalidArgument: no task is called as options.step says; the message has those that could be
// meant.
absl::StatusOr<analysis::Report> MakeReport(const ReportOptions& options);

// The report's picture: two steps of every node (or a stretch of the middle where nothing is
// marked). InvalidArgument: profiles, of which it would show nothing.
absl::StatusOr<std::string> MakePicture(const ReportOptions& options,
                                        const analysis::Report& report);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_MERGE_H_
