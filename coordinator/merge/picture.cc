// SPDX-License-Identifier: Apache-2.0
// Which stretch of the timeline the report's picture shows.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/contradictions.h"
#include "common/duration_text.h"
#include "common/status.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "export/report/svg.h"
#include "export/report/units.h"
#include "timeline/cut_sink.h"

namespace syncline::merge {
namespace {

constexpr int64_t kMarginPercent = 6;        // of the steps' length, on either side
constexpr int64_t kUnmarkedNs = 50'000'000;  // shown where no step is marked

std::string NodeNames(const analysis::Report& report) {
  std::string names;
  for (size_t i = 0; i < report.nodes.size(); ++i) {
    absl::StrAppend(&names,
                    i == 0                         ? ""
                    : i + 1 == report.nodes.size() ? " and "
                                                   : ", ",
                    report.nodes[i].name);
  }
  return names;
}

report::PictureOptions Choose(const analysis::Report& report) {
  report::PictureOptions options;
  const auto& steps = report.steps.empty() ? std::vector<analysis::Step>() : report.steps[0].steps;
  if (steps.empty()) {
    const int64_t middle_ns =
        report.window_begin.ns + (report.window_end.ns - report.window_begin.ns) / 2;
    options.range.begin.ns = std::max(report.window_begin.ns, middle_ns - kUnmarkedNs / 2);
    options.range.end.ns = std::min(report.window_end.ns, middle_ns + kUnmarkedNs / 2);
    if (options.range.end <= options.range.begin) options.range.end.ns = options.range.begin.ns + 1;
    options.zero = options.range.begin;
    options.title = absl::StrCat("The middle of the window on ", NodeNames(report));
  } else {
    const size_t first = steps.size() < 3 ? 0 : steps.size() / 2 - 1;
    const size_t last = std::min(first + 1, steps.size() - 1);
    const int64_t margin_ns =
        (steps[last].end.ns - steps[first].begin.ns) * kMarginPercent / 100 + 1;
    options.range = {{steps[first].begin.ns - margin_ns}, {steps[last].end.ns + margin_ns}};
    options.zero = steps[first].begin;
    options.step_node = report.steps[0].node;
    for (size_t i = first; i <= last; ++i) {
      options.boundaries.push_back(steps[i].begin);
      if (i == last || steps[i].end < steps[i + 1].begin)
        options.boundaries.push_back(steps[i].end);
    }
    options.title =
        absl::StrCat(last > first ? "Two steps" : "One step", " on ", NodeNames(report));
  }
  options.subtitle = absl::StrCat(
      report.from_recording ? absl::StrCat("recording ", report.recording_id, " · ") : "",
      SignedDurationText(options.zero.ns), " after the start of the window · ",
      DurationText(options.range.end.ns - options.range.begin.ns), " shown");
  return options;
}

// How far a boundary of the node that marks the steps may be off in another node's lanes.
void AddBounds(const OpenedInputs& inputs, report::PictureOptions* options) {
  if (inputs.model == nullptr || !options->step_node.has_value()) return;
  const timeline::Placement& from = *inputs.facts[*options->step_node].placement;
  for (uint32_t node = 0; node < inputs.facts.size(); ++node) {
    if (node == *options->step_node) continue;
    const timeline::Placement& to = *inputs.facts[node].placement;
    const NodeTime here{from.clock(), from.ClockNs(options->zero)};
    const NodeTime there{to.clock(), to.ClockNs(options->zero)};
    if (!inputs.model->Knows(here.clock) || !inputs.model->Knows(there.clock)) continue;
    const DurationEstimate apart = inputs.model->Difference(here, there);
    if (apart.bounded()) options->bound_ns[node] = apart.bound_ns();
  }
}

}  // namespace

absl::StatusOr<std::string> MakePicture(const ReportOptions& options,
                                        const analysis::Report& report) {
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.input.inputs));
  if (list.is_profiles) {
    return absl::InvalidArgumentError(
        "--svg draws tasks that were recorded, and profiles given as input have none: `syncline "
        "merge` makes a timeline of them");
  }
  InputOptions input = options.input;
  input.without_bounds = analysis::ContradictionsOf(report).proven > 0;
  SYNCLINE_ASSIGN_OR_RETURN(const OpenedInputs inputs, OpenInputs(input, list));
  report::PictureOptions picture = Choose(report);
  if (input.without_bounds) {
    picture.subtitle += " · messages contradict the clocks: the order across nodes is not known";
  } else {
    AddBounds(inputs, &picture);
  }
  const timeline::Interval range = picture.range;
  report::PictureSink sink(std::move(picture));
  timeline::CutSink cut(range, &sink);
  timeline::TimelineSink* const sinks[] = {&cut};
  SYNCLINE_RETURN_IF_ERROR(timeline::BuildTimeline(inputs.nodes, inputs.build, sinks).status());
  return sink.Render();
}

}  // namespace syncline::merge
