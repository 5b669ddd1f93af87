// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recording/recording.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::recording {
namespace {

// Keeps the order of keys as written, so that people read a recording.json from the general to the
// detail.
using Json = nlohmann::ordered_json;

constexpr std::pair<NodeState, const char*> kStates[] = {
    {NodeState::kComplete, "complete"},
    {NodeState::kIncomplete, "incomplete"},
    {NodeState::kMissing, "missing"},
    {NodeState::kLeft, "left"},
};

// ---- Fields: each key is named once, for reading and for writing ----

template <class Archive, class T>
void GateFields(Archive& archive, T& gate) {
  archive("requested_monotonic_raw_ns", gate.requested_monotonic_raw_ns);
  archive("gate_begin_monotonic_raw_ns", gate.gate_begin_monotonic_raw_ns);
  archive("gate_end_monotonic_raw_ns", gate.gate_end_monotonic_raw_ns);
  archive("gate_begin_monotonic_ns", gate.gate_begin_monotonic_ns);
  archive("gate_end_monotonic_ns", gate.gate_end_monotonic_ns);
}

template <class Archive>
void Fields(Archive& archive, CreatedBy& value) {
  archive("user", value.user);
  archive("host", value.host);
  archive("version", value.version);
  archive("command_line", value.command_line);
}

template <class Archive>
void Fields(Archive& archive, Window& value) {
  archive("requested_ns", value.requested_ns);
  archive("begin_timeline_ns", value.begin_timeline_ns);
  archive("end_timeline_ns", value.end_timeline_ns);
  archive("stop_reason", value.stop_reason);
}

template <class Archive>
void Fields(Archive& archive, Reference& value) {
  archive("node", value.node);
  archive("zero_monotonic_raw_ns", value.zero_monotonic_raw_ns);
}

template <class Archive>
void Fields(Archive& archive, StartRecord& value) {
  GateFields(archive, value);
  archive("processes_switched", value.processes_switched);
}

template <class Archive>
void Fields(Archive& archive, StopRecord& value) {
  GateFields(archive, value);
  archive("reason", value.reason);
  archive("complete", value.complete);
}

template <class Archive>
void Fields(Archive& archive, PrepareRecord& value) {
  archive("session", value.session);
  archive("subbuffer_bytes", value.subbuffer_bytes);
  archive("subbuffer_count", value.subbuffer_count);
  archive("buffers_bytes", value.buffers_bytes);
  archive("canary_round_trip_ns", value.canary_round_trip_ns);
  archive("duration_ns", value.duration_ns);
}

template <class Archive>
void Fields(Archive& archive, ChannelRecord& value) {
  archive("name", value.name);
  archive("discarded_events", value.discarded_events);
  archive("discarded_events_valid", value.discarded_events_valid);
  archive("lost_packets", value.lost_packets);
}

template <class Archive>
void Fields(Archive& archive, StreamRecord& value) {
  archive("path", value.path);
  archive("bytes", value.bytes);
  archive("packets", value.packets);
  archive("sequence_gaps", value.sequence_gaps);
  archive("discarded_events", value.discarded_events);
  archive("closed", value.closed);
}

template <class Archive>
void Fields(Archive& archive, ProcessRecord& value) {
  archive("pid", value.pid);
  archive("own_pid", value.own_pid);
  archive("pid_namespace_inode", value.pid_namespace_inode);
  archive("start_ticks", value.start_ticks);
  archive("uid", value.uid);
  archive("command_line", value.command_line);
  archive("job", value.job);
  archive("incarnation", value.incarnation);
  archive("rank", value.rank);
  archive("world_size", value.world_size);
  archive("role", value.role);
  archive("part", value.part);
  archive("sources", value.sources);
  archive("on_monotonic_ns", value.on_monotonic_ns);
  archive("off_monotonic_ns", value.off_monotonic_ns);
  archive("events", value.events);
  archive("lost", value.lost);
  archive("cost_ns", value.cost_ns);
  archive("cost_valid", value.cost_valid);
  archive("cost_lo_ns", value.cost_lo_ns);
  archive("cost_hi_ns", value.cost_hi_ns);
  archive("cost_samples", value.cost_samples);
  archive("started_monotonic_ns", value.started_monotonic_ns);
  archive("became_another_program", value.became_another_program);
  archive("pauses", value.pauses);
  archive("ended_monotonic_ns", value.ended_monotonic_ns);
  archive("stopped", value.stopped);
  archive("has_control_block", value.has_control_block);
  archive("present_at_prepare", value.present_at_prepare);
}

template <class Archive>
void Fields(Archive& archive, ComplaintRecord& value) {
  archive("severity", value.severity);
  archive("what", value.what);
  archive("fix", value.fix);
  archive("pid", value.pid);
  archive("not_recorded", value.not_recorded);
  archive("user", value.user);
}

template <class Archive>
void Fields(Archive& archive, Fetched& value) {
  archive("bytes", value.bytes);
  archive("complete", value.complete);
  archive("lost_profiles", value.lost_profiles);
  archive("profiles", value.profiles);
  archive("kineto_profiles", value.kineto_profiles);
}

template <class Archive>
void Fields(Archive& archive, NodeRecord& value) {
  archive("name", value.name);
  archive("address", value.address);
  archive("role", value.role);
  archive("state", value.state);
  archive("failure", value.failure);
  archive("start", value.start);
  archive("stop", value.stop);
  archive("prepare", value.prepare);
  archive("channels", value.channels);
  archive("streams", value.streams);
  archive("processes", value.processes);
  archive("complaints", value.complaints);
  archive("fetched", value.fetched);
}

template <class Archive>
void Fields(Archive& archive, Recording& value) {
  archive("recording_id", value.recording_id);
  archive("created_by", value.created_by);
  archive("epoch_unix_ns", value.epoch_unix_ns);
  archive("window", value.window);
  archive("reference", value.reference);
  archive("redacted", value.redacted);
  archive("extra_events", value.extra_events);
  archive("detail", value.detail);
  archive("nodes", value.nodes);
}

class Writer {
 public:
  explicit Writer(Json* json) : json_(*json) {}

