#include "coordinator/merge/merge.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/mutants.h"
#include "coordinator/merge/out_dir.h"
#include "coordinator/merge/write_ctf.h"
#include "export/perfetto/perfetto_sink.h"
#include "export/report/json_report.h"
#include "timeline/cut_sink.h"

namespace syncline::merge {
namespace {

constexpr char kTimelineName[] = "timeline.perfetto-trace";
constexpr char kReportName[] = "report.json";
constexpr char kModelName[] = "models.json";
constexpr char kCtfName[] = "ctf";
constexpr const char* kFormats[] = {"perfetto", "ctf"};

// What the inputs cover: the recording's window; without one, from their first event to the last.
std::optional<timeline::Interval> Covered(const OpenedInputs& inputs) {
  const std::optional<timeline::Interval>& window = inputs.build.window;
  if (window.has_value() && window->begin < window->end) return window;
  std::optional<timeline::Interval> covered;
  for (const timeline::NodeInput& node : inputs.nodes) {
    const auto extent = ExtentOf(node.readers);
    if (!extent.has_value()) continue;
    const TimelineTime begin = node.placement->At(extent->begin_ns);
    const TimelineTime end = node.placement->At(extent->end_ns);
    if (!covered.has_value()) covered = timeline::Interval{begin, end};
    covered->begin = std::min(covered->begin, begin);
    covered->end = std::max(covered->end, end);
  }
  return covered;
}

// Sets what the merge is cut to. An interval in which nothing was recorded is an error; of one that
// reaches beyond the recording, that part is left out and said.
absl::Status ChooseCut(const MergeOptions& options, OpenedInputs* inputs) {
  if (!options.from.has_value() && !options.to.has_value()) return absl::OkStatus();
  const std::optional<timeline::Interval> covered = Covered(*inputs);
  if (!covered.has_value()) return absl::OkStatus();  // there is no event to cut
  const timeline::Interval asked{options.from.value_or(covered->begin),
                                 options.to.value_or(covered->end)};
  const std::string window =
      absl::StrCat("the recording's window is ", SignedDurationText(covered->begin.ns), " to ",
                   SignedDurationText(covered->end.ns));
  if (asked.begin >= covered->end || asked.end <= covered->begin) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing was recorded",
        options.from.has_value() ? " from " + SignedDurationText(options.from->ns) : "",
        options.to.has_value() ? " to " + SignedDurationText(options.to->ns) : "", ": ", window));
  }
  for (const auto& [option, outside] : {std::pair("--from", asked.begin < covered->begin),
                                        std::pair("--to", asked.end > covered->end)}) {
    if (!outside) continue;
    inputs->complaints.push_back(
        absl::StrCat(option, " lies outside of what was recorded and is cut there: ", window));
  }
  inputs->build.cut =
      timeline::Interval{std::max(asked.begin, covered->begin), std::min(asked.end, covered->end)};
  return absl::OkStatus();
}

// The timeline shows the little that lies outside of the window, unless an end was asked for.
timeline::Interval Shown(const MergeOptions& options) {
  timeline::Interval shown{{kUnknownLo}, {kUnknownHi}};
  if (options.from.has_value()) shown.begin = *options.from;
  if (options.to.has_value()) shown.end = *options.to;
  return shown;
}

// What the report counts: of the cut, what lies in the window that was asked for. Gates close a
// little late, and what was recorded after that is drawn, but not counted.
timeline::Interval CountedOf(timeline::Interval cut, const OpenedInputs& inputs) {
  if (!inputs.build.window.has_value()) return cut;
  cut.begin = std::max(cut.begin, inputs.build.window->begin);
  cut.end = std::min(cut.end, inputs.build.window->end);
  return cut;
}

