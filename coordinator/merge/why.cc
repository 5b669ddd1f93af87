// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "analysis/contradictions.h"
#include "analysis/why/collector.h"
#include "analysis/why/cut_collector.h"
#include "analysis/why/explain.h"
#include "analysis/why/outermost.h"
#include "common/status.h"
#include "coordinator/merge/input_list.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/losses.h"
#include "coordinator/merge/no_step.h"
#include "coordinator/merge/node_connections.h"
#include "coordinator/merge/node_devices.h"
#include "coordinator/merge/node_evidence.h"
#include "coordinator/merge/node_scheduling.h"
#include "coordinator/merge/node_vtune.h"
#include "coordinator/merge/outputs.h"
#include "coordinator/merge/why_collectives.h"
#include "coordinator/merge/why_cut.h"
#include "coordinator/merge/why_devices.h"
#include "coordinator/merge/why_input.h"
#include "coordinator/merge/why_profiles.h"
#include "evidence/evidence.h"
#include "evidence/scheduling.h"
#include "export/report/units.h"

namespace syncline::merge {
namespace {

namespace why = analysis::why;
using why::Refusal;

// A recording as far as it is read for an explanation. Jobs point into the rest.
struct Read {
  OpenedInputs inputs;
  timeline::BuiltTimeline built;
  std::deque<std::optional<evidence::Evidence>> evidence;
  std::deque<std::optional<evidence::Scheduling>> scheduling;
  std::vector<WhyJob> jobs;
  std::optional<why::NoStep> no_step;
  why::CutCollected cut;
};

std::optional<why::NoStep> NoStepIn(const WhyOptions& options, const why::Collected& collected,
                                    OpenedInputs* inputs) {
  if (!inputs->recording.has_value() || !inputs->build.window.has_value()) return std::nullopt;
  NoStepSource source{&*inputs->recording, &collected, {}, {}, options.job};
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    source.nodes.push_back(inputs->nodes[i].name);
    source.window_end_clock_ns.push_back(
        inputs->facts[i].placement->ClockNs(inputs->build.window->end));
  }
  std::optional<why::NoStep> no_step = NoStepOf(source);
  if (no_step.has_value() || options.job.has_value()) return no_step;
  for (const std::string& job : JobsThatStandStill(std::move(source))) {
    inputs->notes.push_back(
        absl::StrCat("job ", job,
                     ": no step ended in the window, or none in its second half, in "
                     "which no rank made a call either: `syncline why --job ",
                     job, "`, with a new recording, says where its ranks stand"));
  }
  return no_step;
}

// `contradictions`: those that an earlier reading of it found.
absl::StatusOr<Read> ReadRecording(const WhyOptions& options, const InputList& list,
                                   uint64_t contradictions = 0) {
  Read read;
  SYNCLINE_ASSIGN_OR_RETURN(read.inputs, OpenInputs(options.input, list));
  OpenedInputs& inputs = read.inputs;
  inputs.build.threads = ThreadsOf(options.threads);
  if (options.progress) {
    inputs.build.progress = [&](const timeline::Progress& progress) {
      options.progress({inputs.nodes[progress.node].name, progress.time, progress.events, false});
    };
  }
  why::Collector collector;
  why::CutCollector cut;
  timeline::TimelineSink* const sinks[] = {&collector, &cut};
  SYNCLINE_ASSIGN_OR_RETURN(read.built, timeline::BuildTimeline(inputs.nodes, inputs.build, sinks));
  read.cut = cut.Take();
  const analysis::Contradictions found = analysis::ContradictionsOf(read.built, inputs.models());
  if (found.proven > 0 && !options.input.without_bounds) {
    // What belongs together across ranks was chosen by bounds that do not hold.
    WhyOptions without_bounds = options;
    without_bounds.input.without_bounds = true;
    return ReadRecording(without_bounds, list, found.proven);
  }
  inputs.likely_holds = found.likely == 0;
  if (!inputs.bounds_hold)
    inputs.complaints.push_back(analysis::BoundsDoNotHoldText(contradictions));
  inputs.build.progress = nullptr;
  read.evidence = ReadEvidence(&inputs);
  read.scheduling = ReadScheduling(&inputs);
  for (size_t i = 0; i < read.evidence.size(); ++i) {
    if (!read.evidence[i].has_value()) continue;
    for (const std::string& note : read.evidence[i]->notes) {
      inputs.notes.push_back(absl::StrCat(inputs.nodes[i].name, ": ", note));
    }
  }
  if (inputs.build.window.has_value()) {
    AddDeviceSamples(*inputs.build.window, false, &inputs);
    AddConnectionSamples(*inputs.build.window, false, &inputs);
  }
  why::Collected collected = collector.Take();
  read.no_step = NoStepIn(options, collected, &inputs);
  read.jobs = WhyJobsOf({&inputs, &read.built, &collected, &read.evidence, &read.scheduling});
  return read;
}

// What is missing, and whether names were replaced.
void SetLosses(const Read& read, why::JobInput* job) {
  const Losses losses = LossesOf(read.inputs, read.built);
  job->incomplete = losses.incomplete;
  job->lost_events = losses.lost_events;
  job->redacted = read.inputs.recording.has_value() && read.inputs.recording->redacted;
  if (read.inputs.recording.has_value()) job->detail = read.inputs.recording->detail;
}

why::Answer Refused(Refusal refusal, std::string text) {
  why::Answer answer;
  answer.refusal = refusal;
  answer.refusal_text = std::move(text);
  return answer;
}

// Whether a process was profiled by TensorFlow, of the job if one is wanted.
bool IsTensorFlowJob(const Read& read, const std::optional<std::string>& wanted) {
  std::set<ProcessKey> profiled;
  for (const timeline::NodeResult& node : read.built.nodes) {
    for (const timeline::ProfileResult& profile : node.profiles) {
      if (profile.profiler == timeline::Profiler::kTensorFlow) profiled.insert(profile.process);
    }
  }
  if (!wanted.has_value()) return !profiled.empty();
  for (const timeline::NodeResult& node : read.built.nodes) {
    for (const timeline::ProcessResult& process : node.processes) {
      if (process.job == *wanted && profiled.contains(process.key)) return true;
    }
  }
  return false;
}

why::Answer WithoutJob(const Read& read, const std::optional<std::string>& wanted) {
  if (IsTensorFlowJob(read, wanted)) {
    return Refused(Refusal::kTensorFlowJob,
                   "a TensorFlow job: what its steps are made of says the answer for cut models");
  }
  const bool processes =
      std::any_of(read.built.nodes.begin(), read.built.nodes.end(),
                  [](const timeline::NodeResult& node) { return !node.processes.empty(); });
  if (!processes) {
    return Refused(Refusal::kNothingRecorded,
                   "no process was recorded: start the job under `syncline run`, or after `eval "
                   "\"$(syncline env)\"`, then ask again; `syncline nodes` lists what can be "
                   "recorded");
  }
  return Refused(
      Refusal::kNoPyTorchOperators,
      "no process recorded a PyTorch operator in the window, nor did a collective of NCCL's end in "
      "it under `syncline run --nccl`. Either the job stands still "
      "(it hangs, waits, or sets itself up): `syncline stacks` says where its "
      "processes stand. Or the processes run no PyTorch, or have a profiler of their own; "
      "`syncline nodes` says which can be recorded");
}

// What --job takes of it: "digits/3f2a", "digits", or "" of a job without a name.
std::string NameOf(const WhyJob& job) {
  return absl::StrCat(job.job, job.incarnation.empty() ? "" : "/", job.incarnation);
}

std::string NameText(const WhyJob& job) {
  const std::string name = NameOf(job);
  return name.empty() ? "\"\" (without a name)" : name;
}

bool IsCalled(const WhyJob& job, const std::string& name) {
  return job.job == name || NameOf(job) == name;
}

// The jobs of `read` that `wanted` means; all where it is not given.
std::vector<size_t> Chosen(const Read& read, const std::optional<std::string>& wanted) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < read.jobs.size(); ++i) {
    if (!wanted.has_value() || IsCalled(read.jobs[i], *wanted)) chosen.push_back(i);
  }
  return chosen;
}

