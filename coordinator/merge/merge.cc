// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/merge.h"

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/contradictions.h"
#include "analysis/device_marks.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/merge/choose_events.h"
#include "coordinator/merge/critical_path.h"
#include "coordinator/merge/cut.h"
#include "coordinator/merge/device_steps.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/mutants.h"
#include "coordinator/merge/node_code.h"
#include "coordinator/merge/node_connections.h"
#include "coordinator/merge/node_devices.h"
#include "coordinator/merge/node_evidence.h"
#include "coordinator/merge/node_scheduling.h"
#include "coordinator/merge/node_vtune.h"
#include "coordinator/merge/out_dir.h"
#include "coordinator/merge/outputs.h"
#include "coordinator/merge/probe_counts.h"
#include "coordinator/merge/shards.h"
#include "coordinator/merge/write_ctf.h"
#include "coordinator/merge/write_tables.h"
#include "export/flame/flame_files.h"
#include "export/report/json_report.h"
#include "export/report/units.h"
#include "timeline/cut_sink.h"

namespace syncline::merge {
namespace {

constexpr char kReportName[] = "report.json";
constexpr char kModelName[] = "models.json";
constexpr char kCtfName[] = "ctf";
constexpr char kFlameFormat[] = "flame";
constexpr char kVtuneFormat[] = "vtune";

// What the report counts: of the cut, what lies in the window that was asked for. Gates close a
// little late, and what was recorded after that is drawn, but not counted.
timeline::Interval CountedOf(timeline::Interval cut, const OpenedInputs& inputs) {
  if (!inputs.build.window.has_value()) return cut;
  cut.begin = std::max(cut.begin, inputs.build.window->begin);
  cut.end = std::min(cut.end, inputs.build.window->end);
  return cut;
}

// A recording of nothing says so: "complete, no losses" would be read as "nothing was wrong".
void SayNothing(const OpenedInputs& inputs, const timeline::BuiltTimeline& built,
                analysis::Report* report) {
  if (!inputs.recording.has_value() || !recording::NothingToTrace(*inputs.recording)) return;
  const bool any = std::any_of(built.nodes.begin(), built.nodes.end(), [](const auto& node) {
    return node.events != 0 || !node.profiles.empty();
  });
  if (any) return;
  report->incomplete = true;
  report->complaints.emplace_back(recording::kNothingToTrace);
}

// Analyses what the builder found, and fills the report's head.
analysis::Report MakeReportOf(const OpenedInputs& inputs, const timeline::BuiltTimeline& built,
                              const analysis::SummarySink& summary) {
  analysis::AnalyseInput input;
  input.nodes = built.nodes;
  input.collectives = &built.collectives;
  input.transfers = &built.transfers;
  input.facts = inputs.facts;
  input.model = inputs.model.get();
  input.likely = inputs.likely.get();
  input.assumption = inputs.assumption;
  input.reference = inputs.reference;
  input.window = inputs.CountedWindow();
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
  if (const uint64_t count = analysis::ContradictionsOf(report).proven; count > 0) {
    report.complaints.push_back(analysis::BoundsDoNotHoldText(count));
  }
  report.notes = inputs.notes;
  report.begins_late = inputs.begins_late;
  if (inputs.recording.has_value()) AddProbeCounts(recording::Layout(inputs.run), &report);
  report.only_events = inputs.build.events.patterns();
  report.file_clocks = inputs.file_clocks;
  if (inputs.recording.has_value()) {
    if (inputs.model != nullptr) report.clock_events = inputs.model->events();
    report.from_recording = true;
    report.recording_id = inputs.recording->recording_id;
    report.detail = inputs.recording->detail;
    report.stop_reason = inputs.recording->window.stop_reason;
  }
  SayNothing(inputs, built, &report);
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

// Where the merge goes, when it may go there: asked before the work is done.
absl::StatusOr<std::filesystem::path> ChooseOut(const MergeOptions& options,
                                                const InputList& list) {
  std::filesystem::path out = options.out_dir;
  if (out.empty()) {
    if (!list.is_recording) {
      return absl::InvalidArgumentError("traces and profiles are merged into --out DIR");
    }
    out = recording::Layout(list.inputs[0].directory).Out();
  }
  SYNCLINE_RETURN_IF_ERROR(OutDir::Check(out));
  SYNCLINE_RETURN_IF_ERROR(CheckOutput(out, list));
  return out;
}

// A timeline that its viewer could not hold is written anew, in pieces.
absl::Status SplitLarge(const MergeOptions& options, const OpenedInputs& inputs,
                        const timeline::BuildOptions& build, const std::filesystem::path& staging,
                        MergeResult* result) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(staging / "timeline.perfetto-trace", error);
  if (error || bytes <= options.perfetto_bytes_max) return absl::OkStatus();
  const auto covered = inputs.build.cut.has_value() ? inputs.build.cut : Covered(inputs);
  if (!covered.has_value() || covered->end.ns - covered->begin.ns < 1000) return absl::OkStatus();
  SYNCLINE_ASSIGN_OR_RETURN(const Shards shards,
                            WriteShards(options, inputs, build, *covered, bytes, staging));
  result->files.insert(result->files.end(), shards.files.begin(), shards.files.end());
  result->notes.push_back(shards.note);
  return absl::OkStatus();
}

// Says what a cut may lack for which not everything was read.
void NoteUnread(const timeline::BuiltTimeline& built, MergeResult* result) {
  bool in_part = false;
  for (const timeline::NodeResult& node : built.nodes) {
    in_part |= node.read_in_part;
    if (node.inside_of_unread_threads == 0) continue;
    result->notes.push_back(absl::StrCat(
        "node ", node.name, ": tasks of ", report::Plural(node.inside_of_unread_threads, "thread"),
        " began before the range that was read; those that do not end near --from are missing"));
  }
  if (!in_part) return;
  result->notes.push_back(
      "not everything outside the cut was read: counters, pauses, losses that only counting shows, "
      "tasks of threads that write no events, and which send belongs to which receive may be "
      "missing or differ; `--look-back all` gives them as in the whole timeline");
}

void NoteRelations(const timeline::BuiltTimeline& built, MergeResult* result) {
  const auto note = [&](const timeline::NodeResult& node, uint64_t count, const char* why) {
    if (count == 0) return;
    result->notes.push_back(absl::StrCat("node ", node.name, ": ",
                                         report::Plural(count, "ITT relation"),
                                         " without an arrow: ", why));
  };
  for (const timeline::NodeResult& node : built.nodes) {
    note(node, node.ambiguous_relations, "several open tasks had the id that was meant");
    note(node, node.crowded_relations, "one of its tasks has so many already");
  }
}

std::vector<analysis::VtuneResult> PlacedVtune(const OpenedInputs& inputs,
                                               analysis::VtuneSpanSink* spans) {
  std::vector<analysis::VtuneResult> results = spans->Take();
  PlaceVtuneSpans(inputs, &results);
  return results;
}

// The sinks that look at the timeline for the report.
struct Lookers {
  analysis::SummarySink summary;
  analysis::HotSink code;
  analysis::VtuneSpanSink vtune;
  analysis::PrimitiveSink primitives;
  std::deque<timeline::CutSink> cut;

