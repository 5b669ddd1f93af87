#include "agent/tfprofiler/profile_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace syncline::agent {
namespace {

using Json = nlohmann::ordered_json;

auto OrderOf(const ProfileEntry& entry) {
  const ProcessEntry& process = entry.worker.process;
  return std::make_tuple(process.pid_namespace, process.own_pid, process.start_ticks, entry.piece);
}

Json ToJson(const ProfileEntry& entry) {
  const ProcessEntry& process = entry.worker.process;
  Json json;
  if (!entry.file.empty()) json["file"] = entry.file;
  json["own_pid"] = process.own_pid;
  json["pid_namespace_inode"] = process.pid_namespace;
  json["start_ticks"] = process.start_ticks;
  json["port"] = entry.worker.port;
  json["address"] = entry.worker.address;
  json["task"] = entry.worker.task;
  json["incarnation"] = entry.worker.incarnation;
  json["session"] = entry.session;
  json["piece"] = entry.piece;
  json["host_tracer_level"] = entry.host_tracer_level;
  json["asked_start_realtime_ns"] = entry.asked_start_realtime_ns;
  json["asked_duration_ns"] = entry.asked_duration_ns;
  json["begin_realtime_ns"] = entry.begin_realtime_ns;
  json["end_realtime_ns"] = entry.end_realtime_ns;
  json["state"] = ProfileStateName(entry.state);
  json["failure"] = entry.failure;
  json["bytes"] = entry.bytes;
  return json;
}

}  // namespace

const char* ProfileStateName(ProfileState state) {
  switch (state) {
    case ProfileState::kComplete:
      return "complete";
    case ProfileState::kCut:
      return "cut";
    case ProfileState::kEmpty:
      return "empty";
    case ProfileState::kBusy:
      return "busy";
    case ProfileState::kMissing:
      return "missing";
    case ProfileState::kFailed:
      return "failed";
  }
  return "failed";
}

std::string FormatProfiles(std::vector<ProfileEntry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const ProfileEntry& a, const ProfileEntry& b) { return OrderOf(a) < OrderOf(b); });
  Json json;
  json["format_version"] = 1;
  json["profiles"] = Json::array();
  for (const ProfileEntry& entry : entries) json["profiles"].push_back(ToJson(entry));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<v1::Complaint> ComplainOfProfiles(const std::vector<ProfileEntry>& entries) {
  std::vector<v1::Complaint> complaints;
  std::set<int32_t> named;
  for (const ProfileEntry& entry : entries) {
    const bool busy = entry.state == ProfileState::kBusy;
    if (!busy && entry.state != ProfileState::kFailed) continue;
    const ProcessEntry& process = entry.worker.process;
    if (!named.insert(process.pid).second) continue;
    v1::Complaint& complaint = complaints.emplace_back();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_pid(process.pid);
    complaint.set_what(absl::StrCat("Process ", process.pid, " (",
                                    entry.worker.task.empty() ? process.name : entry.worker.task,
                                    ") gave no TensorFlow operators: ", entry.failure));
    complaint.set_fix(
        busy ? "end that profile (TensorBoard's, or tf.profiler in the program) before "
               "you record; --no-tf-profiler does not ask for it"
             : "the rest of the recording is not touched by it; --no-tf-profiler does "
               "not ask for it");
  }
  return complaints;
}

}  // namespace syncline::agent
