// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/inputs.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clocksync/builder.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/clocks/models.h"
#include "coordinator/merge/collective_pairs.h"
#include "coordinator/merge/message_pairs.h"
#include "coordinator/merge/mutants.h"
#include "coordinator/merge/place_by_model.h"
#include "coordinator/merge/profile_files.h"
#include "coordinator/merge/profiles.h"
#include "ctf/stream_chain.h"

namespace syncline::merge {
namespace {

// What a path is instead of the file that was fetched; nullopt: it is whole.
std::optional<std::string> DamageOf(const std::filesystem::path& file, uint64_t bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) return "is gone";
  if (error) return absl::StrCat("cannot be read (", error.message(), ")");
  if (!std::filesystem::is_regular_file(status)) return "is no longer a file";
  const uint64_t left = std::filesystem::file_size(file, error);
  if (error || left >= bytes) return std::nullopt;
  return absl::StrCat("was cut (", left, " of ", bytes, " bytes are left)");
}

void AddProfiles(OpenedProfiles profiles, timeline::NodeInput* node, OpenedInputs* inputs) {
  for (std::unique_ptr<TraceReader>& reader : profiles.readers) {
    inputs->readers.push_back(std::move(reader));
  }
  node->profiles = std::move(profiles.profiles);
  inputs->incomplete = inputs->incomplete || profiles.incomplete;
  inputs->complaints.insert(inputs->complaints.end(), profiles.complaints.begin(),
                            profiles.complaints.end());
}

// Files of events that were fetched whole and are gone, or shorter, since: nothing inside a trace
// says that there was one more stream. Nor that there was a trace, when its metadata are gone.
void MissStreams(const recording::Layout& layout, const recording::NodeRecord& record,
                 const OpenedTraces& opened, OpenedInputs* inputs) {
  // Where nothing is at all, it is said once, by who opens the traces.
  std::error_code error;
  if (!record.fetched.complete ||
      !std::filesystem::is_directory(layout.Trace(record.name), error)) {
    return;
  }
  const auto complain = [&](const auto&... what) {
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(record.name, ": trace/", what...));
  };
  std::set<std::filesystem::path> seen;  // directories that are traces, readable or not
  for (const OpenedTrace& trace : opened.traces) seen.insert(trace.path);
  for (const UnreadableTrace& trace : opened.unreadable) seen.insert(trace.path);
  for (const recording::StreamRecord& stream : record.streams) {
    const std::filesystem::path file = layout.Trace(record.name) / stream.path;
    if (const auto damage = DamageOf(file, stream.bytes)) {
      complain(stream.path, " ", *damage, " since it was fetched");
    }
    if (stream.packets == 0 || !seen.insert(file.parent_path()).second) continue;
    const std::string directory = std::filesystem::path(stream.path).parent_path().string();
    complain(
        directory,
        "/metadata is gone since it was fetched: the streams in the same directory cannot be read");
  }
}

// Traces in a node's directory that were not fetched into it: copies, or another host's. They are
// left out.
void DropStrangers(const recording::NodeRecord& record, const std::filesystem::path& root,
                   OpenedTraces* opened, OpenedInputs* inputs) {
  if (!record.fetched.complete || record.streams.empty()) return;
  std::set<std::filesystem::path> own;
  for (const recording::StreamRecord& stream : record.streams) {
    own.insert((root / stream.path).parent_path());
  }
  const auto stranger = [&](const OpenedTrace& trace) {
    if (own.count(trace.path) != 0) return false;
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(
        record.name, ": trace/", trace.path.lexically_relative(root).string(),
        " is skipped: it was not fetched with this recording (a copy, or another host's?)"));
    return true;
  };
  std::erase_if(opened->traces, stranger);
}