// Of all jobs of which any process was recorded; how many ranks the PyTorch jobs have.
std::string NamesOf(const Read& read) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const WhyJob& job : read.jobs) {
    known.insert(job.job);
    names.push_back(
        absl::StrCat(NameText(job), " (", report::Plural(job.input.ranks.size(), "rank"), ")"));
  }
  for (const timeline::NodeResult& node : read.built.nodes) {
    for (const timeline::ProcessResult& process : node.processes) {
      if (!process.job.empty() && known.insert(process.job).second) names.push_back(process.job);
    }
  }
  return names.empty() ? "none with a name" : absl::StrJoin(names, ", ");
}

bool IsRecorded(const Read& read, const std::string& job) {
  return std::any_of(read.built.nodes.begin(), read.built.nodes.end(),
                     [&](const timeline::NodeResult& node) {
                       return std::any_of(node.processes.begin(), node.processes.end(),
                                          [&](const auto& process) { return process.job == job; });
                     });
}

// Whether they may be one job that was started under two names: they have process groups of one
// name and of the same ranks, and each lacks ranks that the other has. Two jobs of which some
// processes each were not recorded look the same, so they are not joined.
bool MayBeHalves(const Read& read, const WhyJob& a, const WhyJob& b) {
  if (a.missing_ranks.empty() || b.missing_ranks.empty()) return false;
  for (const why::RankInput& one : a.input.ranks) {
    for (const why::RankInput& other : b.input.ranks) {
      if (one.rank == other.rank) return false;
    }
  }
  std::set<std::pair<std::string, std::string>> groups;
  const auto is_of = [](const timeline::CollectiveGroup& group, const WhyJob& job) {
    return group.job == job.job && group.incarnation == job.incarnation;
  };
  for (const timeline::CollectiveGroup& group : read.built.collectives.groups) {
    if (is_of(group, a)) groups.emplace(group.name, group.ranks);
  }
  return std::any_of(read.built.collectives.groups.begin(), read.built.collectives.groups.end(),
                     [&](const timeline::CollectiveGroup& group) {
                       return is_of(group, b) && groups.contains({group.name, group.ranks});
                     });
}

