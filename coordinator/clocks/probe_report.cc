// SPDX-License-Identifier: Apache-2.0
#include "coordinator/clocks/probe_report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::clocks {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
// Each key is named once, for writing and for reading.
constexpr std::pair<const char*, std::string ProbeReport::End::*> kEndTexts[] = {
    {"node", &ProbeReport::End::node},
    {"stamps", &ProbeReport::End::stamps},
    {"why_not_better", &ProbeReport::End::why_not_better},
    {"silence", &ProbeReport::End::silence},
    {"failure", &ProbeReport::End::failure},
};

// "kernel stamps (why not better)"; there is nothing better than hardware.
std::string StampsOf(const ProbeReport::End& end) {
  return end.why_not_better.empty()
             ? absl::StrCat(end.stamps, " stamps")
             : absl::StrCat(end.stamps, " stamps (", end.why_not_better, ")");
}

Json EndToJson(const ProbeReport::End& end) {
  Json json = Json::object();
  for (const auto& [key, text] : kEndTexts) {
    if (!(end.*text).empty()) json[key] = end.*text;
  }
  return json;
}

std::string TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

ProbeReport::End EndFromJson(const Json& edge, const char* which) {
  ProbeReport::End end;
  const auto found = edge.find(which);
  if (found == edge.end() || !found->is_object()) return end;
  for (const auto& [key, text] : kEndTexts) end.*text = TextOf(*found, key);
  return end;
}

Json NodeToJson(const ProbeReport::Node& node) {
  Json json = {{"node", node.node}, {"cpu_ns", node.cpu_ns}};
  for (const auto& [name, count] : node.counts) json[name] = count;
  return json;
}

// Whatever ends in "_count": also what a later version counts.
ProbeReport::Node NodeFromJson(const Json& json) {
  ProbeReport::Node node;
  node.node = TextOf(json, "node");
  for (const auto& [key, value] : json.items()) {
    if (key == "cpu_ns" && value.is_number_integer()) node.cpu_ns = value.get<int64_t>();
    if (key.ends_with("_count") && value.is_number_unsigned()) {
      node.counts.emplace_back(key, value.get<uint64_t>());
    }
  }
  return node;
}

}  // namespace

std::string ToJson(const ProbeReport& report) {
  Json json = {
      {"format_version", kFormatVersion}, {"edges", Json::array()}, {"nodes", Json::array()}};
  for (const ProbeReport::Edge& edge : report.edges) {
    Json one = {{"local", EndToJson(edge.local)},
                {"remote", EndToJson(edge.remote)},
                {"samples_count", edge.samples}};
    if (!edge.failure.empty()) one["failure"] = edge.failure;
    json["edges"].push_back(std::move(one));
  }
  for (const ProbeReport::Node& node : report.nodes) json["nodes"].push_back(NodeToJson(node));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<ProbeReport> ReportFromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("edges") || !json["edges"].is_array()) {
    return absl::InvalidArgumentError("not a report of clock probes: no \"edges\" in it");
  }
  if (json.value("format_version", Json()) != Json(kFormatVersion)) {
    return absl::InvalidArgumentError(
        absl::StrCat("this report of clock probes has another format_version than ", kFormatVersion,
                     ", which this program reads"));
  }
  ProbeReport report;
  for (const Json& one : json["edges"]) {
    if (!one.is_object()) return absl::InvalidArgumentError("an edge of probes is not an object");
    ProbeReport::Edge edge{.local = EndFromJson(one, "local"),
                           .remote = EndFromJson(one, "remote"),
                           .failure = TextOf(one, "failure")};
    const auto samples = one.find("samples_count");
    if (samples != one.end() && samples->is_number_unsigned()) {
      edge.samples = samples->get<uint64_t>();
    }
    report.edges.push_back(std::move(edge));
  }
  const auto nodes = json.find("nodes");
  if (nodes == json.end() || !nodes->is_array()) return report;
  for (const Json& one : *nodes) {
    if (one.is_object()) report.nodes.push_back(NodeFromJson(one));
  }
  return report;
}

std::string Describe(const ProbeReport::Edge& edge) {
  std::string line;
  const auto add = [&](const ProbeReport::End& end, const std::string& text) {
    if (text.empty()) return;
    absl::StrAppend(&line, line.empty() ? "" : "; ", end.node, ": ", text);
  };
  if (!edge.failure.empty()) line = edge.failure;
  for (const ProbeReport::End* end : {&edge.local, &edge.remote}) {
    add(*end, end->failure);
    add(*end, end->silence);
  }
  if (edge.samples == 0) {
    return absl::StrCat("no samples over UDP, gRPC probes alone: ",
                        line.empty() ? "no answer yet when the recording ended" : line);
  }
  if (edge.local.stamps == edge.remote.stamps &&
      edge.local.why_not_better == edge.remote.why_not_better) {
    return absl::StrCat(StampsOf(edge.local), line.empty() ? "" : "; ", line);
  }
  for (const ProbeReport::End* end : {&edge.local, &edge.remote}) {
    if (end->stamps.empty()) continue;
    add(*end, StampsOf(*end));
  }
  return line;
}

}  // namespace syncline::clocks