// Analyses what the builder found, and fills the report's head.
analysis::Report MakeReportOf(const OpenedInputs& inputs, const timeline::BuiltTimeline& built,
                              const analysis::SummarySink& summary) {
  analysis::AnalyseInput input;
  input.nodes = built.nodes;
  input.collectives = &built.collectives;
  input.facts = inputs.facts;
  input.model = inputs.model.get();
  input.reference = inputs.reference;
  input.window = inputs.build.cut.has_value() ? inputs.build.cut : inputs.build.window;
  if (inputs.recording.has_value() && inputs.reference.has_value()) {
    const recording::Recording& recording = *inputs.recording;
    const ClockId trace_clock = inputs.facts[*inputs.reference].placement->clock();
    const ClockId raw{trace_clock.node, ClockKind::kRaw};
    input.start_requested = NodeTime{raw, recording.reference.zero_monotonic_raw_ns};
    if (inputs.model->Knows(raw)) {
      input.stop_requested = inputs.model->Unlocate(raw, {recording.window.end_timeline_ns});
    }
  }
  analysis::Report report = analysis::Analyse(input, summary);
  report.epoch_unix_ns = inputs.epoch_unix_ns;
  report.incomplete = report.incomplete || inputs.incomplete;
  report.complaints = inputs.complaints;
  report.notes = inputs.notes;
  if (inputs.recording.has_value()) {
    report.from_recording = true;
    report.recording_id = inputs.recording->recording_id;
    report.stop_reason = inputs.recording->window.stop_reason;
  }
  return report;
}

// Complaints name files where they lie; what is written must not depend on that.
analysis::Report WithoutPaths(analysis::Report report, const OpenedInputs& inputs) {
  for (std::string& complaint : report.complaints) {
    for (const timeline::NodeInput& node : inputs.nodes) {
      const std::string root = node.root + "/";
      for (size_t at; (at = complaint.find(root)) != std::string::npos;) {
        complaint.erase(at, root.size());
      }
    }
  }
  return report;
}

absl::Status CheckFormats(const std::vector<std::string>& formats) {
  for (const std::string& format : formats) {
    if (std::find(std::begin(kFormats), std::end(kFormats), format) != std::end(kFormats)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("unknown format '", format, "'; there are: ", absl::StrJoin(kFormats, ", ")));
  }
  return absl::OkStatus();
}

bool Wants(const MergeOptions& options, std::string_view format) {
  return std::find(options.formats.begin(), options.formats.end(), format) != options.formats.end();
}

// Where the merge goes, when it may go there: asked before the work is done.
absl::StatusOr<std::filesystem::path> ChooseOut(const MergeOptions& options,
                                                const InputList& list) {
  std::filesystem::path out = options.out_dir;
  if (out.empty()) {
    if (!list.is_recording) {
      return absl::InvalidArgumentError("trace directories are merged into --out DIR");
    }
    out = recording::Layout(list.inputs[0].directory).Out();
  }
  SYNCLINE_RETURN_IF_ERROR(OutDir::Check(out));
  SYNCLINE_RETURN_IF_ERROR(CheckOutput(out, list));
  return out;
}

