// SPDX-License-Identifier: Apache-2.0
// The results of Intel VTune that lie beside a recording, and which spans of their processes are
// worth a look there: of each name the longest, and of those the longest few.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_ANALYSIS_VTUNE_RESULTS_H_
#define SYNCLINE_ANALYSIS_VTUNE_RESULTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/identity.h"
#include "common/time.h"
#include "timeline/sink.h"

namespace syncline::analysis {

struct VtuneSpan {
  std::string name;
  int32_t tid = 0;
  TimelineTime begin;
  TimelineTime end;
  // The same since VTune began its collection, which is known only to lie between two instants:
  // these two contain the span in any case.
  int64_t since_begin_ns = 0;
  int64_t since_end_ns = 0;
};

// When one of VTune's commands ran, less the instant at which it was to take effect.
struct VtuneDelay {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

struct VtuneResult {
  ProcessKey process;
  int32_t pid = 0;  // as the node's agent saw it
  int32_t rank = -1;
  std::string analysis;
  std::string version;
  std::string path;    // in the recording's directory; empty: no result was kept
  uint64_t bytes = 0;  // of the result
  std::string problem;
  std::optional<VtuneDelay> resumed;  // behind the begin of the window
  std::optional<VtuneDelay> stopped;  // behind its end
  // Between these, by the node's CLOCK_MONOTONIC_RAW, the collection began. 0: it did not.
  int64_t zero_after_raw_ns = 0;
  int64_t zero_before_raw_ns = 0;
  std::vector<VtuneSpan> spans;  // the longest first
};

class VtuneSpanSink final : public timeline::SpanSink {
 public:
  explicit VtuneSpanSink(std::vector<VtuneResult> results);

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanEnd(const timeline::Span& span) override;

  // With their spans, whose times since VTune's begin are not filled in.
  std::vector<VtuneResult> Take();

 private:
  struct Thread {
    size_t result = 0;
    int32_t tid = 0;
  };

  std::vector<VtuneResult> results_;
  std::map<ProcessKey, size_t> processes_;
  std::map<timeline::TrackId, Thread> threads_;
  std::vector<std::string> texts_;
  // Beside results_: by the name without its numbers.
  std::vector<std::map<std::string, VtuneSpan>> longest_;
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_VTUNE_RESULTS_H_
