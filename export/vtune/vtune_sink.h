// SPDX-License-Identifier: Apache-2.0
// The timeline as data that Intel VTune imports: one CSV per node, "<node>-hostname-<host>.csv",
// because VTune takes a file for the machine whose result it is laid over, and no other.
//
// Columns as Intel's user guide has them ("Create a CSV File with External Data"):
//   name,start_tsc.CLOCK_MONOTONIC_RAW,end_tsc,pid,tid
// with the node's own CLOCK_MONOTONIC_RAW in ns; a row with pid and tid is a task, one without is a
// frame. Where nothing relates the traces to that clock (they came without a recording), the times
// are the node's own wall clock, "start_tsc.UTC", as "2013-08-28 01:02:03.000400000".
//
// Spans of threads become tasks; ITT frames, overlapped tasks and user events, which belong to no
// thread, become frames. One of which not all was seen has " (cut)" behind its name, or " (events
// were lost)". Waits, collectives, lanes of profiles, counters, flows and holes stay out. The guide
// does not say how a name may hold a comma or a quote: both are replaced.
//
// Never run against VTune, which is not at hand: the contract is Intel's text.
// The same calls give the same bytes. Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_VTUNE_VTUNE_SINK_H_
#define SYNCLINE_EXPORT_VTUNE_VTUNE_SINK_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/output_file.h"
#include "timeline/sink.h"

namespace syncline::vtune {

// "<node>-hostname-<host>.csv".
std::string CsvFileName(const std::string& node, const std::string& hostname);

struct Node {
  std::string name;
  std::string hostname;
  enum class Clock { kMonotonicRaw, kUtc } clock = Clock::kMonotonicRaw;
  // What `clock` read on the node when the timeline was at a time, ns; mostly asked forwards.
  std::function<int64_t(TimelineTime)> clock_ns;
};

class VtuneSink final : public timeline::SpanSink {
 public:
  VtuneSink(const std::filesystem::path& directory, std::vector<Node> nodes);

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanEnd(const timeline::Span& span) override;
  absl::Status Finish() override;

 private:
  struct KnownTrack {
    bool shown = false;
    uint32_t node = 0;
    std::string owner;  // "pid,tid"; "," for frames
  };

  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<OutputFile>> files_;  // beside nodes_
  std::vector<std::string> texts_{"unnamed"};       // as names in a CSV
  std::vector<KnownTrack> tracks_;                  // by id
};

// "2013-08-28 01:02:03.000400000", of any time since 1970, in any time zone and locale.
std::string UtcText(int64_t unix_ns);

}  // namespace syncline::vtune

#endif  // SYNCLINE_EXPORT_VTUNE_VTUNE_SINK_H_