// What is to be said of the first of the jobs that may be the other half of one of `chosen`; empty:
// there is none.
std::string HalvesText(const Read& read, const std::vector<size_t>& chosen) {
  for (const size_t i : chosen) {
    for (const WhyJob& other : read.jobs) {
      if (!MayBeHalves(read, read.jobs[i], other)) continue;
      return absl::StrCat("; ", NameText(read.jobs[i]), " and ", NameText(other),
                          " have process groups of the same names and ranks, and each lacks ranks "
                          "that the other has: if they are one job, start all of its processes "
                          "with the same --job");
    }
  }
  return "";
}

// What is made of a job that can be looked at.
using Explainer = std::function<why::Answer(const why::JobInput&)>;
struct Explainers {
  Explainer job;
  std::function<std::optional<why::CutAnswer>(const CutJob&)> cut;
  // By what the job's devices did; nullopt: nothing that was recorded.
  std::function<std::optional<why::DeviceAnswer>(const WhyJob&, const OpenedInputs&,
                                                 timeline::BuiltTimeline*)>
      devices;
};

why::Answer ExplainJob(const WhyOptions& options, const Explainer& explain, const Read& read,
                       WhyJob* job) {
  SetLosses(read, &job->input);
  why::KeepOutermost(&job->input, ThreadsOf(options.threads));
  if (options.inspect) options.inspect(job->input);
  why::Answer answer;
  if (!job->conflict.empty()) {
    answer =
        Refused(Refusal::kRanksDisagree,
                absl::StrCat("two processes work as one rank (", job->conflict,
                             "): if they are two jobs, give each its own name with `syncline run "
                             "--job`; where the job was restarted meanwhile, record again"));
  } else if (!job->missing_ranks.empty()) {
    answer = Refused(
        Refusal::kRankMissing,
        absl::StrCat("not all ranks of the job were recorded (missing: ", job->missing_ranks,
                     "): record all nodes of the job together, each process under `syncline run`"));
  } else {
    return explain(job->input);
  }
  answer.job = job->job;
  return answer;
}

