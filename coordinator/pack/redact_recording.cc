// SPDX-License-Identifier: Apache-2.0
// What the coordinator wrote: recording.json and the clocks' files.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clocksync/clock_model.h"
#include "clocksync/sample_file.h"
#include "common/process_part.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/pack/public_names.h"
#include "coordinator/pack/redact_files.h"

namespace syncline::pack {
namespace {

using Json = nlohmann::ordered_json;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "20261121-093012-7f3a", as Syncline makes them; somebody else's is replaced.
bool IsRecordingId(std::string_view id) {
  constexpr std::string_view kForm = "dddddddd-dddddd-xxxx";
  if (id.size() != kForm.size()) return false;
  for (size_t i = 0; i < id.size(); ++i) {
    const bool hex = IsDigit(id[i]) || (id[i] >= 'a' && id[i] <= 'f');
    if (kForm[i] == 'd' ? !IsDigit(id[i]) : kForm[i] == 'x' ? !hex : id[i] != kForm[i])
      return false;
  }
  return true;
}

std::string Version(const std::string& version, Pseudonyms* names) {
  const bool numbers =
      std::all_of(version.begin(), version.end(), [](char c) { return IsDigit(c) || c == '.'; });
  return numbers ? version : names->Plain(version);
}

// Reasons that the coordinator gives stay; of an agent's own the word that is asked for.
std::string Reason(const std::string& reason, Pseudonyms* names) {
  if (reason.empty() || IsSchemaWord(reason)) return reason;
  for (const char* kind : {"adopted", "guard"}) {
    if (reason.starts_with(kind)) return absl::StrCat(kind, ": ", names->Sentence(reason));
  }
  return names->Sentence(reason);
}

void RedactNode(recording::NodeRecord* node, Pseudonyms* names) {
  node->name = RedactNodeName(node->name, names);
  node->address = names->Address(node->address);
  node->role = names->Word(node->role);
  node->failure = names->Sentence(node->failure);
  node->stop.reason = Reason(node->stop.reason, names);
  node->prepare.session = names->Plain(node->prepare.session);
  for (recording::ChannelRecord& channel : node->channels) {
    channel.name = names->Word(channel.name);
  }
  for (recording::StreamRecord& stream : node->streams) {
    stream.path = RedactTracePath(stream.path, names);
  }
  for (recording::ProcessRecord& process : node->processes) {
    process.uid = names->Uid(process.uid);
    process.command_line = names->Plain(process.command_line);
    process.job = names->Plain(process.job);
    process.incarnation = names->Plain(process.incarnation);
    process.role = names->Word(process.role);
    if (!IsPart(process.part)) process.part.clear();
    for (std::string& source : process.sources) source = names->Word(source);
  }
  for (recording::ComplaintRecord& complaint : node->complaints) {
    complaint.severity = names->Word(complaint.severity);
    complaint.what = names->Sentence(complaint.what);
    complaint.fix = names->Sentence(complaint.fix);
    if (complaint.user >= 0) complaint.user = names->Uid(static_cast<uint32_t>(complaint.user));
  }
}

// An event is of a node, or of two: "a--b".
std::string NodeOfEvent(const std::string& text, const std::vector<std::string>& nodes,
                        Pseudonyms* names) {
  const auto known = [&nodes](std::string_view name) {
    return std::find(nodes.begin(), nodes.end(), name) != nodes.end();
  };
  for (size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at + 1)) {
    if (!known(text.substr(0, at)) || !known(text.substr(at + 2))) continue;
    return absl::StrCat(RedactNodeName(text.substr(0, at), names), "--",
                        RedactNodeName(text.substr(at + 2), names));
  }
  return RedactNodeName(text, names);
}

}  // namespace

std::string RedactNodeName(std::string_view node, Pseudonyms* names) {
  return node == recording::kCoordinatorName ? std::string(node) : names->Plain(node);
}

std::string RedactTracePath(std::string_view path, Pseudonyms* names) {
  std::vector<std::string> parts = absl::StrSplit(AbslView(path), '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string& part = parts[i];
    uint32_t uid = 0;
    // Of a stream: its channel, a number, and what LTTng puts behind where files rotate.
    std::string_view stream = part;
    const bool is_stream = i + 1 == parts.size() && stream.starts_with("syncline_") &&
                           std::all_of(stream.begin() + 9, stream.end(),
                                       [](char c) { return IsDigit(c) || c == '_'; });
    if (i > 0 && parts[i - 1] == "uid" && absl::SimpleAtoi(part, &uid)) {
      part = absl::StrCat(names->Uid(uid));
    } else if (!is_stream && part != "64-bit" && part != "32-bit" && part != "metadata") {
      part = names->Word(part);
    }
  }
  return absl::StrJoin(parts, "/");
}

recording::Recording RedactRecording(recording::Recording recording, Pseudonyms* names) {
  recording.redacted = true;
  if (!IsRecordingId(recording.recording_id)) {
    recording.recording_id = names->Plain(recording.recording_id);
  }
  recording::CreatedBy& by = recording.created_by;
  by.user = names->Plain(by.user);
  by.host = names->Plain(by.host);
  by.version = Version(by.version, names);
  for (std::string& word : by.command_line) word = names->Plain(word);
  recording.window.stop_reason = Reason(recording.window.stop_reason, names);
  recording.reference.node = RedactNodeName(recording.reference.node, names);
  for (std::string& pattern : recording.extra_events) pattern = names->Plain(pattern);
  for (recording::NodeRecord& node : recording.nodes) RedactNode(&node, names);
  return recording;
}

absl::StatusOr<std::string> RedactModels(std::string_view json, Pseudonyms* names) {
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::ClockModel model,
                            clocksync::ClockModel::FromJson(json));
  // What it writes has the keys of the schema, and no others.
  Json made = Json::parse(model.ToJson(), nullptr, /*allow_exceptions=*/false);
  if (made.is_discarded()) return absl::InternalError("a clock model cannot be written");
  std::vector<std::string> nodes;
  for (const char* key : {"nodes", "hubs"}) {
    for (Json& node : made[key]) {
      nodes.push_back(node.get<std::string>());
      node = RedactNodeName(nodes.back(), names);
    }
  }
  for (Json* events : {&made["events"], &made["wall_clock"]["events"]}) {
    for (Json& event : *events) {
      event["node"] = NodeOfEvent(event["node"].get<std::string>(), nodes, names);
      event["text"] = names->Sentence(event["text"].get<std::string>());
    }
  }
  return made.dump() + "\n";
}

absl::StatusOr<std::string> RedactSamples(std::string_view bytes, Pseudonyms* names) {
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::Edge edge, clocksync::DecodeSamples(bytes));
  if (edge.damage.records > 0) return absl::DataLossError("it is damaged");
  std::string made = clocksync::EncodeSamplesHeader(RedactNodeName(edge.local, names),
                                                    RedactNodeName(edge.remote, names));
  for (const clocksync::ProbeSample& sample : edge.samples) {
    clocksync::AppendSample(sample, &made);
  }
  return made;
}

absl::StatusOr<std::string> RedactTuples(std::string_view bytes, Pseudonyms* names) {
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::HostClocks clocks, clocksync::DecodeTuples(bytes));
  if (clocks.damage.records > 0) return absl::DataLossError("it is damaged");
  std::string made = clocksync::EncodeTuplesHeader(RedactNodeName(clocks.node, names));
  for (const clocksync::ClockTuple& tuple : clocks.tuples) clocksync::AppendTuple(tuple, &made);
  return made;
}

}  // namespace syncline::pack