  // What to push into: each sees what lies in `counted`. They point into this.
  std::vector<timeline::TimelineSink*> Within(const timeline::Interval& counted) {
    std::vector<timeline::TimelineSink*> sinks;
    for (timeline::TimelineSink* sink :
         std::initializer_list<timeline::TimelineSink*>{&summary, &code, &vtune, &primitives}) {
      sinks.push_back(&cut.emplace_back(counted, sink));
    }
    return sinks;
  }
};

// The steps of devices are drawn, too. Both outlive what is returned; `summary` is a sink of it, or
// was one when this was built before.
timeline::BuildOptions DrawingSteps(const OpenedInputs& inputs,
                                    const analysis::SummarySink& summary) {
  timeline::BuildOptions build = inputs.build;
  build.complete_devices = [&](std::span<timeline::NodeResult> nodes) {
    analysis::TakeStepsFrom(summary, nodes);
  };
  build.device_lanes = [&](const timeline::ProcessDevices& process) {
    return DeviceStepLanes(process, inputs.CountedWindow());
  };
  return build;
}

// Everything into a directory beside result.out_dir, and then that in its place. nullopt: nothing
// was written, because the bounds that it would be written with do not hold.
absl::StatusOr<std::optional<MergeResult>> Write(const MergeOptions& options,
                                                 const OpenedInputs& inputs, Lookers* lookers,
                                                 MergeResult result) {
  SYNCLINE_ASSIGN_OR_RETURN(OutDir out, OutDir::Prepare(result.out_dir));
  const std::stop_callback abandon(options.interrupt, [&] {
    out.Abandon();
    options.leave();
  });
  const timeline::Interval cut = inputs.build.shown;
  SYNCLINE_ASSIGN_OR_RETURN(Outputs outputs, Outputs::Open(options, inputs, cut, out.staging()));
  std::vector<timeline::TimelineSink*> sinks = lookers->Within(CountedOf(cut, inputs));
  sinks.insert(sinks.end(), outputs.sinks().begin(), outputs.sinks().end());
  const timeline::BuildOptions build = DrawingSteps(inputs, lookers->summary);
  SYNCLINE_ASSIGN_OR_RETURN(timeline::BuiltTimeline built,
                            timeline::BuildTimeline(inputs.nodes, build, sinks));
  NoteUnread(built, &result);
  NoteRelations(built, &result);
  SYNCLINE_RETURN_IF_ERROR(outputs.Close());
  result.files = outputs.files();
  SYNCLINE_RETURN_IF_ERROR(SplitLarge(options, inputs, build, out.staging(), &result));
  std::vector<std::string> uncopied;
  if (Wants(options, "ctf")) {
    SYNCLINE_ASSIGN_OR_RETURN(
        uncopied, WriteCtf(inputs, cut, ThreadsOf(options.threads), out.staging() / kCtfName));
    result.files.emplace_back(kCtfName);
  }
  if (Wants(options, kFlameFormat)) {
    SYNCLINE_RETURN_IF_ERROR(
        flame::WriteFiles(lookers->code.TakeStacks(), out.staging() / kFlameFormat));
    result.files.emplace_back(kFlameFormat);
  }
  WrittenTables tables;
  if (outputs.tables() != nullptr) {
    SYNCLINE_ASSIGN_OR_RETURN(
        tables, WriteTables(inputs, built, cut, ThreadsOf(options.threads), outputs.tables()));
    if (!tables.complaint.empty()) uncopied.push_back(tables.complaint);
  }
  result.report = MakeReportOf(inputs, built, lookers->summary);
  if (!options.input.without_bounds && analysis::ContradictionsOf(result.report).proven > 0) {
    return std::nullopt;  // what was staged goes with `out`
  }
  // Where only some events are read, which task was open is not known.
  if (options.events.empty()) {
    result.report.hot = lookers->code.Take();
    result.report.primitives = lookers->primitives.Take();
  }
  result.report.vtune = PlacedVtune(inputs, &lookers->vtune);
  result.report.incomplete |= !uncopied.empty() || !tables.complete;
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
  result.notes.insert(result.notes.end(), result.report.notes.begin(), result.report.notes.end());
  for (std::string& line : VtuneImports(inputs, result.report.vtune, result.out_dir)) {
    result.notes.push_back(std::move(line));
  }
  if (CurrentMutant() == Mutant::kStale && std::filesystem::exists(result.out_dir)) return result;
  SYNCLINE_RETURN_IF_ERROR(out.Commit());
  return result;
}

}  // namespace

absl::StatusOr<MergeResult> Merge(const MergeOptions& asked) {
  MergeOptions options = asked;
  SYNCLINE_RETURN_IF_ERROR(CheckFormats(options.formats));
  SYNCLINE_RETURN_IF_ERROR(CheckRange(options.range));
  if (!options.events.empty() && Wants(options, "ctf")) {
    return absl::InvalidArgumentError(
        "--events cannot select events for --format ctf, which copies whole packets: use one of "
        "these options, or limit the copy with --from, --to and --nodes");
  }
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.input.inputs));
  if (list.is_profiles && Wants(options, "ctf")) {
    return absl::InvalidArgumentError(
        "--format ctf copies traces, and these are profiles: use perfetto, chrome or "
        "parquet");
  }
  MergeResult result;
  SYNCLINE_ASSIGN_OR_RETURN(result.out_dir, ChooseOut(options, list));
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options.input, list));
  SYNCLINE_RETURN_IF_ERROR(ChooseCut(options.range, &inputs));
  SYNCLINE_RETURN_IF_ERROR(ChooseEvents(options.events, &inputs));
  inputs.build.shown = Shown(options.range, inputs);
  ChooseLookBack(options.look_back, &inputs);
  const timeline::Interval counted = CountedOf(inputs.build.shown, inputs);
  AddSamples(counted, true, &inputs);
  AddDeviceSamples(counted, true, &inputs);
  AddConnectionSamples(counted, true, &inputs);
  AddScheduling(counted, true, &inputs);
  std::vector<analysis::HotInput> samples = ReadCodeSamples(counted, &inputs);
  if (samples.empty() && Wants(options, kFlameFormat)) {
    return absl::InvalidArgumentError(
        "--format flame draws samples of the code that ran, and there are none here: record with "
        "`syncline record --samples`");
  }
  DrawCodeSamples(samples, &inputs);
  if (options.critical_path) {
    SYNCLINE_ASSIGN_OR_RETURN(timeline::FleetLane lane, CriticalPathLane(options, inputs));
    inputs.build.lanes.push_back(std::move(lane));
  }
  std::vector<analysis::VtuneResult> vtune = ReadVtuneResults(&inputs);
  const bool kept = std::any_of(vtune.begin(), vtune.end(),
                                [](const auto& result) { return !result.path.empty(); });
  if (kept && !Wants(options, kVtuneFormat)) options.formats.emplace_back(kVtuneFormat);
  Lookers lookers{analysis::SummarySink(),
                  analysis::HotSink(std::move(samples)),
                  analysis::VtuneSpanSink(std::move(vtune)),
                  {},
                  {}};
  inputs.build.threads = ThreadsOf(options.threads);
  if (options.progress) {
    inputs.build.progress = [&](const timeline::Progress& progress) {
      const bool before = options.range.from.has_value() && progress.time < *options.range.from;
      options.progress({inputs.nodes[progress.node].name, progress.time, progress.events, before});
    };
  }
  auto written = Write(options, inputs, &lookers, result);
  if (written.ok() && written->has_value()) return **std::move(written);
  if (written.ok()) {
    // What belongs together was chosen by these bounds, too: all of it once more.
    options.input.without_bounds = true;
    return Merge(options);
  }
  if (!absl::IsResourceExhausted(written.status())) return written.status();
  return absl::ResourceExhaustedError(absl::StrCat(
      written.status().message(), "\nThe merge does not fit into ", result.out_dir.string(),
      ", which is unchanged: free disk space there, or choose another directory with --out"));
}

