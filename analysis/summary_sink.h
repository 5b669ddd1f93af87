// SPDX-License-Identifier: Apache-2.0
// Collects, while the timeline streams by, what the report is made of: totals by name, the steps
// that the job marks (or its optimizers), and for nodes that mark none, when they were busy.
//
// Memory: names, steps, holes, and at most kClustersMax intervals per node (neighbours are joined
// beyond that). Thread-safety: one thread.
#ifndef SYNCLINE_ANALYSIS_SUMMARY_SINK_H_
#define SYNCLINE_ANALYSIS_SUMMARY_SINK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/optimizer_steps.h"
#include "analysis/report.h"
#include "timeline/sink.h"

namespace syncline::analysis {

// Some tasks of one node without a pause between them.
struct Cluster {
  TimelineTime begin;
  TimelineTime end;
  NodeTime node_begin;
  NodeTime node_end;
  uint64_t tasks = 0;
};

// Joins intervals that touch; beyond a limit, also those with small pauses between them.
class BusyIntervals {
 public:
  static constexpr size_t kClustersMax = 200'000;

  explicit BusyIntervals(size_t clusters_max = kClustersMax) : clusters_max_(clusters_max) {}
  // In order of end.
  void Add(const Cluster& task);
  const std::vector<Cluster>& clusters() const { return clusters_; }

 private:
  bool Join(std::vector<Cluster>* clusters, const Cluster& next) const;

  size_t clusters_max_;
  int64_t pause_ns_ = 0;
  std::vector<Cluster> clusters_;
};

class SummarySink final : public timeline::SpanSink {
 public:
  // `step`: which tasks are steps, "[DOMAIN:]NAME" with numbers as they are or as "#"; not given:
  // by the look of their names.
  explicit SummarySink(std::optional<std::string> step = {}) : step_(std::move(step)) {}

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanBegin(const timeline::Span& span) override;
  void OnSpanEnd(const timeline::Span& span) override;
  void OnHole(const timeline::Hole& hole) override;

  struct Series {
    StepSeries series;
    uint16_t depth = 0;
    bool frames = false;
    bool marked = true;  // else: between the steps of an optimizer
    timeline::TrackId process_track = timeline::kNoTrack;
    int64_t total_ns = 0;
  };

  // Sorted by domain, then total (largest first). Node names are left to the caller: `node` holds
  // indices.
  struct Total {
    uint32_t node = 0;
    TaskTotal total;
  };
  std::vector<Total> TakeTotals() const;
  // The likeliest first: tasks before frames, outermost first, then most time. Of a process that
  // marks none, those between the steps of its optimizers.
  std::vector<Series> TakeSteps() const;
  // InvalidArgument when no task is called as `step` says; the message has the names that could be
  // meant.
  absl::Status CheckStep() const;
  // Outermost tasks by node.
  const std::map<uint32_t, BusyIntervals>& busy() const { return busy_; }

 private:
  struct KnownTrack {
    timeline::TrackId parent = timeline::kNoTrack;
    timeline::TrackId process_track = timeline::kNoTrack;
    uint32_t node = 0;
    bool thread = false;
    bool lane = false;
    bool frames = false;
    bool overlapping = false;
    std::string process;
  };
  // A row of the totals, or a pattern of steps: texts that several names may have in common.
  using RowId = uint32_t;
  static constexpr RowId kNoRow = UINT32_MAX;
  // What is known of a text when it is a task's name, as soon as it was asked for.
  struct Name {
    RowId pattern = kNoRow;
    RowId itself = kNoRow;
    bool is_looked_at = false;
    bool looks_like_step = false;
    bool is_optimizer = false;
    // Where it was counted last: mostly it is counted there again.
    uint32_t node = 0;
    timeline::TextId category = timeline::kNoText;
    RowId row = kNoRow;
    bool overlapping = false;
    TaskTotal* total = nullptr;
  };
  // node, category, row, overlapping
  using TotalKey = std::tuple<uint32_t, timeline::TextId, RowId, bool>;
  using StepKey = std::tuple<timeline::TrackId, timeline::TextId, RowId>;

  RowId RowOf(std::string_view text);
  Name& NameAt(timeline::TextId text);
  const std::string& Pattern(timeline::TextId name) { return *rows_[NameAt(name).pattern]; }
  KnownTrack& TrackAt(timeline::TrackId track);
  bool IsCalled(const std::string& wanted, const timeline::Span& span);
  void AddTotal(const timeline::Span& span, const KnownTrack& track, RowId row, bool whole,
                Name* name);
  std::string StepName(const timeline::Span& span) const;
  void AddStep(const timeline::Span& span, const KnownTrack& track);
  BusyIntervals& BusyOf(uint32_t node);
  using Holes = std::map<timeline::TrackId, std::vector<timeline::Interval>>;
  // Of each track in order, none touching the next.
  Holes JoinedHoles() const;
  bool IsKnown(const Holes& joined, timeline::TrackId track,
               const timeline::Interval& interval) const;
  void AddOptimizerSteps(std::vector<Series>* all) const;

  std::optional<std::string> step_;
  bool step_found_ = false;
  std::vector<std::string> texts_{""};
  std::vector<Name> names_;  // by text
  std::map<std::string, RowId, std::less<>> row_ids_;
  std::vector<const std::string*> rows_;  // keys of row_ids_
  std::vector<KnownTrack> tracks_;        // by id
  std::map<TotalKey, TaskTotal> totals_;
  std::map<StepKey, Series> steps_;
  OptimizerSteps optimizer_steps_;
  Holes holes_;
  std::map<uint32_t, BusyIntervals> busy_;
  uint32_t busy_node_ = 0;                               // the newest task's
  BusyIntervals* busy_here_ = nullptr;                   // in busy_
  std::set<std::pair<timeline::TextId, RowId>> frames_;  // by category
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_SUMMARY_SINK_H_