  template <class T>
  void operator()(const char* key, T& value) {
    Write(&json_[key], value);
  }

 private:
  template <class T>
  static void Write(Json* json, T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      *json = value;
    } else if constexpr (std::is_same_v<T, NodeState>) {
      *json = NodeStateName(value);
    } else {
      *json = Json::object();
      Writer writer(json);
      Fields(writer, value);
    }
  }
  template <class T>
  static void Write(Json* json, std::vector<T>& values) {
    *json = Json::array();
    for (T& value : values) Write(&json->emplace_back(), value);
  }

  Json& json_;
};

// Missing keys keep their defaults, unknown keys are ignored; a value of the wrong kind is the
// first error.
class Reader {
 public:
  Reader(const Json& json, std::string path, absl::Status* status)
      : json_(json), path_(std::move(path)), status_(*status) {}

  template <class T>
  void operator()(const char* key, T& value) {
    if (!status_.ok()) return;
    const auto found = json_.find(key);
    if (found == json_.end()) return;
    Read(*found, path_.empty() ? key : absl::StrCat(path_, ".", key), value);
  }

 private:
  void Wrong(const std::string& path, const char* expected) {
    status_ = absl::InvalidArgumentError(absl::StrCat("\"", path, "\" is not ", expected));
  }
  template <class T>
  void Read(const Json& json, const std::string& path, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return Wrong(path, "true or false");
      value = json.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      ReadInteger(json, path, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return Wrong(path, "a string");
      value = json.get<std::string>();
    } else if constexpr (std::is_same_v<T, NodeState>) {
      for (const auto& [state, name] : kStates) {
        if (json == name) {
          value = state;
          return;
        }
      }
      Wrong(path, "a node's state (complete, incomplete, missing, left)");
    } else {
      if (!json.is_object()) return Wrong(path, "an object");
      Reader reader(json, path, &status_);
      Fields(reader, value);
    }
  }
  template <class T>
  void Read(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) return Wrong(path, "a list");
    values.clear();
    for (const Json& element : json) {
      if (!status_.ok()) return;
      const std::string element_path = absl::StrCat(path, "[", values.size(), "]");
      Read(element, element_path, values.emplace_back());
    }
  }
  template <class T>
  void ReadInteger(const Json& json, const std::string& path, T& value) {
    if (json.is_number_unsigned()) {
      const uint64_t number = json.get<uint64_t>();
      if (number <= static_cast<uint64_t>(std::numeric_limits<T>::max())) {
        value = static_cast<T>(number);
        return;
      }
    } else if (json.is_number_integer() && std::is_signed_v<T>) {
      const int64_t number = json.get<int64_t>();
      if (number >= static_cast<int64_t>(std::numeric_limits<T>::min())) {
        value = static_cast<T>(number);
        return;
      }
    }
    Wrong(path, "an integer in range");
  }

  const Json& json_;
  std::string path_;
  absl::Status& status_;
};