// Directories below nodes/ that recording.json does not name: data that is left out.
void MissNodes(const recording::Layout& layout, const recording::Recording& recording,
               OpenedInputs* inputs) {
  std::set<std::string> strangers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(layout.Nodes(), error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(ignored) && !name.starts_with('.')) strangers.insert(name);
  }
  for (const recording::NodeRecord& node : recording.nodes) strangers.erase(node.name);
  for (const std::string& name : strangers) {
    inputs->incomplete = true;
    inputs->complaints.push_back(
        absl::StrCat("nodes/", AsName(name),
                     " is skipped: recording.json names no such node (its clock was "
                     "never measured; given alone as a trace directory it can be merged)"));
  }
}

// Anew from the raw samples. Those that cannot be read are said and left out.
absl::StatusOr<clocksync::ClockModel> Refit(const recording::Layout& layout,
                                            const recording::Recording& recording,
                                            const std::vector<CausalPair>& collectives,
                                            OpenedInputs* inputs) {
  std::vector<CausalPair> causal = CausalPairsOf(layout, recording);
  causal.insert(causal.end(), collectives.begin(), collectives.end());
  const std::vector<CausalPair> messages = MessagePairsOf(layout, recording);
  causal.insert(causal.end(), messages.begin(), messages.end());
  SYNCLINE_ASSIGN_OR_RETURN(
      clocksync::BuildResult result,
      clocks::BuildFromRecording(layout, recording, {.causal = std::move(causal)}));
  for (const clocksync::ClockEvent& event : result.events) {
    if (event.kind != clocksync::ClockEvent::Kind::kNoSamples) continue;
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat("clock samples of ", event.node, ": ", event.text));
  }
  return std::move(result.model);
}

absl::StatusOr<clocksync::ClockModel> ReadModel(const recording::Layout& layout) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string json, ReadFile(layout.Models()));
  auto model = clocksync::ClockModel::FromJson(json);
  if (!model.ok()) {
    return WithContext(model.status(), absl::StrCat("\"", layout.Models().string(), "\""));
  }
  return model;
}

// The model that was made at record time; where it cannot be read, or when asked for, a new one.
absl::StatusOr<clocksync::ClockModel> LoadModel(const recording::Layout& layout,
                                                const recording::Recording& recording, bool refit,
                                                const std::vector<CausalPair>& collectives,
                                                OpenedInputs* inputs) {
  if (refit) return Refit(layout, recording, collectives, inputs);
  absl::StatusOr<clocksync::ClockModel> model = ReadModel(layout);
  if (model.ok()) {
    for (const clocks::LostSamples& lost : clocks::SamplesLost(layout, *model)) {
      inputs->incomplete = inputs->incomplete || lost.cut;
      (lost.cut ? inputs->complaints : inputs->notes)
          .push_back(absl::StrCat(
              lost.text,
              "; nodes are placed by the stored model, which was made from all of them"));
    }
    return model;
  }
  absl::StatusOr<clocksync::ClockModel> made = Refit(layout, recording, collectives, inputs);
  bool knows_any = false;
  for (uint32_t node = 0; made.ok() && node < made->nodes().size(); ++node) {
    knows_any = knows_any || made->Knows(ClockId{node});
  }
  if (!knows_any) return model.status();
  inputs->incomplete = true;
  inputs->complaints.push_back(absl::StrCat("the clock model was rebuilt from clocks/*.samples: ",
                                            model.status().message()));
  return made;
}

// What LTTng wrote and did not write, as counted when the node stopped.
void AddVolume(const recording::NodeRecord& record, analysis::NodeFacts* facts) {
  if (record.stop.gate_end_monotonic_ns == 0) return;
  const recording::Volume volume = recording::VolumeOf(record);
  facts->trace_bytes = volume.bytes;
  facts->discarded_events = volume.discarded_events;
  facts->lost_packets = volume.lost_packets;
}

