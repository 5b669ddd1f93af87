#include "coordinator/merge/merge.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/mutants.h"
#include "coordinator/merge/out_dir.h"
#include "export/perfetto/perfetto_sink.h"
#include "export/report/json_report.h"
#include "timeline/cut_sink.h"

namespace syncline::merge {
namespace {

constexpr char kTimelineName[] = "timeline.perfetto-trace";
constexpr char kReportName[] = "report.json";
constexpr char kModelName[] = "models.json";

timeline::Interval CutOf(const MergeOptions& options) {
  timeline::Interval cut{{kUnknownLo}, {kUnknownHi}};
  if (options.from.has_value()) cut.begin = *options.from;
  if (options.to.has_value()) cut.end = *options.to;
  return cut;
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
analysis::Report MakeReportOf(const OpenedInputs& inputs,
                              std::span<const timeline::NodeResult> results,
                              const analysis::SummarySink& summary) {
  analysis::AnalyseInput input;
  input.nodes = results;
  input.facts = inputs.facts;
  input.model = inputs.model.get();
  input.reference = inputs.reference;
  input.window = inputs.build.window;
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
    if (format == "perfetto") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("unknown format '", format, "'; there is: perfetto"));
  }
  return absl::OkStatus();
}

std::filesystem::path OutPath(const MergeOptions& options, const OpenedInputs& inputs) {
  if (!options.out_dir.empty() || inputs.run.empty()) return options.out_dir;
  return recording::Layout(inputs.run).Out();
}

// Everything into a directory beside result.out_dir, and then that in its place.
absl::StatusOr<MergeResult> Write(const MergeOptions& options, const OpenedInputs& inputs,
                                  MergeResult result) {
  SYNCLINE_ASSIGN_OR_RETURN(OutDir out, OutDir::Prepare(result.out_dir));
  const std::stop_callback abandon(options.interrupt, [&] {
    out.Abandon();
    options.leave();
  });
  std::ofstream file(out.staging() / kTimelineName, std::ios::binary | std::ios::trunc);
  if (!file.good()) {
    return ErrnoStatus(errno, absl::StrCat("cannot write in ", out.staging().string()));
  }
  const timeline::Interval cut = CutOf(options);
  perfetto::PerfettoSink perfetto(&file, {.epoch_unix_ns = inputs.epoch_unix_ns,
                                          .facts_time = options.from.value_or(TimelineTime{0})});
  analysis::SummarySink summary;
  timeline::CutSink cut_perfetto(cut, &perfetto);
  timeline::CutSink cut_summary(CountedOf(cut, inputs), &summary);
  timeline::TimelineSink* const sinks[] = {&cut_perfetto, &cut_summary};
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<timeline::NodeResult> results,
                            timeline::BuildTimeline(inputs.nodes, inputs.build, sinks));
  file.close();
  if (file.fail()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write ", result.out_dir.string(), ": is the disk full?"));
  }
  result.report = MakeReportOf(inputs, results, summary);
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(
      out.staging() / kReportName, report::ReportJson(WithoutPaths(result.report, inputs))));
  result.files = {kTimelineName, kReportName};
  if (options.input.refit && inputs.recording.has_value()) {
    SYNCLINE_RETURN_IF_ERROR(
        WriteFileAtomically(out.staging() / kModelName, inputs.model->ToJson()));
    result.files.emplace_back(kModelName);
  }
  result.incomplete = result.report.incomplete;
  result.complaints = result.report.complaints;
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
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options.input));
  MergeResult result;
  result.out_dir = OutPath(options, inputs);
  if (result.out_dir.empty()) {
    return absl::InvalidArgumentError("trace directories are merged into --out DIR");
  }
  absl::StatusOr<MergeResult> written = Write(options, inputs, result);
  if (!absl::IsResourceExhausted(written.status())) return written;
  return absl::ResourceExhaustedError(absl::StrCat(
      written.status().message(), "\nThe merge does not fit into ", result.out_dir.string(),
      ", which is as it was: make room there, or name another ", "place with --out"));
}

absl::StatusOr<analysis::Report> MakeReport(const ReportOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const OpenedInputs inputs, OpenInputs(options.input));
  analysis::SummarySink summary({options.step_domain, options.step_name});
  timeline::CutSink counted(CountedOf({{kUnknownLo}, {kUnknownHi}}, inputs), &summary);
  timeline::TimelineSink* const sinks[] = {&counted};
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<timeline::NodeResult> results,
                            timeline::BuildTimeline(inputs.nodes, inputs.build, sinks));
  return MakeReportOf(inputs, results, summary);
}

}  // namespace syncline::merge
