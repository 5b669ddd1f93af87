// SPDX-License-Identifier: Apache-2.0
// The timeline as Chrome's JSON, the dialect of PyTorch's profiler (Kineto): opens in
// chrome://tracing and ui.perfetto.dev, and in tools that take a directory with a file per rank.
//
// How it is laid out:
//   <directory>/rank-3.json       the processes of one rank; below <directory>/<job>/ when the job
//                                 has a name, so that each directory has every rank once
//   <directory>/nodes/<node>.json what belongs to no rank: processes without one, the node itself
//   - pid and tid are the kernel's, as the process sees itself. Where there is none (lanes, holes,
//     the node) or it is taken already (reuse, two pid namespaces), one from kMadeUpId on.
//   - "ts" and "dur" are microseconds with all digits of the nanoseconds. "ts" counts from
//     baseTimeNanoseconds (Unix time), one hour before timeline zero: tools want no negative times.
//   - Spans are complete events ("X"); one that begins with its parent stands behind it in the
//     file: readers nest by time and duration, and where both are equal by order.
//   - A flow whose two ends lie in one file is an arrow. Each end is also an event of its own with
//     the other end's place and time, since no viewer of one rank's file can draw what crosses.
//   - States of a thread are spans of the category "scheduling"; where it slept there is none.
//   - Holes are spans of the category "hole". Those of the node, the bound of its clock and what
//     happened to it are in every file that has a process of it.
// Strict JSON: bytes that are no UTF-8 become U+FFFD, numbers that are none become strings.
//
// The same calls give the same bytes. Memory: names, open spans, and what is said of nodes.
// Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_CHROME_CHROME_SINK_H_
#define SYNCLINE_EXPORT_CHROME_CHROME_SINK_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/output_file.h"
#include "timeline/sink.h"

namespace syncline::chrome {

inline constexpr int64_t kOriginNs = 3'600'000'000'000;  // timeline zero in the files
inline constexpr int64_t kMadeUpId = 10'000'000;         // kernels go up to 2^22

struct Options {
  std::filesystem::path directory;
  int64_t epoch_unix_ns = 0;  // timeline zero as Unix time; 0: unknown
};

class ChromeSink final : public timeline::TimelineSink {
 public:
  explicit ChromeSink(Options options);

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanBegin(const timeline::Span& span) override;
  void OnSpanEnd(const timeline::Span& span) override;
  void OnInstant(const timeline::Instant& instant) override;
  void OnCounter(const timeline::CounterValue& value) override;
  void OnCodeSample(const timeline::CodeSample& sample) override;
  void OnThreadState(const timeline::ThreadState& state) override;
  void OnFlow(const timeline::Flow& flow) override;
  void OnHole(const timeline::Hole& hole) override;
  void OnClockBound(const timeline::ClockBound& bound) override;
  void OnClockEvent(const timeline::ClockEvent& event) override;
  absl::Status Finish() override;

 private:
  struct HoleLane {
    int64_t tid = 0;
    TimelineTime end;
  };
  struct File {
    OutputFile out;
    std::set<int64_t> ids;     // pids and tids that are taken
    std::set<uint32_t> nodes;  // whose processes are in it
    bool empty = true;
    explicit File(std::filesystem::path path) : out(std::move(path)) {}
  };
  struct OpenSpan {
    TimelineTime begin;
    std::string deferred;  // events that begin with it and must stand behind it
  };
  struct KnownTrack {
    timeline::TrackKind kind = timeline::TrackKind::kNode;
    File* file = nullptr;
    uint32_t node = 0;
    std::string name;
    std::string whole_name;  // with its process's: for the other end of a flow
    int64_t pid = 0;
    int64_t tid = 0;
    timeline::TrackId process = timeline::kNoTrack;  // the node or process that it belongs to
    bool first_thread_known = false;                 // on processes only, as the next
    std::vector<HoleLane> hole_lanes;
    std::vector<OpenSpan> open;
  };

  File* NodeFile(uint32_t node);
  // The file of the process's rank, made at its first process.
  File* FileOf(const timeline::Track& process);
  File* AddFile(const std::filesystem::path& path, std::string_view distributed_info);
  static int64_t TakeId(int64_t wanted, File* file);
  void NameTrack(const KnownTrack& known, bool is_process, std::string_view name);
  // Starts an event in `file`'s buffer: {"ph":"X","pid":1,"tid":2,"ts":3.000
  static void Head(char phase, const KnownTrack& at, TimelineTime time, std::string* out);
  static std::string* NextEvent(File* file);
  // True: there are some.
  bool AppendArguments(const std::vector<timeline::Argument>& arguments, std::string* out) const;
  void WriteFlowEnd(const timeline::Flow& flow, bool sends);
  void WriteHole(const timeline::Hole& hole, KnownTrack* process, std::string_view lane_name);
  void WriteOfNodes();

  Options options_;
  std::vector<std::string> texts_{"\"\""};  // as JSON
  std::vector<KnownTrack> tracks_;          // by id
  std::vector<std::unique_ptr<File>> files_;
  std::map<uint32_t, File*> node_files_;
  std::map<std::pair<std::string, std::string>, std::string> job_directories_;
  std::map<std::pair<std::string, std::string>, File*> rank_files_;  // by directory and rank
  std::map<uint32_t, timeline::TrackId> node_tracks_;
  std::vector<timeline::Hole> node_holes_;
  std::vector<timeline::ClockBound> bounds_;
  std::vector<timeline::ClockEvent> clock_events_;
};

}  // namespace syncline::chrome

#endif  // SYNCLINE_EXPORT_CHROME_CHROME_SINK_H_