// One node of a recording: its traces, processes and gate; the placement comes afterwards.
void AddNode(const recording::Layout& layout, const recording::NodeRecord& record, uint32_t clock,
             OpenedInputs* inputs) {
  timeline::NodeInput node;
  node.name = record.name;
  node.root = layout.root().string();
  analysis::NodeFacts facts;
  facts.role = record.role;
  facts.state = recording::NodeStateName(record.state);
  facts.failure = record.failure;
  node.facts = {{"address", record.address}, {"role", record.role}, {"state", facts.state}};
  const auto gate = [&](const recording::Gate& at) -> std::optional<NodeTime> {
    if (at.gate_begin_monotonic_raw_ns == 0) return std::nullopt;
    return NodeTime{{clock, ClockKind::kRaw}, at.gate_begin_monotonic_raw_ns};
  };
  facts.gate_opened = gate(record.start);
  facts.gate_closed = gate(record.stop);
  AddVolume(record, &facts);
  if (record.state == recording::NodeState::kMissing ||
      record.state == recording::NodeState::kLeft) {
    Loss loss;
    loss.reason = LossReason::kNodeMissing;
    loss.source = record.name;
    loss.detail = record.failure.empty() ? facts.state : record.failure;
    node.losses.push_back(loss);
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(record.name, ": ", facts.state, ": ", loss.detail));
  } else {
    if (const auto late_ns = recording::LateStartNs(record)) {
      const int64_t began_ns = record.start.gate_begin_monotonic_ns;
      node.losses.push_back({LossReason::kNotCovered, began_ns - *late_ns, began_ns, std::nullopt,
                             record.name, "the agent started late"});
    }
    if (recording::NeverStarted(record)) {
      node.losses.push_back({LossReason::kNotCovered, 0, 0, std::nullopt, record.name,
                             "the agent never started recording"});
    }
    OpenedTraces opened = OpenTraces(layout.Trace(record.name));
    MissStreams(layout, record, opened, inputs);
    DropStrangers(record, layout.Trace(record.name), &opened, inputs);
    AddChain(ChainTraces(opened.traces), record.name, inputs);
    for (OpenedTrace& trace : opened.traces) AddTrace(std::move(trace), &node, inputs);
    for (UnreadableTrace& trace : opened.unreadable) AddLoss(std::move(trace), &node, inputs);
  }
  node.unflushed = record.stop.gate_end_monotonic_ns != 0 && !record.stop.complete;
  if (!recording::NeverStarted(record) && record.stop.gate_end_monotonic_ns != 0) {
    node.closed_ns = record.stop.gate_end_monotonic_ns;
    node.why_closed = record.stop.reason;
  }
  if (record.state == recording::NodeState::kIncomplete) {
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(
        record.name, ": incomplete: ",
        !record.failure.empty() ? record.failure
        : node.unflushed
            ? "LTTng exited, did not finish in time, or wrote no metadata: part of it is lost"
            : "a part of it is missing"));
  }
  KnownProcesses known = ReadProcesses(layout, record);
  node.processes = std::move(known.processes);
  inputs->incomplete = inputs->incomplete || !known.complaints.empty();
  inputs->complaints.insert(inputs->complaints.end(), known.complaints.begin(),
                            known.complaints.end());
  AddProfiles(ReadProfiles(layout, record.name), &node, inputs);
  facts.wall_offset_ns = WallOffset(node.readers);
  inputs->nodes.push_back(std::move(node));
  inputs->facts.push_back(std::move(facts));
}

// What happened to the node's clock, for the timeline. An event without a place there is in the
// report alone.
void AddClockEvents(const std::string& node, OpenedInputs* inputs) {
  for (const clocksync::ClockEvent& event : inputs->model->events()) {
    if (!event.begin || !event.end || !clocksync::Concerns(event, node)) continue;
    const std::string about = event.node == node ? "" : absl::StrCat(event.node, ": ");
    inputs->nodes.back().clock_events.push_back({.begin = *event.begin,
                                                 .end = *event.end,
                                                 .name = clocksync::EventName(event),
                                                 .text = absl::StrCat(about, event.text)});
  }
}

