// SPDX-License-Identifier: Apache-2.0
#include "analysis/summary_sink.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/names.h"
#include "timeline/profile_lanes.h"

namespace syncline::analysis {
namespace {

constexpr size_t kNamesListedMax = 20;

}  // namespace

bool BusyIntervals::Join(std::vector<Cluster>* clusters, const Cluster& next) const {
  if (clusters->empty()) return false;
  Cluster& last = clusters->back();
  const int64_t pause_ns = next.begin.ns - last.end.ns;
  // Touching intervals of different threads are one; two tasks with a pause, however short, are
  // not.
  if (pause_ns >= 0 && pause_ns > pause_ns_) return false;
  if (pause_ns == 0 && pause_ns_ == 0) return false;
  if (next.begin < last.begin) {
    last.begin = next.begin;
    last.node_begin = next.node_begin;
  }
  if (next.end > last.end) {
    last.end = next.end;
    last.node_end = next.node_end;
  }
  last.tasks += next.tasks;
  return true;
}

void BusyIntervals::Add(const Cluster& task) {
  if (Join(&clusters_, task)) return;
  clusters_.push_back(task);
  while (clusters_.size() > clusters_max_) {
    pause_ns_ = pause_ns_ == 0 ? 1000 : pause_ns_ * 2;
    std::vector<Cluster> joined;
    for (const Cluster& cluster : clusters_) {
      if (!Join(&joined, cluster)) joined.push_back(cluster);
    }
    clusters_ = std::move(joined);
  }
}

void SummarySink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = text;
}

SummarySink::KnownTrack& SummarySink::TrackAt(timeline::TrackId track) {
  if (tracks_.size() <= track) tracks_.resize(size_t{track} + 1);
  return tracks_[track];
}

void SummarySink::OnTrack(const timeline::Track& track) {
  KnownTrack known;
  if (track.parent != timeline::kNoTrack) {
    const KnownTrack& parent = TrackAt(track.parent);
    known.process_track = parent.process_track;
    known.process = parent.process;
  }
  if (track.kind == timeline::TrackKind::kProcess) {
    known.process_track = track.id;
    known.process = track.name;
  }
  known.parent = track.parent;
  known.node = track.node;
  known.thread = track.kind == timeline::TrackKind::kThread;
  known.lane = track.kind == timeline::TrackKind::kLane;
  known.frames = track.kind == timeline::TrackKind::kAsync && track.name == "frames";
  known.overlapping = track.kind == timeline::TrackKind::kAsync &&
                      (track.name == "overlapped tasks" || track.name == "user events");
  TrackAt(track.id) = std::move(known);
}

SummarySink::RowId SummarySink::RowOf(std::string_view text) {
  const auto found = row_ids_.find(text);
  if (found != row_ids_.end()) return found->second;
  const auto id = static_cast<RowId>(rows_.size());
  rows_.push_back(&row_ids_.emplace(text, id).first->first);
  return id;
}

SummarySink::Name& SummarySink::NameAt(timeline::TextId text) {
  if (names_.size() <= text) names_.resize(texts_.size());
  Name& name = names_[text];
  if (name.is_looked_at) return name;
  name.is_looked_at = true;
  name.pattern = RowOf(NamePattern(texts_[text]));
  name.looks_like_step = LooksLikeStep(texts_[text]);
  name.is_optimizer = OptimizerSteps::Is(texts_[text]);
  return name;
}

void SummarySink::OnSpanBegin(const timeline::Span&) {}

void SummarySink::OnHole(const timeline::Hole& hole) {
  holes_[hole.track].push_back({hole.begin, hole.end});
}

bool SummarySink::IsCalled(const std::string& wanted, const timeline::Span& span) {
  if (wanted.empty()) return false;
  const std::string& domain = texts_[span.category];
  const auto is = [&](std::string_view name) {
    if (wanted == name) return true;
    const std::string_view rest(wanted);  // DOMAIN:NAME; either may have colons of its own
    return rest.size() == domain.size() + 1 + name.size() && rest.starts_with(domain) &&
           rest[domain.size()] == ':' && rest.ends_with(name);
  };
  return is(texts_[span.name]) || is(Pattern(span.name));
}

// What marks every iteration with one name can say its number in metadata.
std::string SummarySink::StepName(const timeline::Span& span) const {
  const std::string& name = texts_[span.name];
  for (const timeline::Argument& argument : span.arguments) {
    const std::string& key = texts_[argument.key];
    if (key != "number" && key != "step" && key != "iteration") continue;
    if (argument.kind == timeline::Argument::Kind::kUint)
      return absl::StrCat(name, " ", argument.u);
    if (argument.kind == timeline::Argument::Kind::kInt) return absl::StrCat(name, " ", argument.i);
  }
  return name;
}

