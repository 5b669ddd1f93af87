// SPDX-License-Identifier: Apache-2.0
#include "agent/session/session_protocol.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::agent {
namespace {

using Json = nlohmann::json;

std::string Dump(const Json& json) {
  // Texts of the tracer and paths need not be UTF-8: replace what is not, never throw.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Json> ParseObject(std::string_view packet) {
  Json json = Json::parse(packet, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return absl::InternalError("Malformed packet between agent and session child");
  return json;
}

std::string Text(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

template <class Number>
Number Value(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number() ? it->get<Number>() : Number{};
}

bool Flag(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_boolean() && it->get<bool>();
}

std::vector<std::string> Texts(const Json& json, const char* key) {
  std::vector<std::string> texts;
  const auto it = json.find(key);
  if (it == json.end() || !it->is_array()) return texts;
  for (const Json& one : *it) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

template <class Number>
std::vector<Number> Numbers(const Json& json, const char* key) {
  std::vector<Number> numbers;
  const auto it = json.find(key);
  if (it == json.end() || !it->is_array()) return numbers;
  for (const Json& one : *it) {
    if (one.is_number_integer()) numbers.push_back(one.get<Number>());
  }
  return numbers;
}

}  // namespace

std::string EncodeCall(const SessionCall& call) {
  return Dump(Json{{"method", call.method},
                   {"session", call.session},
                   {"wait_ms", call.wait_ms},
                   {"name", call.spec.name},
                   {"trace_directory", call.spec.trace_directory},
                   {"channel", call.spec.channel},
                   {"buffers_per_process", call.spec.buffers_per_process},
                   {"subbuffer_bytes", call.spec.subbuffer_bytes},
                   {"subbuffer_count", call.spec.subbuffer_count},
                   {"events", call.spec.events},
                   {"only_users", call.spec.only_users}});
}

absl::StatusOr<SessionCall> DecodeCall(std::string_view packet) {
  auto json = ParseObject(packet);
  if (!json.ok()) return json.status();
  SessionCall call;
  call.method = Text(*json, "method");
  call.session = Text(*json, "session");
  call.wait_ms = Value<int>(*json, "wait_ms");
  call.spec.name = Text(*json, "name");
  call.spec.trace_directory = Text(*json, "trace_directory");
  call.spec.channel = Text(*json, "channel");
  call.spec.buffers_per_process = Flag(*json, "buffers_per_process");
  call.spec.subbuffer_bytes = Value<uint64_t>(*json, "subbuffer_bytes");
  call.spec.subbuffer_count = Value<uint32_t>(*json, "subbuffer_count");
  call.spec.events = Texts(*json, "events");
  call.spec.only_users = Numbers<uint32_t>(*json, "only_users");
  return call;
}

std::string EncodeReply(const SessionReply& reply) {
  Json counters = Json::array();
  for (const ChannelCounters& one : reply.counters) {
    counters.push_back({{"name", one.name},
                        {"discarded_events", one.discarded_events},
                        {"lost_packets", one.lost_packets}});
  }
  return Dump(Json{{"code", static_cast<int>(reply.status.code())},
                   {"message", std::string(reply.status.message())},
                   {"alive", reply.alive},
                   {"counters", std::move(counters)},
                   {"sessions", reply.sessions},
                   {"programs", reply.programs}});
}

absl::StatusOr<SessionReply> DecodeReply(std::string_view packet) {
  auto json = ParseObject(packet);
  if (!json.ok()) return json.status();
  SessionReply reply;
  reply.status = absl::Status(static_cast<absl::StatusCode>(Value<int>(*json, "code")),
                              Text(*json, "message"));
  reply.alive = Flag(*json, "alive");
  reply.sessions = Texts(*json, "sessions");
  reply.programs = Numbers<int32_t>(*json, "programs");
  const auto it = json->find("counters");
  if (it != json->end() && it->is_array()) {
    for (const Json& one : *it) {
      if (!one.is_object()) continue;
      reply.counters.push_back({.name = Text(one, "name"),
                                .discarded_events = Value<uint64_t>(one, "discarded_events"),
                                .lost_packets = Value<uint64_t>(one, "lost_packets")});
    }
  }
  return reply;
}

SessionReply Perform(LttngControl& control, const SessionCall& call) {
  SessionReply reply;
  const auto keep = [&reply](auto result, auto* member) {
    if (result.ok()) {
      *member = *std::move(result);
    } else {
      reply.status = result.status();
    }
  };
  if (call.method == "alive") {
    keep(control.DaemonAlive(), &reply.alive);
  } else if (call.method == "create") {
    reply.status = control.Create(call.spec);
  } else if (call.method == "start") {
    reply.status = control.Start(call.session);
  } else if (call.method == "stop") {
    reply.status = control.Stop(call.session);
  } else if (call.method == "counters") {
    keep(control.Counters(call.session), &reply.counters);
  } else if (call.method == "destroy") {
    reply.status = control.Destroy(call.session, call.wait_ms);
  } else if (call.method == "sessions") {
    keep(control.Sessions(), &reply.sessions);
  } else if (call.method == "programs") {
    keep(control.Programs(), &reply.programs);
  } else {
    reply.status = absl::UnimplementedError(absl::StrCat("Unknown method \"", call.method, "\""));
  }
  return reply;
}

}  // namespace syncline::agent
