// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/redact_run.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clocksync/sample_file.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "control_block/block_file.h"
#include "ctf/byte_source.h"
#include "ctf/metadata.h"

namespace syncline::pack {
namespace {

namespace fs = std::filesystem;

struct Edge {
  std::string local;
  std::string remote;
};

bool IsNode(std::string_view name, const recording::Recording& recording) {
  return name == recording::kCoordinatorName ||
         std::any_of(recording.nodes.begin(), recording.nodes.end(),
                     [&](const recording::NodeRecord& node) { return node.name == name; });
}

// Of "a--b": either may hold "--" itself.
std::optional<Edge> EdgeOf(std::string_view stem, const recording::Recording& recording) {
  for (size_t at = stem.find("--"); at != stem.npos; at = stem.find("--", at + 1)) {
    const std::string_view local = stem.substr(0, at);
    const std::string_view remote = stem.substr(at + 2);
    if (IsNode(local, recording) && IsNode(remote, recording)) {
      return Edge{std::string(local), std::string(remote)};
    }
  }
  return std::nullopt;
}

// The numbers in the name of a control block, or of its names, name nobody; no other text may be
// there.
bool IsBlockName(const fs::path& name) {
  return control_block::ParseBlockFileName(fs::path(name).replace_extension(".block").string())
      .has_value();
}

const char* WhatIsLeftOut(MemberKind kind) {
  switch (kind) {
    case MemberKind::kStacks:
      return "where the ranks of a job without steps stood (stacks.json)";
    case MemberKind::kProbes:
      return "how the nodes probed each other (clocks/probes.json)";
    case MemberKind::kNodeJson:
      return "inventories of nodes (node.json)";
    case MemberKind::kAgentLog:
      return "logs of agents (agent.log)";
    case MemberKind::kIndex:
      return "indexes of streams (trace/.../index/)";
    case MemberKind::kCode:
      return "which code the threads ran (evidence/code.txt)";
    case MemberKind::kDevices:
      return "how the devices were, and who used them (evidence/devices.txt)";
    case MemberKind::kConnections:
      return "addresses and counters of TCP connections (evidence/connections.txt)";
    case MemberKind::kScheduling:
      return "when the threads ran, and who had their CPUs (evidence/scheduling.txt)";
    case MemberKind::kProfileList:
      return "lists of profiles (profiles.json)";
    case MemberKind::kXSpace:
      return "profiles of TensorFlow (xspace/)";
    case MemberKind::kKineto:
      return "profiles of PyTorch (kineto/)";
    case MemberKind::kVtune:
      return "results of VTune (vtune/)";
    default:
      return nullptr;
  }
}

// nullopt: it is not called as Syncline calls such files.
std::optional<std::string> PathInPack(const Member& member, const recording::Recording& recording,
                                      Pseudonyms* names) {
  const fs::path path(member.path);
  const std::vector<std::string> parts(path.begin(), path.end());
  const recording::Layout pack{fs::path()};
  switch (member.kind) {
    case MemberKind::kRecordingJson:
    case MemberKind::kModels:
      return member.path;
    case MemberKind::kSamples: {
      const std::optional<Edge> edge = EdgeOf(path.stem().string(), recording);
      if (!edge.has_value()) return std::nullopt;
      return pack.Samples(RedactNodeName(edge->local, names), RedactNodeName(edge->remote, names))
          .string();
    }
    case MemberKind::kTuples:
      if (!IsNode(path.stem().string(), recording)) return std::nullopt;
      return pack.Tuples(RedactNodeName(path.stem().string(), names)).string();
    case MemberKind::kMetadata:
    case MemberKind::kStream: {
      const std::string below = absl::StrJoin(parts.begin() + 3, parts.end(), "/");
      return (pack.Trace(RedactNodeName(parts[1], names)) / RedactTracePath(below, names)).string();
    }
    case MemberKind::kBlock:
    case MemberKind::kNames:
      if (!IsBlockName(path.filename())) return std::nullopt;
      return (pack.Processes(RedactNodeName(parts[1], names)) / path.filename()).string();
    case MemberKind::kEvidence:
      return (pack.Evidence(RedactNodeName(parts[1], names)) / "samples.txt").string();
    default:
      return std::nullopt;
  }
}

std::string_view TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

absl::Status Refused(const RedactedFile& file, const absl::Status& why) {
  // Of the pack, not of the trace: it cannot be written, or the user interrupted it.
  if (absl::IsUnavailable(why) || absl::IsCancelled(why)) return why;
  // The recording is wrong, not the command.
  const absl::StatusCode code =
      absl::IsInvalidArgument(why) ? absl::StatusCode::kDataLoss : why.code();
  return absl::Status(code,
                      absl::StrCat("\"", file.from, "\" cannot be redacted: ", why.message()));
}

}  // namespace

bool IsRedacted(MemberKind kind) { return WhatIsLeftOut(kind) == nullptr; }

uint32_t RanksOf(const recording::Recording& recording) {
  // Where nobody gave ranks, there are no more of them than processes.
  int64_t ranks = 0;
  for (const recording::NodeRecord& node : recording.nodes) {
    ranks += static_cast<int64_t>(node.processes.size());
  }
  for (const recording::NodeRecord& node : recording.nodes) {
    for (const recording::ProcessRecord& process : node.processes) {
      ranks = std::max({ranks, int64_t{process.rank} + 1, int64_t{process.world_size}});
    }
  }
  constexpr int64_t kMost = 1'000'000;
  return static_cast<uint32_t>(std::min(ranks, kMost));
}

RedactPlan PlanRedaction(const recording::Recording& recording, const Members& members,
                         Pseudonyms* names) {
  RedactPlan plan;
  std::map<std::string, size_t> kinds;
  std::set<std::string> taken;
  for (const Member& member : members.members) {
    if (const char* const what = WhatIsLeftOut(member.kind)) {
      ++kinds[what];
      continue;
    }
    std::optional<std::string> to = PathInPack(member, recording, names);
    if (!to.has_value() || !taken.insert(*to).second) {
      plan.left_out.push_back({member.path, "is not called as Syncline calls such files"});
      continue;
    }
    plan.files.push_back({member.kind, member.path, *std::move(to)});
  }
  for (const auto& [what, files] : kinds) plan.kinds.push_back({what, files});
  std::sort(plan.files.begin(), plan.files.end(),
            [](const RedactedFile& a, const RedactedFile& b) { return a.to < b.to; });
  return plan;
}

absl::StatusOr<std::string> RunRedactor::Contents(const RedactedFile& file,
                                                  std::string_view bytes) {
  switch (file.kind) {
    case MemberKind::kRecordingJson:
      return recording::FormatRecording(RedactRecording(recording_, &names_));
    case MemberKind::kModels:
      return RedactModels(bytes, &names_);
    case MemberKind::kSamples:
    case MemberKind::kTuples: {
      // The names in it are those of the file, so that none stands in one of the two alone.
      const std::string stem = fs::path(file.from).stem().string();
      std::string header = clocksync::EncodeTuplesHeader(RedactNodeName(stem, &names_));
      if (file.kind == MemberKind::kSamples) {
        const Edge edge = EdgeOf(stem, recording_).value_or(Edge{});
        header = clocksync::EncodeSamplesHeader(RedactNodeName(edge.local, &names_),
                                                RedactNodeName(edge.remote, &names_));
      }
      SYNCLINE_ASSIGN_OR_RETURN(std::string made, file.kind == MemberKind::kSamples
                                                      ? RedactSamples(bytes, &names_)
                                                      : RedactTuples(bytes, &names_));
      if (!made.starts_with(header)) return absl::DataLossError("it is of other nodes");
      return made;
    }
    case MemberKind::kBlock:
      return RedactBlock(BytesOf(bytes), &names_);
    case MemberKind::kNames:
      return RedactNames(BytesOf(bytes), &names_);
    case MemberKind::kEvidence: {
      std::string made;
      SYNCLINE_RETURN_IF_ERROR(
          RedactEvidence(bytes, &names_, [&made](std::span<const uint8_t> more) {
            made.append(reinterpret_cast<const char*>(more.data()), more.size());
            return absl::OkStatus();
          }));
      return made;
    }
    default:
      return absl::InternalError("such files are not redacted");
  }
}

absl::Status RunRedactor::LoadTrace(const fs::path& directory) {
  if (trace_.layout != nullptr && trace_.directory == directory) return absl::OkStatus();
  SYNCLINE_ASSIGN_OR_RETURN(auto metadata, ctf::LoadMetadata(directory));
  SYNCLINE_ASSIGN_OR_RETURN(auto layout, ctf::BuildLayout(std::move(metadata)));
  trace_ = {directory, std::move(layout)};
  return absl::OkStatus();
}

absl::Status RunRedactor::WriteStream(const RedactedFile& file, const Begin& begin,
                                      const Sink& sink) {
  SYNCLINE_ASSIGN_OR_RETURN(const auto source, ctf::FileWindow::Open(run_ / file.from));
  SYNCLINE_RETURN_IF_ERROR(begin(file.to, source->size()));
  return RedactStream(trace_.layout, source.get(), &names_, sink);
}

absl::StatusOr<std::optional<std::string>> RunRedactor::Write(const RedactedFile& file,
                                                              const Begin& begin,
                                                              const Sink& sink) {
  std::string made;
  if (file.kind == MemberKind::kStream || file.kind == MemberKind::kMetadata) {
    absl::Status status = LoadTrace((run_ / file.from).parent_path());
    if (status.ok() && file.kind == MemberKind::kStream) {
      status = WriteStream(file, begin, sink);
    } else if (status.ok()) {
      absl::StatusOr<std::string> text = RedactMetadata(*trace_.layout->metadata, &names_);
      status = text.status();
      if (text.ok()) made = *std::move(text);
    }
    if (!status.ok()) return Refused(file, status);
    if (file.kind == MemberKind::kStream) return std::nullopt;
  } else {
    SYNCLINE_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(run_ / file.from));
    absl::StatusOr<std::string> contents = Contents(file, TextOf(mapped));
    if (!contents.ok()) {
      return absl::StrCat("cannot be redacted: ", contents.status().message());
    }
    made = *std::move(contents);
  }
  SYNCLINE_RETURN_IF_ERROR(begin(file.to, made.size()));
  SYNCLINE_RETURN_IF_ERROR(sink(BytesOf(made)));
  return std::nullopt;
}

}  // namespace syncline::pack