void SummarySink::AddStep(const timeline::Span& span, const KnownTrack& track) {
  const RowId pattern = NameAt(span.name).pattern;
  const auto [entry, inserted] = steps_.try_emplace({span.track, span.category, pattern});
  Series& series = entry->second;
  if (inserted) {
    series.depth = span.depth;
    series.frames = track.frames;
    series.process_track = track.process_track;
    series.series.node = track.node;
    series.series.process = track.process;
    series.series.name = *rows_[pattern];
    series.series.domain = texts_[span.category];
  }
  series.depth = std::min(series.depth, span.depth);
  series.total_ns += span.end.ns - span.begin.ns;
  series.series.steps.push_back(
      {span.node_begin, span.node_end, span.begin, span.end, StepName(span)});
}

void SummarySink::AddTotal(const timeline::Span& span, const KnownTrack& track, RowId row,
                           bool whole, Name* name) {
  if (name->total == nullptr || name->node != track.node || name->category != span.category ||
      name->row != row || name->overlapping != track.overlapping) {
    name->node = track.node;
    name->category = span.category;
    name->row = row;
    name->overlapping = track.overlapping;
    name->total = &totals_[{track.node, span.category, row, track.overlapping}];
  }
  TaskTotal& total = *name->total;
  if (whole) {
    ++total.count;
    total.total_ns += span.end.ns - span.begin.ns;
    total.self_ns += span.self_ns;
  } else {
    ++total.clipped;
  }
}

BusyIntervals& SummarySink::BusyOf(uint32_t node) {
  if (busy_here_ == nullptr || busy_node_ != node) {
    busy_node_ = node;
    busy_here_ = &busy_[node];
  }
  return *busy_here_;
}

void SummarySink::OnSpanEnd(const timeline::Span& span) {
  const KnownTrack& track = TrackAt(span.track);
  // Of a profile, what a model is made of; what the framework does besides is on the timeline.
  const std::string& category = texts_[span.category];
  const bool operation = track.lane && (category == timeline::kOperatorCategory ||
                                        category == timeline::kJaxOperatorCategory);
  if (!track.thread && !track.frames && !track.overlapping && !operation) return;
  if (track.overlapping && span.name == timeline::kNoText) return;  // an end without its begin
  Name& name = NameAt(span.name);
  const bool is_step =
      !operation && !track.overlapping &&
      (step_.has_value() ? IsCalled(*step_, span) : track.frames || name.looks_like_step);
  step_found_ = step_found_ || is_step;
  if (track.frames) frames_.emplace(span.category, name.pattern);
  const bool whole = !span.clipped_begin && !span.clipped_end && !span.suspect;
  if (track.thread || track.overlapping || operation) {
    // The numbers in an operator's name are part of it: they tell one layer from another.
    if (operation && name.itself == kNoRow) name.itself = RowOf(texts_[span.name]);
    AddTotal(span, track, operation ? name.itself : name.pattern, whole, &name);
  }
  if (track.thread && name.is_optimizer) optimizer_steps_.Add(span, whole);
  if (!whole || operation) return;
  if (is_step) AddStep(span, track);
  if (track.thread && span.depth == 0) {
    BusyOf(track.node).Add({span.begin, span.end, span.node_begin, span.node_end, 1});
  }
}

std::vector<SummarySink::Total> SummarySink::TakeTotals() const {
  std::vector<Total> totals;
  for (const auto& [key, total] : totals_) {
    Total entry{std::get<0>(key), total};
    entry.total.domain = texts_[std::get<1>(key)];
    entry.total.name = *rows_[std::get<2>(key)];
    entry.total.overlapping = std::get<3>(key);
    totals.push_back(std::move(entry));
  }
  // Of equal ones, those of the first node.
  std::sort(totals.begin(), totals.end(), [](const Total& a, const Total& b) {
    if (a.total.domain != b.total.domain) return a.total.domain < b.total.domain;
    if (a.total.total_ns != b.total.total_ns) return a.total.total_ns > b.total.total_ns;
    if (a.total.name != b.total.name) return a.total.name < b.total.name;
    return std::tie(a.node, a.total.overlapping) < std::tie(b.node, b.total.overlapping);
  });
  return totals;
}

SummarySink::Holes SummarySink::JoinedHoles() const {
  Holes joined;
  for (const auto& [track, holes] : holes_) {
    std::vector<timeline::Interval> sorted = holes;
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::vector<timeline::Interval>& all = joined[track];
    for (const timeline::Interval& hole : sorted) {
      if (all.empty() || all.back().end < hole.begin) {
        all.push_back(hole);
      } else {
        all.back().end = std::max(all.back().end, hole.end);
      }
    }
  }
  return joined;
}