// By the model; by the wall clock where the model does not know the node (or when asked for).
void PlaceNodes(const InputOptions& options, OpenedInputs* inputs,
                const std::vector<uint32_t>& clocks) {
  const size_t count = inputs->nodes.size();
  const uint32_t reference = inputs->reference.value_or(0);
  // Timeline zero by the reference's wall clock as the trace has it: what a merge by wall clock
  // would use.
  int64_t zero_unix_ns = inputs->epoch_unix_ns;
  const ClockId reference_clock{clocks[reference]};
  const std::optional<int64_t> offset = inputs->facts[reference].wall_offset_ns;
  if (inputs->model->Knows(reference_clock) && offset.has_value()) {
    zero_unix_ns = inputs->model->Unlocate(reference_clock, {0}).ns + *offset;
  }
  for (size_t i = 0; i < count; ++i) {
    const size_t placed_as = CurrentMutant() == Mutant::kSwapNodes ? count - 1 - i : i;
    const ClockId clock{clocks[placed_as]};
    const bool by_wall_clock =
        options.align == Alignment::kWallClock || CurrentMutant() == Mutant::kWallClock;
    if (inputs->model->Knows(clock) && !by_wall_clock) {
      auto placed = PlaceByModel(*inputs->model, clock, reference_clock);
      if (!inputs->bounds_hold) placed = WithoutBounds(std::move(placed));
      if (!inputs->bounds_hold) inputs->nodes[i].closed_ns.reset();  // told by the same clock
      inputs->placements.push_back(std::move(placed));
    } else {
      inputs->placements.push_back(PlaceByWallClock(clock, inputs->nodes[i].readers, zero_unix_ns));
      inputs->nodes[i].closed_ns.reset();  // where the window ends there nobody knows
      if (!by_wall_clock) {
        inputs->incomplete = true;
        inputs->complaints.push_back(absl::StrCat(
            inputs->nodes[i].name, ": its clock was never measured: placed by its wall clock"));
      }
    }
    inputs->nodes[i].placement = inputs->placements.back().get();
    inputs->facts[i].placement = inputs->placements.back().get();
    inputs->walls.push_back(std::make_unique<timeline::WallPlacement>(
        inputs->model.get(), inputs->placements.back().get(), inputs->facts[i].wall_offset_ns));
    inputs->nodes[i].wall = inputs->walls.back().get();
  }
  if (options.align == Alignment::kWallClock) {
    inputs->notes.emplace_back(
        "placed by wall clocks, for comparison only: times of different nodes cannot be compared, "
        "and what these clocks place outside the window is missing");
  }
}

// Kineto reads the wall clock at the begin and the end of its profile, and its operators' times
// from a counter, by a straight line between them: a wall clock that was set in it bends all of
// them.
// Where an end of the profile has no place, a step is what took it, if there is one.
void LeaveOutBentProfiles(OpenedInputs* inputs) {
  for (timeline::NodeInput& node : inputs->nodes) {
    const std::vector<clocksync::ClockEvent>& events = inputs->model->events();
    const bool has_step = std::any_of(events.begin(), events.end(), [&node](const auto& event) {
      return event.kind == clocksync::ClockEvent::Kind::kStep &&
             clocksync::Concerns(event, node.name);
    });
    for (timeline::ProfileInput& profile : node.profiles) {
      const timeline::ClockInterval& covered = profile.covered;
      if (profile.profiler != timeline::Profiler::kKineto || profile.reader == nullptr ||
          !node.wall->WasSetBetween(covered.begin_ns, covered.end_ns).value_or(has_step)) {
        continue;
      }
      profile.reader = nullptr;
      profile.absence =
          "the host's wall clock was set while Kineto's profile ran: the times of its operators "
          "are unknown";
      const std::string process = absl::StrCat("pid ", profile.process.pid);
      profile.losses.push_back(
          {LossReason::kUnreadable, 0, 0, std::nullopt, process, profile.absence});
      inputs->incomplete = true;
      inputs->complaints.push_back(absl::StrCat(node.name, ": ", process, ": ", profile.absence));
    }
  }
}

