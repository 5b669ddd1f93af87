// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/stacks_json.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

namespace syncline::stacks {
namespace {

using Json = nlohmann::ordered_json;

Json OfMessage(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  print.always_print_primitive_fields = true;
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(message, &text, print);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

Json OfAbsent(const AbsentRank& absent) {
  Json one;
  one["rank"] = absent.rank;
  one["state"] = StateName(absent.state);
  one["node"] = *absent.node;
  one["pid"] = absent.process->pid() != 0 ? absent.process->pid() : absent.process->own_pid();
  one["sentence"] = absent.sentence;
  if (absent.ended == nullptr) return one;
  const v1::EndedProcess& ended = *absent.ended;
  const bool by_signal = ended.signal_number() != 0;
  one["ended_ago_least_ns"] = absent.ended_ago.least_ns;
  one["ended_ago_most_ns"] = absent.ended_ago.most_ns;
  one["signal"] = ended.status_known() && by_signal ? Json(ended.signal_number()) : Json();
  one["exit_code"] = ended.status_known() && !by_signal ? Json(ended.exit_code()) : Json();
  one["last_collective_number"] =
      absent.last_number.has_value() ? Json(*absent.last_number) : Json();
  return one;
}

Json OfVerdict(const GroupVerdict& verdict) {
  Json group;
  group["name"] = verdict.name;
  group["description"] = verdict.description;
  group["job"] = verdict.job;
  group["size"] = verdict.size;
  group["verdict"] = KindName(verdict.kind);
  group["sentence"] = verdict.sentence;
  group["behind"] = verdict.behind;
  group["unknown"] = verdict.unknown;
  Json& members = group["members"] = Json::array();
  for (const Member& member : verdict.members) {
    Json one;
    one["rank"] = member.rank;
    one["node"] = *member.node;
    one["pid"] = member.process->process().pid();
    one["last_collective_number"] = member.number < 0 ? Json() : Json(member.number);
    one["last_collective"] = member.state != nullptr ? member.state->collective() : "";
    one["pending"] = member.state != nullptr && member.state->collective_pending();
    members.push_back(std::move(one));
  }
  Json& absent = group["absent"] = Json::array();
  for (const AbsentRank& one : verdict.absent.known) absent.push_back(OfAbsent(one));
  group["nowhere"] = verdict.absent.nowhere;
  return group;
}

}  // namespace

std::string StacksJson(const std::vector<NodeLook>& looks,
                       const std::vector<GroupVerdict>& verdicts) {
  Json json;
  json["format_version"] = 1;
  Json& groups = json["groups"] = Json::array();
  for (const GroupVerdict& verdict : verdicts) groups.push_back(OfVerdict(verdict));
  Json& nodes = json["nodes"] = Json::array();
  for (const NodeLook& look : looks) {
    Json node;
    node["name"] = look.node;
    node["asked_ns"] = look.asked_ns;
    node["answered_ns"] = look.answered_ns;
    node["reachable"] = look.answer.ok();
    if (look.answer.ok()) {
      node["stacks"] = OfMessage(*look.answer);
    } else {
      node["failure"] = std::string(look.answer.status().message());
    }
    nodes.push_back(std::move(node));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::stacks
