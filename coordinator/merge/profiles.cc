// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/profiles.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "kineto/trace.h"
#include "timeline/builder.h"
#include "timeline/profile_lanes.h"
#include "xspace/profile_list.h"
#include "xspace/space.h"

namespace syncline::merge {
namespace {

using xspace::ProfileRecord;
using xspace::ProfileState;

using timeline::Profiler;

constexpr int64_t kTimeMaxNs = int64_t{1} << 61;  // sums of two fit

// A name in the directory, nothing that leads out of it.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

std::string Subject(Profiler profiler, const ProfileRecord& record) {
  if (profiler == Profiler::kKineto) return absl::StrCat("Kineto, pid ", record.own_pid);
  if (!record.task.empty()) return "TensorFlow " + timeline::ShortTask(record.task);
  return absl::StrCat(record.framework.empty() ? "TensorFlow" : record.framework, ", pid ",
                      record.own_pid);
}

// Why a profile shows nothing, in the words of a report.
std::string Absence(Profiler profiler, ProfileState state, const std::string& failure) {
  // What keeps Kineto from running is known in the process, which says all of it.
  const bool said = profiler == Profiler::kKineto && !failure.empty();
  if (state == ProfileState::kMissing && said) return failure;
  std::string why;
  switch (state) {
    case ProfileState::kBusy:
      why = "its profiler was busy with another session";
      break;
    case ProfileState::kMissing:
      why = "it has no profiler";
      break;
    case ProfileState::kEmpty:
      why = "its profile arrived without an event";
      break;
    case ProfileState::kFailed:
      why = "its profile failed";
      break;
    case ProfileState::kComplete:
    case ProfileState::kCut:
      why = "its profile did not arrive";
      break;
  }
  if (!failure.empty()) absl::StrAppend(&why, ": ", failure);
  return why;
}

class Opener {
 public:
  Opener(Profiler profiler, std::filesystem::path directory, std::string node)
      : profiler_(profiler), directory_(std::move(directory)), node_(std::move(node)) {}

  void Add(const ProfileRecord& record) {
    timeline::ProfileInput input;
    input.profiler = record.framework == timeline::kJaxName ? Profiler::kJax : profiler_;
    input.process.pid_namespace = record.pid_namespace_inode;
    input.process.pid = record.own_pid;
    input.process.start_ticks = record.start_ticks;
    input.task = record.task;
    // The agent's clock around the call, which begins before the profile does.
    const bool ran = record.asked_start_realtime_ns != 0 &&
                     record.end_realtime_ns > record.asked_start_realtime_ns;
    input.covered.begin_ns = record.asked_start_realtime_ns;
    input.covered.end_ns =
        ran ? record.end_realtime_ns : record.asked_start_realtime_ns + record.asked_duration_ns;
    if (record.file.empty()) {
      input.absence = Absence(profiler_, record.state, record.failure);
      if (xspace::WasLost(record)) {
        Lose(record, &input, LossReason::kTruncated, input.absence);
      } else if (record.state != ProfileState::kMissing && !IsIdle(record.state)) {
        // Of those the report's table is enough.
        Say(record, absl::StrCat("no operators: ", input.absence));
      }
    } else {
      Open(record, &input);
    }
    opened_.profiles.push_back(std::move(input));
  }

  OpenedProfiles Take() { return std::move(opened_); }
  void Say(const ProfileRecord& record, const std::string& what) {
    opened_.complaints.push_back(absl::StrCat(node_, ": ", Subject(profiler_, record), ": ", what));
  }

 private:
  void Lose(const ProfileRecord& record, timeline::ProfileInput* input, LossReason reason,
            const std::string& detail) {
    input->losses.push_back({reason, 0, 0, std::nullopt, Source(record), detail});
    opened_.incomplete = true;
    Say(record, detail);
  }

  std::string Source(const ProfileRecord& record) const {
    if (record.file.empty()) return Subject(profiler_, record);
    return (directory_.filename() / record.file).string();
  }

  void Open(const ProfileRecord& record, timeline::ProfileInput* input) {
    const std::filesystem::path path = directory_ / record.file;
    const absl::Status status =
        !IsPlainName(record.file)
            ? absl::InvalidArgumentError("profiles.json names no file of its directory")
        : profiler_ == Profiler::kKineto ? Take(kineto::Trace::Open(path), record, input)
                                         : Take(xspace::Space::Open(path), record, input);
    if (status.ok()) return;
    input->absence = StdView(status.message());
    Lose(record, input, LossReason::kUnreadable,
         absl::StrCat("its profile cannot be read: ", input->absence));
  }