// What the samples do not prove, but would follow if paths were not too asymmetric.
void Assume(int64_t asymmetry_percent, OpenedInputs* inputs) {
  inputs->assumption.asymmetry_percent = asymmetry_percent;
  if (asymmetry_percent >= clocksync::kAsymmetryPercentAny) return;
  auto likely = inputs->model->AssumingAsymmetry(asymmetry_percent);
  if (!likely.has_value()) {
    inputs->assumption.refuted_by = clocksync::kAsymmetryContradicted;
    return;
  }
  inputs->likely = std::make_unique<clocksync::ClockModel>(*std::move(likely));
}

// The bounds that are drawn beside the proven ones.
void PlaceLikely(const std::vector<uint32_t>& clocks, OpenedInputs* inputs) {
  if (inputs->likely == nullptr) return;
  for (size_t i = 0; i < inputs->nodes.size(); ++i) {
    const ClockId clock{clocks[i]};
    if (!inputs->likely->Knows(clock)) continue;
    inputs->placements.push_back(timeline::ModelPlacement(*inputs->likely, clock));
    inputs->nodes[i].likely = inputs->placements.back().get();
    inputs->nodes[i].assumption = clocksync::AsymmetryText(inputs->assumption.asymmetry_percent);
  }
}

// `collectives`: what they say of the clocks, for a model that is made anew.
absl::StatusOr<OpenedInputs> OpenRecording(const InputOptions& options,
                                           const std::filesystem::path& directory,
                                           const std::vector<CausalPair>& collectives = {}) {
  OpenedInputs inputs;
  inputs.run = directory;
  SYNCLINE_ASSIGN_OR_RETURN(inputs.recording, recording::ReadRecording(directory));
  const recording::Recording& recording = *inputs.recording;
  std::vector<std::string> names;
  for (const recording::NodeRecord& node : recording.nodes) names.push_back(node.name);
  SYNCLINE_RETURN_IF_ERROR(CheckNodeNames(options.nodes, names));
  const recording::Layout layout(directory);
  if (recording.nodes.empty()) {
    return absl::DataLossError(absl::StrCat("\"", layout.RecordingJson().string(),
                                            "\" names no node: there is nothing to merge"));
  }
  inputs.bounds_hold = !options.without_bounds;
  MissNodes(layout, recording, &inputs);
  if (recording.detail != "full") inputs.notes.push_back(recording::DescribeDetail(recording));
  auto model = LoadModel(layout, recording, options.refit, collectives, &inputs);
  if (model.ok()) {
    inputs.model = std::make_unique<clocksync::ClockModel>(*std::move(model));
  } else {
    inputs.incomplete = true;
    inputs.complaints.push_back(absl::StrCat("no clock model (", model.status().message(),
                                             "): nodes are placed by their wall clocks; ",
                                             "--refit makes it from the clock samples"));
    inputs.model = std::make_unique<clocksync::ClockModel>(clocksync::ClockModel::Identity({}));
  }
  std::vector<uint32_t> clocks;  // ClockId::node of each node, by the model's own list
  for (const recording::NodeRecord& record : recording.nodes) {
    if (!IsWanted(options.nodes, record.name)) continue;
    const std::vector<std::string>& known = inputs.model->nodes();
    const auto index = std::find(known.begin(), known.end(), record.name) - known.begin();
    const auto clock = static_cast<uint32_t>(index < static_cast<ptrdiff_t>(known.size())
                                                 ? index
                                                 : ptrdiff_t{1 << 20} + ptrdiff_t(clocks.size()));
    clocks.push_back(clock);
    if (record.name == recording.reference.node) {
      inputs.reference = static_cast<uint32_t>(inputs.nodes.size());
    }
    AddNode(layout, record, clock, &inputs);
    AddClockEvents(record.name, &inputs);
    const std::string begun = recording::DescribeBegun(record);
    if (!begun.empty()) inputs.notes.push_back(absl::StrCat("node ", record.name, ": ", begun));
  }
  inputs.epoch_unix_ns = recording.epoch_unix_ns;
  PlaceNodes(options, &inputs, clocks);
  LeaveOutBentProfiles(&inputs);
  Assume(options.asymmetry_percent, &inputs);
  PlaceLikely(clocks, &inputs);
  inputs.build.window =
      timeline::Interval{{recording.window.begin_timeline_ns}, {recording.window.end_timeline_ns}};
  return inputs;
}