// Everything into a directory beside result.out_dir, and then that in its place.
absl::StatusOr<MergeResult> Write(const MergeOptions& options, const OpenedInputs& inputs,
                                  MergeResult result) {
  SYNCLINE_ASSIGN_OR_RETURN(OutDir out, OutDir::Prepare(result.out_dir));
  const std::stop_callback abandon(options.interrupt, [&] {
    out.Abandon();
    options.leave();
  });
  const timeline::Interval cut = Shown(options);
  std::ofstream file;
  if (Wants(options, "perfetto")) {
    file.open(out.staging() / kTimelineName, std::ios::binary | std::ios::trunc);
    if (!file.good()) {
      return ErrnoStatus(errno, absl::StrCat("cannot write in ", out.staging().string()));
    }
    result.files.emplace_back(kTimelineName);
  }
  perfetto::PerfettoSink perfetto(&file, {.epoch_unix_ns = inputs.epoch_unix_ns,
                                          .facts_time = options.from.value_or(TimelineTime{0})});
  analysis::SummarySink summary;
  timeline::CutSink cut_perfetto(cut, &perfetto);
  timeline::CutSink cut_summary(CountedOf(cut, inputs), &summary);
  std::vector<timeline::TimelineSink*> sinks = {&cut_summary};
  if (file.is_open()) sinks.push_back(&cut_perfetto);
  SYNCLINE_ASSIGN_OR_RETURN(const timeline::BuiltTimeline built,
                            timeline::BuildTimeline(inputs.nodes, inputs.build, sinks));
  if (file.is_open()) file.close();
  if (file.fail()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write ", result.out_dir.string(), ": is the disk full?"));
  }
  std::vector<std::string> uncopied;
  if (Wants(options, "ctf")) {
    SYNCLINE_ASSIGN_OR_RETURN(uncopied, WriteCtf(inputs, cut, out.staging() / kCtfName));
    result.files.emplace_back(kCtfName);
  }
  result.report = MakeReportOf(inputs, built, summary);
  result.report.incomplete |= !uncopied.empty();
  result.report.complaints.insert(result.report.complaints.end(), uncopied.begin(), uncopied.end());
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(
      out.staging() / kReportName, report::ReportJson(WithoutPaths(result.report, inputs))));
  result.files.emplace_back(kReportName);
  if (options.input.refit && inputs.recording.has_value()) {
    SYNCLINE_RETURN_IF_ERROR(
        WriteFileAtomically(out.staging() / kModelName, inputs.model->ToJson()));
    result.files.emplace_back(kModelName);
  }
  result.incomplete = result.report.incomplete;
  result.complaints = result.report.complaints;
  result.notes = result.report.notes;
  if (CurrentMutant() == Mutant::kStale && std::filesystem::exists(result.out_dir)) return result;
  SYNCLINE_RETURN_IF_ERROR(out.Commit());
  return result;
}

}  // namespace

absl::StatusOr<MergeResult> Merge(const MergeOptions& options) {
  SYNCLINE_RETURN_IF_ERROR(CheckFormats(options.formats));
  if (options.from.has_value() && options.to.has_value() && *options.from >= *options.to) {
    return absl::InvalidArgumentError("--from must lie before --to");
  }
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.input.inputs));
  MergeResult result;
  SYNCLINE_ASSIGN_OR_RETURN(result.out_dir, ChooseOut(options, list));
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options.input, list));
  SYNCLINE_RETURN_IF_ERROR(ChooseCut(options, &inputs));
  absl::StatusOr<MergeResult> written = Write(options, inputs, result);
  if (!absl::IsResourceExhausted(written.status())) return written;
  return absl::ResourceExhaustedError(absl::StrCat(
      written.status().message(), "\nThe merge does not fit into ", result.out_dir.string(),
      ", which is as it was: make room there, or name another ", "place with --out"));
}

absl::StatusOr<analysis::Report> MakeReport(const ReportOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const OpenedInputs inputs, OpenInputs(options.input));
  analysis::SummarySink summary(options.step);
  timeline::CutSink counted(CountedOf({{kUnknownLo}, {kUnknownHi}}, inputs), &summary);
  timeline::TimelineSink* const sinks[] = {&counted};
  SYNCLINE_ASSIGN_OR_RETURN(const timeline::BuiltTimeline built,
                            timeline::BuildTimeline(inputs.nodes, inputs.build, sinks));
  SYNCLINE_RETURN_IF_ERROR(summary.CheckStep());
  analysis::Report report = MakeReportOf(inputs, built, summary);
  if (options.step.has_value() && report.steps.empty()) {
    report.notes.push_back(absl::StrCat("every ", *options.step,
                                        " is cut off by the recording's ends or hit by a loss"));
  }
  return report;
}

}  // namespace syncline::merge