absl::Status CheckNodes(const Recording& recording) {
  std::set<std::string> names;
  for (const NodeRecord& node : recording.nodes) {
    SYNCLINE_RETURN_IF_ERROR(CheckNodeName(node.name));
    if (!names.insert(node.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two nodes are called \"", node.name, "\""));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::filesystem::path Layout::Samples(std::string_view local, std::string_view remote) const {
  return Clocks() / absl::StrCat(AbslView(local), "--", AbslView(remote), ".samples");
}

std::filesystem::path Layout::Tuples(std::string_view node) const {
  return Clocks() / absl::StrCat(AbslView(node), ".tuples");
}

std::filesystem::path Layout::Node(std::string_view node) const { return Nodes() / node; }

const char* NodeStateName(NodeState state) {
  for (const auto& [known, name] : kStates) {
    if (known == state) return name;
  }
  return "missing";
}

absl::Status CheckNodeName(std::string_view name) {
  const auto refuse = [&](const char* rule) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", AbslView(name), "\" cannot be a node's name: ", rule));
  };
  if (name.empty() || name.size() > 64) return refuse("it must have 1 to 64 characters");
  const auto fits = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  if (!std::all_of(name.begin(), name.end(), fits)) {
    return refuse("only letters, digits, '.', '_' and '-' are allowed");
  }
  if (!absl::ascii_isalnum(static_cast<unsigned char>(name.front()))) {
    return refuse("it must begin with a letter or a digit");
  }
  if (name == kCoordinatorName) return refuse("that is the coordinator's own name");
  return absl::OkStatus();
}

absl::StatusOr<Recording> ParseRecording(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("not a JSON object");
  const auto version = json.find("format_version");
  if (version == json.end() || !version->is_number_integer()) {
    return absl::InvalidArgumentError("\"format_version\" is missing");
  }
  if (*version != kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat("\"format_version\" is ", version->dump(),
                                                      "; this program reads ", kFormatVersion,
                                                      " (was it written by a newer syncline?)"));
  }
  Recording recording;
  absl::Status status;
  Reader reader(json, "", &status);
  Fields(reader, recording);
  SYNCLINE_RETURN_IF_ERROR(status);
  if (recording.recording_id.empty()) {
    return absl::InvalidArgumentError("\"recording_id\" is missing");
  }
  SYNCLINE_RETURN_IF_ERROR(CheckNodes(recording));
  return recording;
}

