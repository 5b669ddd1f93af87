// SPDX-License-Identifier: Apache-2.0
#include "xspace/profile_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text.h"

namespace syncline::xspace {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int64_t kTimeMaxNs = int64_t{1} << 61;  // sums of two fit
constexpr ProfileState kStates[] = {ProfileState::kComplete, ProfileState::kCut,
                                    ProfileState::kEmpty,    ProfileState::kBusy,
                                    ProfileState::kMissing,  ProfileState::kFailed};

// Every key of a record, once: `visit(key, member)`.
template <class Record, class Visit>
void ForEachKey(Record& record, const Visit& visit) {
  visit("file", record.file);
  visit("own_pid", record.own_pid);
  visit("pid_namespace_inode", record.pid_namespace_inode);
  visit("start_ticks", record.start_ticks);
  visit("port", record.port);
  visit("address", record.address);
  visit("framework", record.framework);
  visit("task", record.task);
  visit("incarnation", record.incarnation);
  visit("session", record.session);
  visit("piece", record.piece);
  visit("host_tracer_level", record.host_tracer_level);
  visit("asked_start_realtime_ns", record.asked_start_realtime_ns);
  visit("asked_duration_ns", record.asked_duration_ns);
  visit("begin_realtime_ns", record.begin_realtime_ns);
  visit("end_realtime_ns", record.end_realtime_ns);
  visit("begin_monotonic_ns", record.begin_monotonic_ns);
  visit("state", record.state);
  visit("failure", record.failure);
  visit("bytes", record.bytes);
}

void Write(const char* key, const std::string& value, Json* json) { (*json)[key] = value; }
void Write(const char* key, ProfileState value, Json* json) {
  (*json)[key] = ProfileStateName(value);
}
template <class Number>
void Write(const char* key, Number value, Json* json) {
  (*json)[key] = value;
}

void Read(const Json& json, std::string* value) {
  if (json.is_string()) *value = *json.get_ptr<const std::string*>();
}
void Read(const Json& json, ProfileState* value) {
  std::string name;
  Read(json, &name);
  const auto* const found =
      std::find_if(std::begin(kStates), std::end(kStates),
                   [&](ProfileState s) { return ProfileStateName(s) == name; });
  *value = found == std::end(kStates) ? ProfileState::kFailed : *found;
}
template <class Number>
void Read(const Json& json, Number* value) {
  if (json.is_number_integer()) *value = json.get<Number>();
}

void Sort(std::vector<ProfileRecord>* records) {
  const auto order = [](const ProfileRecord& record) {
    return std::tie(record.pid_namespace_inode, record.own_pid, record.start_ticks, record.piece,
                    record.asked_start_realtime_ns, record.file);
  };
  std::stable_sort(
      records->begin(), records->end(),
      [&](const ProfileRecord& a, const ProfileRecord& b) { return order(a) < order(b); });
}

}  // namespace

std::string_view ProfileStateName(ProfileState state) {
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
      break;
  }
  return "failed";
}

bool WasLost(const ProfileRecord& record) {
  if (!record.file.empty()) return false;
  const bool ran = record.asked_start_realtime_ns != 0 &&
                   record.end_realtime_ns > record.asked_start_realtime_ns;
  return record.state == ProfileState::kCut || (record.state == ProfileState::kFailed && ran);
}

std::string FormatProfileList(std::vector<ProfileRecord> records) {
  Sort(&records);
  Json list = Json::array();
  for (const ProfileRecord& record : records) {
    Json json = Json::object();
    ForEachKey(record, [&](const char* key, const auto& value) { Write(key, value, &json); });
    if (record.file.empty()) json.erase("file");
    list.push_back(std::move(json));
  }
  const Json json = {{"format_version", kVersion}, {"profiles", std::move(list)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::vector<ProfileRecord>> ParseProfileList(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("it is not JSON");
  int version = 0;
  if (const auto found = json.find("format_version"); found != json.end()) Read(*found, &version);
  if (version != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"format_version\" is ", version, "; this program reads ", kVersion));
  }
  const auto profiles = json.find("profiles");
  if (profiles == json.end() || !profiles->is_array()) {
    return absl::InvalidArgumentError("\"profiles\" is missing");
  }
  std::vector<ProfileRecord> records;
  for (const Json& profile : *profiles) {
    if (!profile.is_object()) continue;
    ProfileRecord& record = records.emplace_back();
    ForEachKey(record, [&](const char* key, auto& value) {
      if (const auto found = profile.find(key); found != profile.end()) Read(*found, &value);
    });
    for (int64_t* ns :
         {&record.asked_start_realtime_ns, &record.asked_duration_ns, &record.begin_realtime_ns,
          &record.end_realtime_ns, &record.begin_monotonic_ns}) {
      *ns = std::clamp<int64_t>(*ns, 0, kTimeMaxNs);
    }
  }
  Sort(&records);
  return records;
}

}  // namespace syncline::xspace
