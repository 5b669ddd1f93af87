#include "coordinator/merge/inputs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clocksync/builder.h"
#include "clocksync/sample_file.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/merge/mutants.h"
#include "coordinator/merge/place_by_model.h"
#include "coordinator/merge/profiles.h"
#include "ctf/reader.h"
#include "ctf/stream_summary.h"

namespace syncline::merge {
namespace {

struct NamedDirectory {
  std::string name;
  std::filesystem::path directory;
};

NamedDirectory ParseInput(const std::string& input) {
  const size_t equals = input.find('=');
  // "a/b=c" is a path; a name has no slash.
  if (equals != std::string::npos && input.find('/') > equals && equals > 0) {
    return {input.substr(0, equals), input.substr(equals + 1)};
  }
  std::filesystem::path path = std::filesystem::path(input).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return {path.filename().string(), input};
}

bool IsRecording(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::exists(directory / "recording.json", error);
}

// Opens every trace below `root`; what fails becomes a loss of the node and a complaint.
struct OpenedTraces {
  std::vector<std::unique_ptr<TraceReader>> readers;
  std::vector<Loss> losses;
  std::vector<std::string> complaints;
};

OpenedTraces OpenTraces(const std::string& node, const std::filesystem::path& root) {
  OpenedTraces opened;
  const auto lose = [&](const std::filesystem::path& path, const absl::Status& status) {
    const std::string where = path.lexically_relative(root).string();
    Loss loss;
    loss.reason = LossReason::kUnreadable;
    loss.source = where == "." ? "trace" : where;
    loss.detail = StdView(status.message());
    opened.complaints.push_back(absl::StrCat(node, ": left out, its data is kept: ", path.string(),
                                             ": ", status.message()));
    opened.losses.push_back(std::move(loss));
  };
  const auto traces = ctf::FindTraces(root);
  if (!traces.ok()) {
    lose(root, traces.status());
    return opened;
  }
  if (traces->empty()) {
    lose(root, absl::NotFoundError("no CTF trace in it (no metadata file)"));
    return opened;
  }
  for (const std::filesystem::path& trace : *traces) {
    auto reader = ctf::OpenTrace(trace);
    if (!reader.ok()) {
      lose(trace, reader.status());
      continue;
    }
    for (const Loss& loss : (*reader)->losses()) {
      opened.complaints.push_back(absl::StrCat(node, ": ", loss.source, ": ",
                                               LossReasonName(loss.reason), ": ", loss.detail));
    }
    opened.readers.push_back(*std::move(reader));
  }
  return opened;
}

std::optional<int64_t> WallOffset(std::span<TraceReader* const> readers) {
  for (const TraceReader* reader : readers) {
    if (reader->wall_clock_offset_ns().has_value()) return reader->wall_clock_offset_ns();
  }
  return std::nullopt;
}

// The least time of a node's streams, trace clock.
std::optional<int64_t> FirstTime(std::span<TraceReader* const> readers) {
  std::optional<int64_t> first;
  for (const TraceReader* reader : readers) {
    for (const StreamInfo& stream : reader->streams()) {
      if (stream.begin_ns == 0 && stream.end_ns == 0) continue;
      first = first.has_value() ? std::min(*first, stream.begin_ns) : stream.begin_ns;
    }
  }
  return first;
}

void AddTraces(OpenedTraces traces, timeline::NodeInput* node, OpenedInputs* inputs) {
  for (std::unique_ptr<TraceReader>& reader : traces.readers) {
    node->readers.push_back(reader.get());
    inputs->readers.push_back(std::move(reader));
  }
  node->losses.insert(node->losses.end(), traces.losses.begin(), traces.losses.end());
  inputs->incomplete = inputs->incomplete || !traces.complaints.empty();
  inputs->complaints.insert(inputs->complaints.end(), traces.complaints.begin(),
                            traces.complaints.end());
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
// says that there was one more stream.
void MissStreams(const recording::Layout& layout, const recording::NodeRecord& record,
                 OpenedInputs* inputs) {
  if (!record.fetched.complete) return;
  for (const recording::StreamRecord& stream : record.streams) {
    std::error_code error;
    const uint64_t bytes =
        std::filesystem::file_size(layout.Trace(record.name) / stream.path, error);
    if (!error && bytes >= stream.bytes) continue;
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(
        record.name, ": trace/", stream.path, error ? " is gone" : " was cut",
        " since it was fetched: ", error ? 0 : bytes, " of ", stream.bytes, " bytes are left"));
  }
}

absl::StatusOr<clocksync::ClockModel> Refit(const recording::Layout& layout,
                                            const recording::Recording& recording) {
  clocksync::BuildInput input;
  for (const recording::NodeRecord& node : recording.nodes) input.nodes.push_back(node.name);
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator entry(layout.Clocks(), error), end;
       !error && entry != end; entry.increment(error)) {
    files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    if (file.extension() != ".samples" && file.extension() != ".tuples") continue;
    SYNCLINE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
    if (file.extension() == ".samples") {
      SYNCLINE_ASSIGN_OR_RETURN(clocksync::Edge edge, clocksync::DecodeSamples(bytes));
      input.edges.push_back(std::move(edge));
    } else {
      SYNCLINE_ASSIGN_OR_RETURN(clocksync::HostClocks host, clocksync::DecodeTuples(bytes));
      input.hosts.push_back(std::move(host));
    }
  }
  input.causal = CausalPairsOf(layout, recording);
  clocksync::BuildOptions options;
  options.reference = recording.reference.node;
  options.zero_reference_raw_ns = recording.reference.zero_monotonic_raw_ns;
  SYNCLINE_ASSIGN_OR_RETURN(clocksync::BuildResult result, clocksync::BuildModel(input, options));
  return std::move(result.model);
}

absl::StatusOr<clocksync::ClockModel> LoadModel(const recording::Layout& layout,
                                                const recording::Recording& recording, bool refit) {
  if (refit) return Refit(layout, recording);
  SYNCLINE_ASSIGN_OR_RETURN(const std::string json, ReadFile(layout.Models()));
  return clocksync::ClockModel::FromJson(json);
}

// Places each node by its wall clock: timeline zero is the Unix time `zero_unix_ns`.
std::unique_ptr<timeline::Placement> ByWallClock(ClockId clock,
                                                 std::span<TraceReader* const> readers,
                                                 int64_t zero_unix_ns) {
  const std::optional<int64_t> offset = WallOffset(readers);
  if (offset.has_value()) return timeline::ShiftPlacement(clock, *offset - zero_unix_ns);
  // Nothing says what its clock meant: it begins where the timeline does.
  return timeline::ShiftPlacement(clock, -FirstTime(readers).value_or(0));
}

absl::StatusOr<OpenedInputs> OpenDirectories(const InputOptions& options) {
  OpenedInputs inputs;
  std::set<std::string> names;
  for (const std::string& text : options.inputs) {
    NamedDirectory input = ParseInput(text);
    std::string name = input.name;
    for (int copy = 2; !names.insert(name).second; ++copy) {
      name = absl::StrCat(input.name, "-", copy);
    }
    timeline::NodeInput node;
    node.name = name;
    node.root = input.directory.string();
    AddTraces(OpenTraces(name, input.directory), &node, &inputs);
    inputs.nodes.push_back(std::move(node));
  }
  if (inputs.readers.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing to merge: no input is a recording or holds a CTF trace\n  ",
                     absl::StrJoin(inputs.complaints, "\n  ")));
  }
  std::optional<int64_t> zero_unix_ns;
  for (const timeline::NodeInput& node : inputs.nodes) {
    const std::optional<int64_t> offset = WallOffset(node.readers);
    const std::optional<int64_t> first = FirstTime(node.readers);
    if (!offset.has_value() || !first.has_value()) continue;
    const int64_t begin_ns = *offset + *first;
    zero_unix_ns = zero_unix_ns.has_value() ? std::min(*zero_unix_ns, begin_ns) : begin_ns;
  }
  inputs.epoch_unix_ns = zero_unix_ns.value_or(0);
  for (uint32_t i = 0; i < inputs.nodes.size(); ++i) {
    timeline::NodeInput& node = inputs.nodes[i];
    inputs.placements.push_back(ByWallClock({i}, node.readers, inputs.epoch_unix_ns));
    node.placement = inputs.placements.back().get();
    node.facts.emplace_back("clock", "placed by its own wall clock, bound unknown");
    analysis::NodeFacts facts;
    facts.placement = node.placement;
    facts.wall_offset_ns = WallOffset(node.readers);
    inputs.facts.push_back(std::move(facts));
  }
  return inputs;
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
    AddTraces(OpenTraces(record.name, layout.Trace(record.name)), &node, inputs);
    MissStreams(layout, record, inputs);
  }
  if (record.state == recording::NodeState::kIncomplete) {
    inputs->incomplete = true;
    inputs->complaints.push_back(absl::StrCat(
        record.name, ": incomplete: ",
        record.failure.empty() ? "events were lost; the losses say where" : record.failure));
  }
  KnownProcesses known = ReadProcesses(layout, record);
  node.processes = std::move(known.processes);
  inputs->complaints.insert(inputs->complaints.end(), known.complaints.begin(),
                            known.complaints.end());
  AddProfiles(ReadProfiles(layout, record.name), &node, inputs);
  facts.wall_offset_ns = WallOffset(node.readers);
  inputs->nodes.push_back(std::move(node));
  inputs->facts.push_back(std::move(facts));
}