std::string FormatRecording(const Recording& recording) {
  Json json;
  json["format_version"] = kFormatVersion;
  Writer writer(&json);
  // The writer reads only; Fields() takes a mutable reference because it serves the reader as well.
  Fields(writer, const_cast<Recording&>(recording));
  // Foreign bytes (command lines) may be no UTF-8: replaced, never refused.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status CheckNotHeadless(const std::filesystem::path& directory) {
  const Layout layout(directory);
  std::error_code error;
  const std::filesystem::path nodes = layout.Nodes();
  if (std::filesystem::exists(layout.RecordingJson(), error) ||
      !std::filesystem::is_directory(nodes, error)) {
    return absl::OkStatus();
  }
  const bool clocks = std::filesystem::is_directory(layout.Clocks(), error);
  bool traces = false;
  for (std::filesystem::directory_iterator entry(nodes, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    traces = traces || std::filesystem::is_directory(entry->path() / "trace", ignored);
  }
  if (!clocks && !traces) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("\"", directory.string(), "\" is a recording without recording.json: nodes/",
                   clocks ? " and clocks/ are" : " is",
                   " there, but the file that names the nodes, the start and the reference clock "
                   "is not. Copy recording.json from the machine that recorded. Without it the "
                   "traces can be merged by their wall clocks alone: `syncline merge ",
                   nodes.string(), " --out DIR`"));
}

absl::StatusOr<Recording> ReadRecording(const std::filesystem::path& directory) {
  const Layout layout(directory);
  absl::StatusOr<std::string> text = ReadFile(layout.RecordingJson(), uint64_t{1} << 30);
  if (absl::IsNotFound(text.status())) {
    SYNCLINE_RETURN_IF_ERROR(CheckNotHeadless(directory));
    return absl::NotFoundError(absl::StrCat(
        "\"", directory.string(),
        "\" is not a recording: it has no recording.json (`syncline record --out RUN` makes one)"));
  }
  if (!text.ok()) return text.status();
  absl::StatusOr<Recording> recording = ParseRecording(*text);
  if (absl::IsFailedPrecondition(recording.status())) {
    return WithContext(recording.status(),
                       absl::StrCat("\"", layout.RecordingJson().string(), "\" cannot be read"));
  }
  if (!recording.ok()) {
    // Not the caller's argument is invalid: the file is damaged.
    return absl::DataLossError(absl::StrCat(
        "\"", layout.RecordingJson().string(), "\" is damaged: ", recording.status().message(),
        "; the nodes' traces in the same directory are intact: `syncline "
        "merge NODE=",
        layout.root().string(), "/nodes/NODE/trace ... --out DIR` reads them"));
  }
  return recording;
}

std::optional<DurationEstimate> CostOf(const ProcessRecord& process) {
  if (!process.cost_valid) return std::nullopt;
  const auto ns = [](uint64_t value) {
    return static_cast<int64_t>(std::min<uint64_t>(value, kUnknownHi - 1));
  };
  DurationEstimate cost{.est_ns = ns(process.cost_ns)};
  if (process.cost_hi_ns == 0) return cost;
  cost.lo_ns = std::min(ns(process.cost_lo_ns), cost.est_ns);
  cost.hi_ns = std::max(ns(process.cost_hi_ns), cost.est_ns);
  return cost;
}

Volume VolumeOf(const NodeRecord& node) {
  Volume volume;
  uint64_t discarded = 0;
  uint64_t lost = 0;
  bool valid = !node.channels.empty();  // else the session was gone before it was asked
  for (const ChannelRecord& channel : node.channels) {
    discarded += channel.discarded_events;
    valid = valid && channel.discarded_events_valid;
    lost += channel.lost_packets;
  }
  if (valid) volume.discarded_events = discarded;
  if (!node.channels.empty()) volume.lost_packets = lost;
  for (const StreamRecord& stream : node.streams) volume.bytes += stream.bytes;
  return volume;
}

absl::Status WriteRecording(const std::filesystem::path& directory, const Recording& recording) {
  return WriteFileAtomically(Layout(directory).RecordingJson(), FormatRecording(recording));
}

}  // namespace syncline::recording