bool SummarySink::IsKnown(const Holes& joined, timeline::TrackId track,
                          const timeline::Interval& interval) const {
  for (; track != timeline::kNoTrack; track = tracks_[track].parent) {
    const auto holes = joined.find(track);
    if (holes == joined.end()) continue;
    const auto next = std::upper_bound(
        holes->second.begin(), holes->second.end(), interval.begin,
        [](TimelineTime time, const timeline::Interval& hole) { return time < hole.end; });
    if (next != holes->second.end() && next->begin < interval.end) return false;
  }
  return true;
}

void SummarySink::AddOptimizerSteps(std::vector<Series>* all) const {
  if (step_.has_value()) return;  // the user says what a step is
  std::set<timeline::TrackId> marking;
  for (const Series& series : *all) {
    if (series.series.steps.size() > 1) marking.insert(series.process_track);
  }
  const Holes joined = JoinedHoles();
  const auto known = [&](timeline::TrackId track, const timeline::Interval& interval) {
    return IsKnown(joined, track, interval);
  };
  for (OptimizerSteps::Series& found : optimizer_steps_.Take(known)) {
    const KnownTrack& track = tracks_[found.track];
    if (marking.contains(track.process_track)) continue;
    Series series;
    series.depth = found.depth;
    series.marked = false;
    series.process_track = track.process_track;
    series.series.node = track.node;
    series.series.process = track.process;
    series.series.name = texts_[found.name] + " to the next";
    series.series.steps = std::move(found.steps);
    for (Step& step : series.series.steps) {
      step.name = series.series.name;
      series.total_ns += step.end.ns - step.begin.ns;
    }
    all->push_back(std::move(series));
  }
}

std::vector<SummarySink::Series> SummarySink::TakeSteps() const {
  std::vector<Series> all;
  // What is equally likely: by process, track, category and name.
  std::vector<const std::pair<const StepKey, Series>*> ordered;
  for (const auto& entry : steps_) ordered.push_back(&entry);
  const auto rank = [](const std::pair<const StepKey, Series>* entry) {
    const auto& [track, category, pattern] = entry->first;
    const StepSeries& series = entry->second.series;
    return std::tie(series.process, track, category, series.name);
  };
  std::sort(ordered.begin(), ordered.end(),
            [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  for (const auto* entry : ordered) {
    all.push_back(entry->second);
    std::vector<Step>& steps = all.back().series.steps;
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return a.begin < b.begin; });
  }
  AddOptimizerSteps(&all);
  std::stable_sort(all.begin(), all.end(), [](const Series& a, const Series& b) {
    const bool several_a = a.series.steps.size() > 1;
    const bool several_b = b.series.steps.size() > 1;
    return std::tuple(!several_a, !a.marked, a.frames, a.depth, -a.total_ns) <
           std::tuple(!several_b, !b.marked, b.frames, b.depth, -b.total_ns);
  });
  return all;
}

absl::Status SummarySink::CheckStep() const {
  if (!step_.has_value() || step_found_) return absl::OkStatus();
  // Steps by their looks, or, where nothing looks like one, all that there is.
  std::set<std::string> likely;
  std::set<std::string> others;
  const auto add = [&](timeline::TextId category, const std::string& name, bool frames) {
    const std::string& domain = texts_[category];
    const std::string full = domain.empty() ? name : domain + ":" + name;
    (frames || LooksLikeStep(name) ? likely : others).insert("\"" + full + "\"");
  };
  for (const auto& [category, row] : frames_) add(category, *rows_[row], /*frames=*/true);
  for (const auto& [key, total] : totals_) {
    if (std::get<3>(key)) continue;  // not nested: they have no steps
    add(std::get<1>(key), *rows_[std::get<2>(key)], /*frames=*/false);
  }
  const std::set<std::string>& names = likely.empty() ? others : likely;
  std::string list;
  size_t listed = 0;
  for (const std::string& name : names) {
    if (++listed > kNamesListedMax) break;
    absl::StrAppend(&list, listed == 1 ? "" : ", ", name);
  }
  if (listed > kNamesListedMax) absl::StrAppend(&list, " and others");
  return absl::InvalidArgumentError(absl::StrCat(
      "no task is called \"", *step_, "\" ([DOMAIN:]NAME), so there are no such steps. ",
      names.empty()    ? "There are no tasks at all"
      : likely.empty() ? "No name looks like a step's; the tasks are: "
                       : "What looks like steps: ",
      list));
}

}  // namespace syncline::analysis
