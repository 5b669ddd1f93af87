// SPDX-License-Identifier: Apache-2.0
// Keeps, while the timeline streams by, what TensorFlow's executors did: the spans of the lanes of
// its profiles.
//
// Memory: 40 bytes for each operator, and each call of an executor. Thread-safety: one thread.
#ifndef SYNCLINE_ANALYSIS_WHY_CUT_COLLECTOR_H_
#define SYNCLINE_ANALYSIS_WHY_CUT_COLLECTOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/why/cut_model.h"
#include "common/identity.h"
#include "timeline/sink.h"

namespace syncline::analysis::why {

// Of one process; its task and node are not known here.
struct CutCollected {
  std::vector<std::string> names;
  std::vector<bool> receives;  // as in CutInput
  std::map<ProcessKey, CutPartition> partitions;
};

class CutCollector final : public timeline::SpanSink {
 public:
  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanEnd(const timeline::Span& span) override;

  // Once, after everything was pushed.
  CutCollected Take();

 private:
  struct Lane {
    ProcessKey process;
    std::vector<CutSpan> spans;
    std::map<int64_t, int64_t> begun;  // steps, by id
    std::map<int64_t, int64_t> done;
  };

  // What the span's argument says; 0: nothing.
  timeline::TextId TextOf(const timeline::Span& span, std::string_view key) const;

  std::vector<std::string> texts_{""};
  std::vector<bool> receives_{false};  // beside texts_
  std::map<timeline::TrackId, Lane> lanes_;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_CUT_COLLECTOR_H_