namespace {

absl::StatusOr<analysis::Report> ReadReport(const ReportOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options.input));
  const timeline::Interval counted = CountedOf({{kUnknownLo}, {kUnknownHi}}, inputs);
  AddSamples(counted, false, &inputs);
  AddDeviceSamples(counted, false, &inputs);
  AddConnectionSamples(counted, false, &inputs);
  AddScheduling(counted, false, &inputs);
  Lookers lookers{analysis::SummarySink(options.step),
                  analysis::HotSink(ReadCodeSamples(counted, &inputs)),
                  analysis::VtuneSpanSink(ReadVtuneResults(&inputs)),
                  {},
                  {}};
  const std::vector<timeline::TimelineSink*> sinks = lookers.Within(counted);
  SYNCLINE_ASSIGN_OR_RETURN(timeline::BuiltTimeline built,
                            timeline::BuildTimeline(inputs.nodes, inputs.build, sinks));
  SYNCLINE_RETURN_IF_ERROR(lookers.summary.CheckStep());
  analysis::TakeStepsFrom(lookers.summary, built.nodes);
  analysis::Report report = MakeReportOf(inputs, built, lookers.summary);
  report.hot = lookers.code.Take();
  report.primitives = lookers.primitives.Take();
  report.vtune = PlacedVtune(inputs, &lookers.vtune);
  if (options.step.has_value() && report.steps.empty()) {
    report.notes.push_back(absl::StrCat("every ", *options.step,
                                        " is cut off by the recording's ends or hit by a loss"));
  }
  return report;
}

}  // namespace

absl::StatusOr<analysis::Report> MakeReport(const ReportOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(analysis::Report report, ReadReport(options));
  if (options.input.without_bounds || analysis::ContradictionsOf(report).proven == 0) return report;
  ReportOptions without_bounds = options;
  without_bounds.input.without_bounds = true;
  SYNCLINE_ASSIGN_OR_RETURN(analysis::Report undecided, ReadReport(without_bounds));
  // Analyse() has forgotten the bounds of the first one, too.
  return analysis::ContradictionsOf(undecided).proven > 0 ? undecided : report;
}

}  // namespace syncline::merge
