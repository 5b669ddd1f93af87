// SPDX-License-Identifier: Apache-2.0
#include "vtune/result_record.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/utf8.h"

namespace syncline::vtune {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int64_t kTimeMaxNs = int64_t{1} << 61;  // sums of two fit

void Write(const std::string& value, Json* json) { *json = OnlyPrintable(value, '?'); }
void Write(const std::vector<std::string>& values, Json* json) {
  *json = Json::array();
  for (const std::string& value : values) json->push_back(OnlyPrintable(value, '?'));
}
template <class Number>
void Write(Number value, Json* json) {
  *json = value;
}

void Read(const Json& json, std::string* value) {
  if (json.is_string()) *value = OnlyPrintable(*json.get_ptr<const std::string*>(), '?');
}
void Read(const Json& json, std::vector<std::string>* values) {
  if (!json.is_array()) return;
  for (const Json& one : json) Read(one, &values->emplace_back());
}
template <class Number>
void Read(const Json& json, Number* value) {
  if (json.is_number_integer()) *value = json.get<Number>();
}

// Every key, once: `visit(key, member)`.
template <class Run, class Visit>
void ForEachKeyOfRun(Run& run, const Visit& visit) {
  visit("arguments", run.arguments);
  visit("begin_raw_ns", run.begin_raw_ns);
  visit("end_raw_ns", run.end_raw_ns);
  visit("exit_code", run.exit_code);
}
template <class Record, class Visit>
void ForEachKey(Record& record, const Visit& visit) {
  visit("analysis", record.analysis);
  visit("vtune_version", record.version);
  visit("pid", record.pid);
  visit("own_pid", record.own_pid);
  visit("pid_namespace_inode", record.pid_namespace_inode);
  visit("start_ticks", record.start_ticks);
  visit("uid", record.uid);
  visit("rank", record.rank);
  visit("ready_raw_ns", record.ready_raw_ns);
  visit("bytes", record.bytes);
  visit("problem", record.problem);
}
template <class Record, class Visit>
void ForEachRun(Record& record, const Visit& visit) {
  visit("collect", record.collect);
  visit("resume", record.resume);
  visit("stop", record.stop);
}

bool IsTime(int64_t ns) { return ns >= 0 && ns <= kTimeMaxNs; }

}  // namespace

std::string FormatRecord(const ResultRecord& record) {
  Json json;
  json["format_version"] = kVersion;
  ForEachKey(record, [&](const char* key, const auto& value) { Write(value, &json[key]); });
  ForEachRun(record, [&](const char* key, const CommandRun& run) {
    Json& one = json[key];
    ForEachKeyOfRun(run, [&](const char* name, const auto& value) { Write(value, &one[name]); });
  });
  return json.dump(2) + "\n";
}

absl::StatusOr<ResultRecord> ParseRecord(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("It is no JSON object");
  int version = 0;
  if (json.contains("format_version")) Read(json["format_version"], &version);
  if (version != kVersion) {
    return absl::DataLossError(absl::StrCat("Its format has the version ", version,
                                            ", and this program reads version ", kVersion));
  }
  ResultRecord record;
  ForEachKey(record, [&](const char* key, auto& value) {
    if (json.contains(key)) Read(json[key], &value);
  });
  bool times = IsTime(record.ready_raw_ns);
  ForEachRun(record, [&](const char* key, CommandRun& run) {
    if (!json.contains(key) || !json[key].is_object()) return;
    const Json& one = json[key];
    ForEachKeyOfRun(run, [&](const char* name, auto& value) {
      if (one.contains(name)) Read(one[name], &value);
    });
    times &= IsTime(run.begin_raw_ns) && IsTime(run.end_raw_ns) &&
             (run.end_raw_ns == 0 || run.begin_raw_ns <= run.end_raw_ns);
  });
  if (!times) return absl::DataLossError("Its times are none");
  return record;
}

}  // namespace syncline::vtune