  // What is in a profile that could be opened.
  template <class Space>
  absl::Status Take(absl::StatusOr<std::unique_ptr<Space>> space, const ProfileRecord& record,
                    timeline::ProfileInput* input) {
    SYNCLINE_RETURN_IF_ERROR(space.status());
    const auto begin = (*space)->profile_begin_ns();
    const auto end = (*space)->profile_end_ns();
    if (begin.has_value() && *begin >= 0 && *begin < kTimeMaxNs) {
      input->covered.begin_ns = *begin;
      input->covered.end_ns =
          end.value_or(0) > *begin && *end < kTimeMaxNs ? *end : *begin + record.asked_duration_ns;
    }
    for (Loss loss : (*space)->losses()) {
      loss.source = Source(record);
      Say(record, absl::StrCat(loss.source, ": ", LossReasonName(loss.reason), ": ", loss.detail));
      input->losses.push_back(std::move(loss));
      opened_.incomplete = true;
    }
    // "cut" ended with the recording: nothing of the window is missing.
    if ((*space)->events() == 0) SayEmpty(record, (*space)->losses(), input);
    input->reader = space->get();
    opened_.readers.push_back(*std::move(space));
    return absl::OkStatus();
  }

  // Kineto is asked for in every process of a job, and some do nothing: torchrun itself, loaders of
  // data. TensorFlow's is asked for where there is a server.
  bool IsIdle(ProfileState state) const {
    return profiler_ == Profiler::kKineto && state == ProfileState::kEmpty;
  }

  void SayEmpty(const ProfileRecord& record, std::span<const Loss> losses,
                timeline::ProfileInput* input) {
    const bool kineto = profiler_ == Profiler::kKineto;
    if (kineto && !losses.empty()) {  // said already
      input->absence = losses.front().detail;
      return;
    }
    const bool whole =
        record.state == ProfileState::kComplete || (kineto && record.state == ProfileState::kCut);
    const ProfileState state = whole ? ProfileState::kEmpty : record.state;
    input->absence = Absence(profiler_, state, record.failure);
    if (!IsIdle(state)) Say(record, absl::StrCat("no operators: ", input->absence));
  }

  Profiler profiler_;
  std::filesystem::path directory_;
  std::string node_;
  OpenedProfiles opened_;
};

OpenedProfiles ReadProfilesOf(Profiler profiler, const std::filesystem::path& directory,
                              const std::string& node) {
  Opener opener(profiler, directory, node);
  const auto json = ReadFile(directory / "profiles.json");
  if (absl::IsNotFound(json.status())) return opener.Take();  // nobody asked for profiles
  const auto records = json.ok() ? xspace::ParseProfileList(*json)
                                 : absl::StatusOr<std::vector<ProfileRecord>>(json.status());
  if (!records.ok()) {
    OpenedProfiles failed = opener.Take();
    failed.incomplete = true;
    failed.complaints.push_back(
        absl::StrCat(node, ": ", profiler == Profiler::kKineto ? "Kineto's" : "TensorFlow's",
                     " profiles are skipped: ", directory.filename().string(),
                     "/profiles.json: ", records.status().message()));
    return failed;
  }
  for (const ProfileRecord& record : *records) opener.Add(record);
  return opener.Take();
}

template <class T>
void MoveBehind(std::vector<T>* from, std::vector<T>* to) {
  for (T& one : *from) to->push_back(std::move(one));
}

}  // namespace

OpenedProfiles ReadProfiles(const recording::Layout& layout, const std::string& node) {
  OpenedProfiles all = ReadProfilesOf(Profiler::kTensorFlow, layout.XSpace(node), node);
  OpenedProfiles kineto = ReadProfilesOf(Profiler::kKineto, layout.Kineto(node), node);
  MoveBehind(&kineto.readers, &all.readers);
  MoveBehind(&kineto.profiles, &all.profiles);
  MoveBehind(&kineto.complaints, &all.complaints);
  all.incomplete = all.incomplete || kineto.incomplete;
  return all;
}

std::vector<CausalPair> CausalPairsOf(const recording::Layout& layout,
                                      const recording::Recording& recording) {
  std::vector<OpenedProfiles> profiles;
  std::vector<std::unique_ptr<timeline::Placement>> placements;
  std::vector<std::unique_ptr<timeline::WallPlacement>> walls;
  std::vector<timeline::NodeInput> nodes;
  for (uint32_t i = 0; i < recording.nodes.size(); ++i) {
    // Kineto says nothing of tensors between nodes.
    const std::string& name = recording.nodes[i].name;
    profiles.push_back(ReadProfilesOf(Profiler::kTensorFlow, layout.XSpace(name), name));
    // Nothing has a place yet, and any will do: it is for finding the places that pairs are wanted.
    placements.push_back(timeline::ShiftPlacement({i}, 0));
    walls.push_back(std::make_unique<timeline::WallPlacement>(nullptr, placements.back().get(), 0));
    timeline::NodeInput& node = nodes.emplace_back();
    node.name = recording.nodes[i].name;
    node.placement = placements.back().get();
    node.wall = walls.back().get();
    node.profiles = profiles.back().profiles;
  }
  std::vector<CausalPair> pairs;
  const auto built = timeline::BuildTimeline(nodes, {}, {});
  if (!built.ok()) return pairs;
  for (const timeline::NodeResult& node : built->nodes) {
    for (const timeline::TensorTransfer& transfer : node.received) {
      if (transfer.send_node == transfer.receive_node) continue;
      pairs.push_back({transfer.send_begin, transfer.received});
    }
  }
  return pairs;
}

}  // namespace syncline::merge
