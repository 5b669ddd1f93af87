// SPDX-License-Identifier: Apache-2.0
// RUN/stacks.json, read: foreign bytes, because recordings travel.
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/recording/recording.h"
#include "coordinator/stacks/standstill.h"

namespace syncline::stacks {
namespace {

using analysis::why::NoStep;
using analysis::why::RankActivity;
using Json = nlohmann::json;

constexpr uint64_t kBytesMax = uint64_t{1} << 30;
// Sums of a few times stay in 64 bits.
constexpr int64_t kTimeMax = int64_t{1} << 60;

absl::Status Wrong(std::string_view key) {
  return absl::InvalidArgumentError(absl::StrCat("no stacks.json: \"", AbslView(key), "\""));
}

const Json* Find(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? &*found : nullptr;
}

template <class T>
absl::Status Read(const Json& object, const char* key, T* value) {
  const Json* const found = Find(object, key);
  if (found == nullptr) return Wrong(key);
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return Wrong(key);
    *value = found->get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) return Wrong(key);
    *value = found->get<bool>();
  } else {
    const bool fits = found->is_number_unsigned()
                          ? found->get<uint64_t>() <= static_cast<uint64_t>(kTimeMax)
                          : found->is_number_integer() && found->get<int64_t>() >= -kTimeMax;
    if (!fits || !std::in_range<T>(found->get<int64_t>())) return Wrong(key);
    *value = static_cast<T>(found->get<int64_t>());
  }
  return absl::OkStatus();
}

absl::StatusOr<RankActivity> RankOf(const Json& json) {
  RankActivity rank;
  SYNCLINE_RETURN_IF_ERROR(Read(json, "rank", &rank.rank));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "node", &rank.node));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "pid", &rank.pid));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "job", &rank.job));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "calls", &rank.calls));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "collectives", &rank.collectives));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "lost", &rank.lost));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "quiet_ns", &rank.quiet_ns));
  if (Find(json, "ended") != nullptr) SYNCLINE_RETURN_IF_ERROR(Read(json, "ended", &rank.ended));
  return rank;
}

absl::StatusOr<NoStep> WindowOf(const Json& json) {
  const Json* const window = Find(json, "window");
  if (window == nullptr) return Wrong("window");
  NoStep found;
  SYNCLINE_RETURN_IF_ERROR(Read(*window, "length_ns", &found.window_ns));
  SYNCLINE_RETURN_IF_ERROR(Read(*window, "steps", &found.steps));
  SYNCLINE_RETURN_IF_ERROR(Read(*window, "certain", &found.certain));
  const Json* const ranks = Find(*window, "ranks");
  if (ranks == nullptr || !ranks->is_array() || ranks->empty()) return Wrong("ranks");
  for (const Json& rank : *ranks) {
    SYNCLINE_ASSIGN_OR_RETURN(found.ranks.emplace_back(), RankOf(rank));
  }
  return found;
}

bool HasUsableTimes(const v1::StacksResponse& answer) {
  for (const int64_t ns :
       {answer.asked_monotonic_ns(), answer.first_look_end_monotonic_ns(),
        answer.second_look_begin_monotonic_ns(), answer.answered_monotonic_ns()}) {
    if (ns < 0 || ns > kTimeMax) return false;
  }
  for (const v1::EndedProcess& ended : answer.ended()) {
    for (const int64_t ns :
         {ended.alive_monotonic_ns(), ended.ended_monotonic_ns(), ended.groups_monotonic_ns()}) {
      if (ns < 0 || ns > kTimeMax) return false;
    }
  }
  return true;
}

absl::StatusOr<NodeLook> LookOf(const Json& json) {
  NodeLook look{.node = "", .answer = v1::StacksResponse()};
  bool reachable = false;
  SYNCLINE_RETURN_IF_ERROR(Read(json, "name", &look.node));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "asked_ns", &look.asked_ns));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "answered_ns", &look.answered_ns));
  SYNCLINE_RETURN_IF_ERROR(Read(json, "reachable", &reachable));
  if (!reachable) {
    std::string failure;
    SYNCLINE_RETURN_IF_ERROR(Read(json, "failure", &failure));
    look.answer = absl::UnavailableError(failure);
    return look;
  }
  const Json* const stacks = Find(json, "stacks");
  if (stacks == nullptr || !stacks->is_object()) return Wrong("stacks");
  google::protobuf::util::JsonParseOptions parse;
  parse.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      stacks->dump(-1, ' ', false, Json::error_handler_t::replace), &*look.answer, parse);
  if (!parsed.ok() || !HasUsableTimes(*look.answer)) return Wrong("stacks");
  return look;
}

}  // namespace

absl::StatusOr<KeptLook> ParseKeptLook(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  int version = 0;
  SYNCLINE_RETURN_IF_ERROR(Read(parsed, "format_version", &version));
  if (version != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "format_version ", version, " of stacks.json, and this program reads version 1"));
  }
  KeptLook look;
  SYNCLINE_ASSIGN_OR_RETURN(look.no_step, WindowOf(parsed));
  const Json* const nodes = Find(parsed, "nodes");
  if (nodes == nullptr || !nodes->is_array()) return Wrong("nodes");
  for (const Json& node : *nodes) {
    SYNCLINE_ASSIGN_OR_RETURN(NodeLook one, LookOf(node));
    look.looks.push_back(std::move(one));
  }
  return look;
}

absl::StatusOr<KeptLook> ReadKeptLook(const std::filesystem::path& run) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(recording::Layout(run).Stacks(), kBytesMax));
  return ParseKeptLook(text);
}

absl::Status WriteKeptLook(const std::filesystem::path& run, const KeptLook& look) {
  return WriteFileAtomically(recording::Layout(run).Stacks(), FormatKeptLook(look));
}

}  // namespace syncline::stacks
