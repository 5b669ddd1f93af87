#include "coordinator/merge/profiles.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "timeline/builder.h"
#include "timeline/profile_lanes.h"
#include "xspace/space.h"

namespace syncline::merge {
namespace {

using Json = nlohmann::json;

constexpr int kProfilesVersion = 1;
constexpr int64_t kTimeMaxNs = int64_t{1} << 61;  // sums of two fit

// Keys that are missing or of another type keep what they stand at: a recording of a later version
// is read as far as it is understood.
void Read(const Json& json, const char* key, std::string* value) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_string()) *value = *found->get_ptr<const std::string*>();
}

template <class Number>
void Read(const Json& json, const char* key, Number* value) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_number_integer()) *value = found->get<Number>();
}

ProfileRecord OfJson(const Json& json) {
  ProfileRecord record;
  Read(json, "file", &record.file);
  Read(json, "own_pid", &record.own_pid);
  Read(json, "pid_namespace_inode", &record.pid_namespace_inode);
  Read(json, "start_ticks", &record.start_ticks);
  Read(json, "task", &record.task);
  Read(json, "piece", &record.piece);
  Read(json, "asked_start_realtime_ns", &record.asked_start_realtime_ns);
  Read(json, "asked_duration_ns", &record.asked_duration_ns);
  Read(json, "begin_realtime_ns", &record.begin_realtime_ns);
  Read(json, "end_realtime_ns", &record.end_realtime_ns);
  Read(json, "state", &record.state);
  Read(json, "failure", &record.failure);
  Read(json, "bytes", &record.bytes);
  for (int64_t* ns : {&record.asked_start_realtime_ns, &record.asked_duration_ns,
                      &record.begin_realtime_ns, &record.end_realtime_ns}) {
    *ns = std::clamp<int64_t>(*ns, 0, kTimeMaxNs);
  }
  return record;
}

// A name in the directory, nothing that leads out of it.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

std::string Subject(const ProfileRecord& record) {
  if (!record.task.empty()) return "TensorFlow " + timeline::ShortTask(record.task);
  return absl::StrCat("TensorFlow, pid ", record.own_pid);
}

// Why a profile shows nothing, in the words of a report.
std::string Absence(const ProfileRecord& record) {
  std::string why;
  if (record.state == "busy") {
    why = "its profiler was busy with another session";
  } else if (record.state == "missing") {
    why = "it has no profiler";
  } else if (record.state == "empty") {
    why = "its profile came without an event";
  } else if (record.state == "failed") {
    why = "its profile failed";
  } else {
    why = "its profile did not come";
  }
  if (!record.failure.empty()) absl::StrAppend(&why, ": ", record.failure);
  return why;
}

class Opener {
 public:
  Opener(std::filesystem::path directory, std::string node)
      : directory_(std::move(directory)), node_(std::move(node)) {}

  void Add(const ProfileRecord& record) {
    timeline::ProfileInput input;
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
      input.absence = Absence(record);
      // It was running when it was lost: those are events that were there and are not here.
      if (record.state == "cut" || (record.state == "failed" && ran)) {
        Lose(record, &input, LossReason::kTruncated, input.absence);
      } else if (record.state != "missing") {  // of which the report's table is enough
        Say(record, absl::StrCat("no operators: ", input.absence));
      }
    } else {
      Open(record, &input);
    }
    opened_.profiles.push_back(std::move(input));
  }

  OpenedProfiles Take() { return std::move(opened_); }
  void Say(const ProfileRecord& record, const std::string& what) {
    opened_.complaints.push_back(absl::StrCat(node_, ": ", Subject(record), ": ", what));
  }

 private:
  void Lose(const ProfileRecord& record, timeline::ProfileInput* input, LossReason reason,
            const std::string& detail) {
    input->losses.push_back({reason, 0, 0, std::nullopt, Source(record), detail});
    opened_.incomplete = true;
    Say(record, detail);
  }

  static std::string Source(const ProfileRecord& record) {
    return record.file.empty() ? Subject(record) : "xspace/" + record.file;
  }

  void Open(const ProfileRecord& record, timeline::ProfileInput* input) {
    const std::filesystem::path path = directory_ / record.file;
    auto space = IsPlainName(record.file)
                     ? xspace::Space::Open(path)
                     : absl::InvalidArgumentError("profiles.json names no file of its directory");
    if (!space.ok()) {
      input->absence = StdView(space.status().message());
      Lose(record, input, LossReason::kUnreadable,
           absl::StrCat("its profile cannot be read: ", input->absence));
      return;
    }
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
    if ((*space)->events() == 0) {
      input->absence = Absence(record.state == "complete" ? WithState(record, "empty") : record);
      Say(record, absl::StrCat("no operators: ", input->absence));
    }
    input->reader = space->get();
    opened_.readers.push_back(*std::move(space));
  }

  static ProfileRecord WithState(ProfileRecord record, const char* state) {
    record.state = state;
    return record;
  }

  std::filesystem::path directory_;
  std::string node_;
  OpenedProfiles opened_;
};

}  // namespace

absl::StatusOr<std::vector<ProfileRecord>> ParseProfiles(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("it is not JSON");
  int version = 0;
  Read(json, "format_version", &version);
  if (version != kProfilesVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"format_version\" is ", version, "; this program reads ", kProfilesVersion));
  }
  std::vector<ProfileRecord> records;
  const auto profiles = json.find("profiles");
  if (profiles == json.end() || !profiles->is_array()) {
    return absl::InvalidArgumentError("\"profiles\" is missing");
  }
  for (const Json& profile : *profiles) {
    if (profile.is_object()) records.push_back(OfJson(profile));
  }
  const auto order = [](const ProfileRecord& record) {
    return std::tuple(record.pid_namespace_inode, record.own_pid, record.start_ticks,
                      record.asked_start_realtime_ns, record.piece, record.file);
  };
  std::stable_sort(
      records.begin(), records.end(),
      [&](const ProfileRecord& a, const ProfileRecord& b) { return order(a) < order(b); });
  return records;
}

std::vector<CausalPair> CausalPairsOf(const recording::Layout& layout,
                                      const recording::Recording& recording) {
  std::vector<OpenedProfiles> profiles;
  std::vector<std::unique_ptr<timeline::Placement>> placements;
  std::vector<std::unique_ptr<timeline::WallPlacement>> walls;
  std::vector<timeline::NodeInput> nodes;
  for (uint32_t i = 0; i < recording.nodes.size(); ++i) {
    profiles.push_back(ReadProfiles(layout, recording.nodes[i].name));
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

OpenedProfiles ReadProfiles(const recording::Layout& layout, const std::string& node) {
  const std::filesystem::path directory = layout.XSpace(node);
  Opener opener(directory, node);
  const auto json = ReadFile(directory / "profiles.json");
  if (absl::IsNotFound(json.status())) return opener.Take();  // nobody asked for profiles
  const auto records =
      json.ok() ? ParseProfiles(*json) : absl::StatusOr<std::vector<ProfileRecord>>(json.status());
  if (!records.ok()) {
    OpenedProfiles failed = opener.Take();
    failed.incomplete = true;
    failed.complaints.push_back(
        absl::StrCat(node, ": TensorFlow's profiles are left out: xspace/profiles.json: ",
                     records.status().message()));
    return failed;
  }
  for (const ProfileRecord& record : *records) opener.Add(record);
  return opener.Take();
}

}  // namespace syncline::merge