absl::Status CheckNodeNames(const std::vector<std::string>& wanted,
                            const recording::Recording& recording) {
  for (const std::string& name : wanted) {
    const bool exists =
        std::any_of(recording.nodes.begin(), recording.nodes.end(),
                    [&](const recording::NodeRecord& node) { return node.name == name; });
    if (exists) continue;
    std::vector<std::string> names;
    for (const recording::NodeRecord& node : recording.nodes) names.push_back(node.name);
    return absl::InvalidArgumentError(absl::StrCat(
        "no node '", name, "' in the recording; it has: ", absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
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
      inputs->placements.push_back(PlaceByModel(*inputs->model, clock, reference_clock));
    } else {
      inputs->placements.push_back(ByWallClock(clock, inputs->nodes[i].readers, zero_unix_ns));
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
}

absl::StatusOr<OpenedInputs> OpenRecording(const InputOptions& options,
                                           const std::filesystem::path& directory) {
  OpenedInputs inputs;
  inputs.run = directory;
  SYNCLINE_ASSIGN_OR_RETURN(inputs.recording, recording::ReadRecording(directory));
  const recording::Recording& recording = *inputs.recording;
  SYNCLINE_RETURN_IF_ERROR(CheckNodeNames(options.nodes, recording));
  const recording::Layout layout(directory);
  auto model = LoadModel(layout, recording, options.refit);
  if (model.ok()) {
    inputs.model = std::make_unique<clocksync::ClockModel>(*std::move(model));
  } else {
    inputs.incomplete = true;
    inputs.complaints.push_back(absl::StrCat("no clock model (", model.status().message(),
                                             "): nodes are placed by their wall clocks"));
    inputs.model = std::make_unique<clocksync::ClockModel>(clocksync::ClockModel::Identity({}));
  }
  std::vector<uint32_t> clocks;  // ClockId::node of each node, by the model's own list
  for (const recording::NodeRecord& record : recording.nodes) {
    const bool wanted =
        options.nodes.empty() ||
        std::find(options.nodes.begin(), options.nodes.end(), record.name) != options.nodes.end();
    if (!wanted) continue;
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
  }
  inputs.epoch_unix_ns = recording.epoch_unix_ns;
  PlaceNodes(options, &inputs, clocks);
  inputs.build.window =
      timeline::Interval{{recording.window.begin_timeline_ns}, {recording.window.end_timeline_ns}};
  return inputs;
}

}  // namespace

absl::StatusOr<OpenedInputs> OpenInputs(const InputOptions& options) {
  if (options.inputs.empty()) return absl::InvalidArgumentError("nothing to merge: no input");
  for (const std::string& input : options.inputs) {
    const NamedDirectory named = ParseInput(input);
    std::error_code error;
    if (!std::filesystem::is_directory(named.directory, error)) {
      return absl::NotFoundError(
          absl::StrCat("not a directory: ", named.directory.string(),
                       " (an input is a recording, or a directory with CTF traces)"));
    }
    if (!IsRecording(named.directory)) continue;
    if (options.inputs.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(input, " is a recording: it is merged alone, not with other inputs"));
    }
    auto opened = OpenRecording(options, named.directory);
    if (opened.ok()) opened->build.keys_without_node = CurrentMutant() == Mutant::kKeysWithoutNode;
    return opened;
  }
  if (!options.nodes.empty()) {
    return absl::InvalidArgumentError("--nodes chooses nodes of a recording; these are traces");
  }
  auto opened = OpenDirectories(options);
  if (opened.ok()) opened->build.keys_without_node = CurrentMutant() == Mutant::kKeysWithoutNode;
  return opened;
}

}  // namespace syncline::merge
