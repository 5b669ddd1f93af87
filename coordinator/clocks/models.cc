// SPDX-License-Identifier: Apache-2.0
#include "coordinator/clocks/models.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "clocksync/sample_file.h"
#include "common/duration_text.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::clocks {
namespace {

using clocksync::BuildInput;
using clocksync::BuildOptions;
using clocksync::BuildResult;
using clocksync::Edge;
using clocksync::ProbeSample;

using Note = std::function<void(const std::string& who, const absl::Status& why)>;
// Of a file that was read, what of it could not be.
using NoteLost = std::function<void(const std::string& who, const std::filesystem::path& path,
                                    uint64_t truncated_bytes, const clocksync::Damage& damage)>;

absl::Status CutOff(const std::filesystem::path& path, uint64_t truncated_bytes) {
  return absl::DataLossError(
      absl::StrCat("clocks/", path.filename().string(),
                   " was cut off: it ends in the middle of an entry (", truncated_bytes,
                   " bytes of that entry are left); later samples are lost, and bounds are wider"));
}

absl::Status Damaged(const std::filesystem::path& path, const clocksync::Damage& damage) {
  return absl::DataLossError(absl::StrCat(
      "clocks/", path.filename().string(), " is damaged: ", damage.records,
      damage.records == 1 ? " entry" : " entries", ", the first at byte ", damage.first_byte,
      damage.records == 1 ? ", was" : ", were",
      " passed over; the others were read, and bounds are wider where some are missing"));
}

// What the nodes found out about each other: clocks/A--B.samples of any two nodes of the input.
void AddPeerEdges(const recording::Layout& layout, BuildInput* input, const Note& note,
                  const NoteLost& note_lost) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(layout.Clocks(), error)) {
    if (entry.path().extension() == ".samples") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // the same model from the same files, always
  const auto index_of = [&](const std::string& name) {
    return std::find(input->nodes.begin(), input->nodes.end(), name) - input->nodes.begin();
  };
  const auto known = [&](const std::string& name) {
    return index_of(name) < std::ssize(input->nodes);
  };
  const auto others = std::ssize(input->edges);
  for (const std::filesystem::path& path : paths) {
    if (path.filename().string().starts_with(
            absl::StrCat(AbslView(recording::kCoordinatorName), "--"))) {
      continue;
    }
    const auto bytes = ReadFile(path);
    absl::StatusOr<Edge> edge = bytes.ok() ? clocksync::DecodeSamples(*bytes) : bytes.status();
    if (!edge.ok()) {
      note(path.stem().string(), edge.status());
    } else if (known(edge->local) && known(edge->remote)) {
      note_lost(path.stem().string(), path, edge->truncated_bytes, edge->damage);
      input->edges.push_back(*std::move(edge));
    }
  }
  // Of two that asked each other the edge is called as the nodes are listed.
  std::stable_partition(input->edges.begin() + others, input->edges.end(), [&](const Edge& edge) {
    return index_of(edge.local) < index_of(edge.remote);
  });
}

// How well the model knows the node's clock at the window's begin; nullopt: it does not.
std::optional<int64_t> BoundAtZero(const clocksync::ClockModel& model, const std::string& node) {
  const std::vector<std::string>& names = model.nodes();
  const auto found = std::find(names.begin(), names.end(), node);
  const ClockId clock{static_cast<uint32_t>(found - names.begin()), ClockKind::kRaw};
  if (found == names.end() || !model.Knows(clock)) return std::nullopt;
  const TimelineEstimate zero = model.Locate(model.Unlocate(clock, TimelineTime{0}));
  return zero.bounded() ? std::optional(zero.bound_ns()) : std::nullopt;
}

}  // namespace

absl::StatusOr<size_t> ChooseReference(std::span<const Edge> edges) {
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i].samples.empty()) return i;
  }
  return absl::UnavailableError("no node answers clock probes");
}

int64_t ToRemote(const Edge& edge, int64_t coordinator_raw_ns) {
  constexpr size_t kRecent = 64;
  const std::span<const ProbeSample> recent =
      std::span(edge.samples).last(std::min(kRecent, edge.samples.size()));
  const ProbeSample& best = *std::min_element(recent.begin(), recent.end(),
                                              [](const ProbeSample& a, const ProbeSample& b) {
                                                return a.round_trip_ns() < b.round_trip_ns();
                                              });
  // offset = remote - local, from the halves separately: their sum may not fit.
  const int64_t there_ns = best.t2_remote_ns - best.t1_local_ns;
  const int64_t back_ns = best.t3_remote_ns - best.t4_local_ns;
  return coordinator_raw_ns + there_ns + (back_ns - there_ns) / 2;
}

absl::StatusOr<std::vector<std::optional<int64_t>>> InstantInNodes(std::span<const Edge> edges,
                                                                   size_t reference,
                                                                   int64_t reference_raw_ns) {
  BuildInput input;
  for (const Edge& edge : edges) {
    input.nodes.push_back(edge.remote);
    if (!edge.samples.empty()) input.edges.push_back(edge);
  }
  BuildOptions options;
  options.reference = edges[reference].remote;
  options.zero_reference_raw_ns = reference_raw_ns;
  SYNCLINE_ASSIGN_OR_RETURN(const BuildResult built, clocksync::BuildModel(input, options));
  std::vector<std::optional<int64_t>> instants;
  for (size_t i = 0; i < edges.size(); ++i) {
    const ClockId clock{static_cast<uint32_t>(i), ClockKind::kRaw};
    if (edges[i].samples.empty() || !built.model.Knows(clock)) {
      instants.emplace_back();
    } else {
      instants.emplace_back(built.model.Unlocate(clock, TimelineTime{0}).ns);
    }
  }
  return instants;
}