// Collectives can be told apart only where the clocks are known somewhat: by the model that is made
// without them.
absl::StatusOr<OpenedInputs> OpenAndRefit(const InputOptions& options,
                                          const std::filesystem::path& directory) {
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs opened, OpenRecording(options, directory));
  const auto built = timeline::BuildTimeline(opened.nodes, opened.build, {});
  if (!built.ok()) return built.status();
  const std::vector<CausalPair> pairs = CollectivePairs(built->collectives, *opened.model);
  // Anew in any case: readers are read only once.
  return OpenRecording(options, directory, pairs);
}

}  // namespace

bool IsWanted(const std::vector<std::string>& wanted, const std::string& name) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

absl::Status CheckNodeNames(const std::vector<std::string>& wanted,
                            const std::vector<std::string>& names) {
  for (const std::string& name : wanted) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("no node '", name, "' here; the nodes are: ", absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

void AddChain(const ChainedTraces& chained, const std::string& node, OpenedInputs* inputs) {
  for (const std::string& note : chained.notes) {
    inputs->notes.push_back(absl::StrCat(node, ": ", note));
  }
  inputs->begins_late = inputs->begins_late || chained.begins_late;
  inputs->incomplete = inputs->incomplete || !chained.complaints.empty();
  for (const std::string& complaint : chained.complaints) {
    inputs->complaints.push_back(absl::StrCat(node, ": ", complaint));
  }
}

void AddTrace(OpenedTrace trace, timeline::NodeInput* node, OpenedInputs* inputs) {
  for (const std::string& complaint : ComplaintsOf(*trace.reader)) {
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(node->name, ": ", complaint));
  }
  node->readers.push_back(trace.reader.get());
  OpenedInputs::TraceAt at{node->name, std::move(trace.path), {}};
  if (const auto* const chained = dynamic_cast<ctf::ChainedReader*>(trace.reader.get())) {
    for (const StreamInfo& stream : trace.reader->streams()) {
      at.before.emplace(stream.name, chained->before(stream.index));
    }
  }
  inputs->traces.push_back(std::move(at));
  inputs->readers.push_back(std::move(trace.reader));
}

void AddLoss(UnreadableTrace trace, timeline::NodeInput* node, OpenedInputs* inputs) {
  inputs->incomplete = true;
  inputs->complaints.push_back(absl::StrCat(node->name, ": ", trace.complaint));
  node->losses.push_back(std::move(trace.loss));
}

absl::StatusOr<OpenedInputs> OpenInputs(const InputOptions& options, const InputList& list) {
  auto opened = list.is_profiles     ? OpenProfileFiles(options, list)
                : !list.is_recording ? OpenDirectories(options, list)
                : options.refit      ? OpenAndRefit(options, list.inputs[0].directory)
                                     : OpenRecording(options, list.inputs[0].directory);
  if (!opened.ok()) return opened;
  opened->notes.insert(opened->notes.begin(), list.notes.begin(), list.notes.end());
  opened->build.keys_without_node = CurrentMutant() == Mutant::kKeysWithoutNode;
  return opened;
}

absl::StatusOr<OpenedInputs> OpenInputs(const InputOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.inputs));
  return OpenInputs(options, list);
}

}  // namespace syncline::merge
