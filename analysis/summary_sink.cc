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

void SummarySink::OnTrack(const timeline::Track& track) {
  KnownTrack known;
  known.parent = track.parent;
  known.process_track =
      track.kind == timeline::TrackKind::kProcess ? track.id : tracks_[track.parent].process_track;
  known.node = track.node;
  known.thread = track.kind == timeline::TrackKind::kThread;
  known.lane = track.kind == timeline::TrackKind::kLane;
  known.frames = track.kind == timeline::TrackKind::kAsync && track.name == "frames";
  known.process =
      track.kind == timeline::TrackKind::kProcess ? track.name : tracks_[track.parent].process;
  tracks_[track.id] = std::move(known);
}

const std::string& SummarySink::Pattern(timeline::TextId name) {
  if (patterns_.size() <= name) patterns_.resize(texts_.size());
  std::string& pattern = patterns_[name];
  if (pattern.empty()) pattern = NamePattern(texts_[name]);
  return pattern;
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

void SummarySink::AddStep(const timeline::Span& span, const KnownTrack& track) {
  const std::string& pattern = Pattern(span.name);
  const auto [entry, inserted] =
      steps_.try_emplace({track.process, span.track, span.category, pattern});
  Series& series = entry->second;
  if (inserted) {
    series.depth = span.depth;
    series.frames = track.frames;
    series.process_track = track.process_track;
    series.series.node = track.node;
    series.series.process = track.process;
    series.series.name = pattern;
    series.series.domain = texts_[span.category];
  }
  series.depth = std::min(series.depth, span.depth);
  series.total_ns += span.end.ns - span.begin.ns;
  series.series.steps.push_back(
      {span.node_begin, span.node_end, span.begin, span.end, texts_[span.name]});
}

void SummarySink::OnSpanEnd(const timeline::Span& span) {
  const KnownTrack& track = tracks_[span.track];
  // Of a profile, what a model is made of; what the framework does besides is on the timeline.
  const bool operation = track.lane && texts_[span.category] == timeline::kOperatorCategory;
  if (!track.thread && !track.frames && !operation) return;
  const bool is_step =
      !operation && (step_.has_value() ? IsCalled(*step_, span)
                                       : track.frames || LooksLikeStep(texts_[span.name]));
  step_found_ = step_found_ || is_step;
  if (track.frames) frames_.emplace(span.category, Pattern(span.name));
  const bool whole = !span.clipped_begin && !span.clipped_end && !span.suspect;
  if (track.thread || operation) {
    // The numbers in an operator's name are part of it: they tell one layer from another.
    const std::string& name = operation ? texts_[span.name] : Pattern(span.name);
    TaskTotal& total = totals_[{track.node, span.category, name}];
    if (whole) {
      ++total.count;
      total.total_ns += span.end.ns - span.begin.ns;
      total.self_ns += span.self_ns;
    } else {
      ++total.clipped;
    }
  }
  if (track.thread && OptimizerSteps::Is(texts_[span.name])) optimizer_steps_.Add(span, whole);
  if (!whole || operation) return;
  if (is_step) AddStep(span, track);
  if (track.thread && span.depth == 0) {
    busy_[track.node].Add({span.begin, span.end, span.node_begin, span.node_end, 1});
  }
}

std::vector<SummarySink::Total> SummarySink::TakeTotals() const {
  std::vector<Total> totals;
  for (const auto& [key, total] : totals_) {
    Total entry{std::get<0>(key), total};
    entry.total.domain = texts_[std::get<1>(key)];
    entry.total.name = std::get<2>(key);
    totals.push_back(std::move(entry));
  }
  std::stable_sort(totals.begin(), totals.end(), [](const Total& a, const Total& b) {
    if (a.total.domain != b.total.domain) return a.total.domain < b.total.domain;
    if (a.total.total_ns != b.total.total_ns) return a.total.total_ns > b.total.total_ns;
    return a.total.name < b.total.name;
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
  for (; track != timeline::kNoTrack; track = tracks_.at(track).parent) {
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
    const KnownTrack& track = tracks_.at(found.track);
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
  for (const auto& [key, series] : steps_) {
    all.push_back(series);
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
  for (const auto& [category, name] : frames_) add(category, name, /*frames=*/true);
  for (const auto& [key, total] : totals_) {
    add(std::get<1>(key), std::get<2>(key), /*frames=*/false);
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