absl::StatusOr<BuildResult> BuildFromRecording(const recording::Layout& layout,
                                               const recording::Recording& recording,
                                               ModelOptions model_options) {
  BuildInput input;
  input.causal = std::move(model_options.causal);
  std::vector<clocksync::ClockEvent> events;
  const auto note = [&](const std::string& who, const absl::Status& status) {
    events.push_back({.kind = clocksync::ClockEvent::Kind::kNoSamples,
                      .node = who,
                      .text = std::string(status.message())});
  };
  const NoteLost note_lost = [&](const std::string& who, const std::filesystem::path& path,
                                 uint64_t truncated_bytes, const clocksync::Damage& damage) {
    if (truncated_bytes > 0) note(who, CutOff(path, truncated_bytes));
    if (damage.records > 0) note(who, Damaged(path, damage));
  };
  for (const recording::NodeRecord& node : recording.nodes) {
    input.nodes.push_back(node.name);
    if (node.state == recording::NodeState::kMissing) continue;
    const auto samples = ReadFile(layout.Samples(recording::kCoordinatorName, node.name));
    absl::StatusOr<Edge> edge =
        samples.ok() ? clocksync::DecodeSamples(*samples) : samples.status();
    if (edge.ok()) {
      note_lost(node.name, layout.Samples(recording::kCoordinatorName, node.name),
                edge->truncated_bytes, edge->damage);
      input.edges.push_back(*std::move(edge));
    } else {
      note(node.name, edge.status());
    }
    const auto tuples = ReadFile(layout.Tuples(node.name));
    absl::StatusOr<clocksync::HostClocks> host =
        tuples.ok() ? clocksync::DecodeTuples(*tuples) : tuples.status();
    if (host.ok()) {
      note_lost(node.name, layout.Tuples(node.name), host->truncated_bytes, host->damage);
      host->node = node.name;  // the file is the agent's, which does not know its own name here
      input.hosts.push_back(*std::move(host));
    } else {
      note(node.name, host.status());
    }
  }
  AddPeerEdges(layout, &input, note, note_lost);
  BuildOptions options;
  options.reference = recording.reference.node;
  options.zero_reference_raw_ns = recording.reference.zero_monotonic_raw_ns;
  options.audit = model_options.audit;
  SYNCLINE_ASSIGN_OR_RETURN(BuildResult built, clocksync::BuildModel(input, options));
  built.events.insert(built.events.end(), events.begin(), events.end());
  return built;
}

StoredModel CompareWithStored(const recording::Layout& layout, BuildResult* built) {
  const auto json = ReadFile(layout.Models());
  const absl::StatusOr<clocksync::ClockModel> stored =
      json.ok() ? clocksync::ClockModel::FromJson(*json) : json.status();
  if (!stored.ok()) {
    return {.complaint = absl::StrCat(
                "\"", layout.Models().string(), "\" is ", json.ok() ? "damaged" : "missing",
                ": without it nodes are merged by their wall clocks; `syncline merge ",
                layout.root().string(), " --refit` makes a model from the samples")};
  }
  std::set<std::string> told;
  std::erase_if(built->events, [&](clocksync::ClockEvent& event) {
    if (event.kind != clocksync::ClockEvent::Kind::kNoSamples) return false;
    // Few samples, or a missing log of the host's clocks, are told as they are.
    const std::optional<int64_t> bound_ns = BoundAtZero(*stored, event.node);
    if (!bound_ns.has_value() || BoundAtZero(built->model, event.node).has_value()) return false;
    event.text = absl::StrCat(
        "its samples are missing; clocks/models.json was made from them and still places the node, "
        "at the window's begin ± ",
        DurationText(*bound_ns));
    return !told.insert(event.node).second;  // once for the file and the model alike
  });
  return {.samples_lost = SamplesLost(layout, *stored)};
}

std::vector<LostSamples> SamplesLost(const recording::Layout& layout,
                                     const clocksync::ClockModel& stored) {
  std::vector<LostSamples> lost;
  for (const clocksync::ClockModel::Source& source : stored.sources()) {
    const std::filesystem::path path = layout.Samples(source.local, source.remote);
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(path, error);
    const uint64_t left = error ? 0 : clocksync::SamplesInFile(source.local, source.remote, bytes);
    if (left >= source.samples) continue;
    const bool cut = !error;
    lost.push_back(
        {cut, absl::StrCat("clocks/", path.filename().string(), cut ? " was cut" : " is gone",
                           " since clocks/models.json was made: ", left, " of its ", source.samples,
                           " samples are left")});
  }
  return lost;
}

absl::StatusOr<BuildResult> WriteModels(const recording::Layout& layout,
                                        const recording::Recording& recording) {
  SYNCLINE_ASSIGN_OR_RETURN(BuildResult built, BuildFromRecording(layout, recording));
  SYNCLINE_RETURN_IF_ERROR(WriteFileAtomically(layout.Models(), built.model.ToJson()));
  return built;
}

}  // namespace syncline::clocks