// Whom the answer finds late; where the job's devices answer, these.
std::vector<LateRank> LateRanks(const WhyResult& result) {
  std::vector<LateRank> ranks;
  if (result.devices.has_value()) {
    for (const why::DeviceFinding& finding : result.devices->findings) {
      ranks.push_back({.rank = result.devices->ranks[finding.index].rank});
    }
    return ranks;
  }
  for (const why::RankFinding& finding : result.answer.findings) {
    const why::RankSummary& rank = result.answer.ranks[finding.index];
    ranks.push_back({rank.rank, rank.node, rank.pid});
  }
  return ranks;
}

// What keeps tracers of devices from recording, a line each.
std::vector<std::string> UntracedDevices(const Read& read) {
  constexpr char kPrefix[] = "devices: ";
  std::set<std::string> lines;
  for (const timeline::NodeResult& node : read.built.nodes) {
    for (const timeline::LossTotal& loss : node.losses) {
      if (loss.reason != LossReason::kNotCovered) continue;
      if (!absl::StartsWith(loss.detail, kPrefix)) continue;
      lines.insert(absl::StrCat(node.name, ": what devices did is not in the recording: ",
                                absl::StripPrefix(loss.detail, kPrefix)));
    }
  }
  return {lines.begin(), lines.end()};
}

// By what NCCL said; nullopt: nothing of the job that is looked at. Errors: there are several.
absl::StatusOr<std::optional<why::CollectiveAnswer>> CollectivesOf(
    const Read& read, const std::vector<size_t>& chosen, const std::optional<std::string>& wanted) {
  if (chosen.size() > 1) return std::nullopt;
  const bool incomplete = LossesOf(read.inputs, read.built).incomplete;
  if (chosen.empty()) return ExplainCollectivesOf(read.inputs, read.built, wanted, incomplete);
  const WhyJob& job = read.jobs[chosen[0]];
  for (const std::string& other : JobsWithCollectives(read.built)) {
    if (wanted.has_value() || other == job.job) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("several jobs were recorded; choose one with --job: ", NamesOf(read)));
  }
  SYNCLINE_ASSIGN_OR_RETURN(std::optional<why::CollectiveAnswer> answer,
                            ExplainCollectivesOf(read.inputs, read.built, job.job, incomplete));
  if (!answer.has_value() || answer->refusal != why::CollectiveRefusal::kNone) return answer;
  // Other processes under the same name.
  const auto is_compared = [&](const ProcessKey& key) {
    return std::any_of(answer->ranks.begin(), answer->ranks.end(),
                       [&](const why::CollectiveRank& rank) { return rank.process == key; });
  };
  if (!std::all_of(job.processes.begin(), job.processes.end(), is_compared)) return std::nullopt;
  return answer;
}

