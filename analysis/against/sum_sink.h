// SPDX-License-Identifier: Apache-2.0
// Adds up, while the timeline streams by, how long what is named the same took in each unit of a
// recording. What was not recorded whole is left out, as in the report.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_ANALYSIS_AGAINST_SUM_SINK_H_
#define SYNCLINE_ANALYSIS_AGAINST_SUM_SINK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/against/recording_sums.h"
#include "analysis/report.h"
#include "timeline/sink.h"

namespace syncline::analysis::against {

class SumSink final : public timeline::SpanSink {
 public:
  // `report` is that of the same input, from which `recording` was made; the sink adds its rows to
  // `recording` in Finish(). Both outlive it.
  SumSink(const Report& report, Recording* recording);

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanEnd(const timeline::Span& span) override;
  absl::Status Finish() override;

 private:
  struct KnownTrack {
    timeline::TrackKind kind = timeline::TrackKind::kFleet;
    bool overlapping = false;
    uint32_t node = 0;
    size_t member = SIZE_MAX;  // SIZE_MAX: of none
  };

  std::optional<RowKind> KindOf(const KnownTrack& track, timeline::TextId category) const;
  // What is added up is not per step or second yet.
  struct Adding {
    Sums sums;
    std::vector<uint32_t> calls;  // by unit
  };

  Adding* AddingOf(RowKind kind, const timeline::Span& span);

  Recording& recording_;
  std::map<std::pair<uint32_t, std::string>, size_t> members_;  // by node and process
  std::vector<std::string> texts_{""};
  std::vector<KnownTrack> tracks_;  // by id
  std::vector<size_t> hints_;       // by node: the unit of its last task
  std::map<RowName, Adding> rows_;
  std::unordered_map<uint64_t, Adding*> known_;  // by kind, category and name; in rows_
  bool from_recording_;
};

}  // namespace syncline::analysis::against

#endif  // SYNCLINE_ANALYSIS_AGAINST_SUM_SINK_H_