absl::StatusOr<WhyResult> ExplainWith(const WhyOptions& options, const Explainers& explainers) {
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.input.inputs));
  WhyResult result;
  if (!list.is_recording) {
    // Says what is wrong where there is no trace at all.
    SYNCLINE_RETURN_IF_ERROR(OpenInputs(options.input, list).status());
    result.answer = Refused(
        Refusal::kForeignTrace,
        list.is_profiles ? "profiles that Syncline did not record"
                         : "traces that Syncline did not record: they have no clock model and no "
                           "samples of the nodes; make a recording with `syncline record`");
    return result;
  }
  SYNCLINE_ASSIGN_OR_RETURN(Read read, ReadRecording(options, list));
  const std::vector<size_t> chosen = Chosen(read, options.job);
  result.no_step = read.no_step;
  const bool is_cut = read.jobs.empty() && IsTensorFlowJob(read, options.job);
  SYNCLINE_ASSIGN_OR_RETURN(result.collectives, CollectivesOf(read, chosen, options.job));
  const bool is_answered = read.no_step.has_value() || is_cut || result.collectives.has_value();
  if (options.job.has_value() && chosen.empty() && !is_answered &&
      !IsRecorded(read, *options.job)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no job \"", *options.job, "\" here; there are: ", NamesOf(read)));
  }
  if (chosen.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("several jobs were recorded; choose one with --job: ", NamesOf(read),
                     HalvesText(read, chosen)));
  }
  result.answer = chosen.empty() ? WithoutJob(read, options.job)
                                 : ExplainJob(options, explainers.job, read, &read.jobs[chosen[0]]);
  if (!chosen.empty()) {
    result.devices = explainers.devices(read.jobs[chosen[0]], read.inputs, &read.built);
  }
  if (is_cut) {
    const auto job = CutJobOf(read.inputs, read.built, std::move(read.cut));
    if (job.has_value()) result.cut = explainers.cut(*job);
  }
  const bool is_better =
      result.devices.has_value() || result.cut.has_value() ||
      (result.answer.refusal == Refusal::kNone && result.collectives.has_value() &&
       result.collectives->refusal != why::CollectiveRefusal::kNone);
  if (is_better) result.collectives.reset();
  const auto job = chosen.empty() ? options.job : std::optional(read.jobs[chosen[0]].job);
  const auto network =
      analysis::FindingsOf(analysis::NetworkOf(read.built.nodes, read.inputs.facts, job));
  if (result.answer.refusal == Refusal::kNone) result.answer.network = network;
  if (result.cut.has_value()) result.cut->network = network;
  if (result.answer.refusal == Refusal::kRankMissing) {
    result.answer.refusal_text += HalvesText(read, chosen);
  }
  const std::vector<analysis::VtuneResult> vtune = ReadVtuneResults(&read.inputs);
  result.complaints = read.inputs.complaints;
  result.notes = read.inputs.notes;
  for (std::string& line : UntracedDevices(read)) result.notes.push_back(std::move(line));
  for (std::string& line : VtuneOfRanks(read.inputs, vtune, LateRanks(result))) {
    result.notes.push_back(std::move(line));
  }
  return result;
}

}  // namespace

absl::StatusOr<WhyResult> Explain(const WhyOptions& options) {
  const Explainer job = [threads = ThreadsOf(options.threads)](const why::JobInput& input) {
    return why::Explain(input, threads);
  };
  return ExplainWith(options,
                     {job, [](const CutJob& cut) { return Explain(cut); }, ExplainDevicesOf});
}

absl::StatusOr<WhySide> ReadSide(const WhyOptions& options) {
  WhySide result;
  SYNCLINE_ASSIGN_OR_RETURN(const bool are_profiles, AreProfiles(options.input));
  if (are_profiles) {
    if (options.job.has_value()) {
      return absl::InvalidArgumentError("--job is of recordings: profiles are of one job");
    }
    SYNCLINE_ASSIGN_OR_RETURN(why::DeviceSide profiles, ReadProfileSide(options));
    result.devices = std::move(profiles);
    return result;
  }
  // Whatever keeps a recording from being explained keeps it from being compared.
  const auto read_side = [&](const why::JobInput& job) {
    result.side = why::SideOf(job, ThreadsOf(options.threads));
    return Refused(result.side.refusal, result.side.refusal_text);
  };
  const auto read_cut = [&](const CutJob& job) -> std::optional<why::CutAnswer> {
    result.cut = SideOf(job);
    return std::nullopt;
  };
  const auto read_devices =
      [&](const WhyJob& job, const OpenedInputs& inputs,
          timeline::BuiltTimeline* built) -> std::optional<why::DeviceAnswer> {
    result.devices = DeviceSideOf(job, inputs, built);
    return std::nullopt;
  };
  SYNCLINE_ASSIGN_OR_RETURN(WhyResult read,
                            ExplainWith(options, {read_side, read_cut, read_devices}));
  result.side.refusal = read.answer.refusal;
  result.side.refusal_text = std::move(read.answer.refusal_text);
  if (read.collectives.has_value() && result.side.refusal != Refusal::kNone) {
    result.side.refusal_text =
        "what NCCL said of its collectives is all that it has of the job: such recordings are not "
        "compared";
  }
  result.complaints = std::move(read.complaints);
  result.notes = std::move(read.notes);
  return result;
}

absl::StatusOr<std::optional<why::NoStep>> FindNoStep(const WhyOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.input.inputs));
  if (!list.is_recording) return std::nullopt;
  SYNCLINE_ASSIGN_OR_RETURN(const Read read, ReadRecording(options, list));
  return read.no_step;
}

}  // namespace syncline::merge
