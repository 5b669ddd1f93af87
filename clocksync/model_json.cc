// SPDX-License-Identifier: Apache-2.0
// clocks/models.json: the model as integers. What depends on anybody's wall clock is under
// "wall_clock" and nowhere else, so that two models of the same samples differ at most there.
#include <nlohmann/json.hpp>

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clocksync/model_data.h"
#include "common/status.h"

namespace syncline::clocksync {
namespace {

using Json = nlohmann::ordered_json;
using Data = ModelAssembler::Data;

constexpr int64_t kFormatVersion = 1;
constexpr size_t kNodesMax = 100'000;
constexpr int64_t kRateMax = 900'000'000;

Json MapToJson(const BoundedMap& map) {
  Json knots = Json::array();
  for (const BoundedMap::Knot& knot : map.knots()) {
    knots.push_back({knot.x, knot.lo, knot.est, knot.hi});
  }
  return {{"rate_ppb_outside", map.rate_ppb_outside()}, {"knots", std::move(knots)}};
}

absl::Status Bad(const std::string& where, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the clock model is malformed: ", where, " ", what));
}

// Typed access to members; the path goes into the message.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const Json& json() const { return json_; }

  absl::StatusOr<Reader> Member(const char* key) const {
    if (!json_.is_object()) return Bad(where_, "is not an object");
    const auto found = json_.find(key);
    if (found == json_.end()) return Bad(where_, absl::StrCat("has no \"", key, "\"").c_str());
    return Reader(*found, absl::StrCat(where_, ".", key));
  }
  absl::StatusOr<std::vector<Reader>> Items() const {
    if (!json_.is_array()) return Bad(where_, "is not an array");
    std::vector<Reader> items;
    for (size_t i = 0; i < json_.size(); ++i) {
      items.emplace_back(json_[i], absl::StrCat(where_, "[", i, "]"));
    }
    return items;
  }
  absl::StatusOr<int64_t> Integer(int64_t lo = kUnknownLo, int64_t hi = kUnknownHi) const {
    if (!json_.is_number_integer()) return Bad(where_, "is not an integer");
    if (json_.is_number_unsigned() &&
        json_.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Bad(where_, "does not fit 64 bits");
    }
    const auto value = json_.get<int64_t>();
    if (value < lo || value > hi) return Bad(where_, "is out of range");
    return value;
  }
  absl::StatusOr<int64_t> Integer(const char* key, int64_t lo = kUnknownLo,
                                  int64_t hi = kUnknownHi) const {
    SYNCLINE_ASSIGN_OR_RETURN(const Reader member, Member(key));
    return member.Integer(lo, hi);
  }
  absl::StatusOr<std::string> String() const {
    if (!json_.is_string()) return Bad(where_, "is not a string");
    return json_.get<std::string>();
  }
  absl::StatusOr<std::vector<int64_t>> Integers() const {
    if (!json_.is_array()) return Bad(where_, "is not an array");
    std::vector<int64_t> values;
    for (size_t i = 0; i < json_.size(); ++i) {
      SYNCLINE_ASSIGN_OR_RETURN(const int64_t value,
                                Reader(json_[i], absl::StrCat(where_, "[", i, "]")).Integer());
      values.push_back(value);
    }
    return values;
  }
  absl::StatusOr<BoundedMap> Map() const {
    SYNCLINE_ASSIGN_OR_RETURN(const int64_t rate, Integer("rate_ppb_outside", -kRateMax, kRateMax));
    SYNCLINE_ASSIGN_OR_RETURN(const Reader member, Member("knots"));
    if (!member.json_.is_array()) return Bad(member.where_, "is not an array");
    std::vector<BoundedMap::Knot> knots;
    for (size_t i = 0; i < member.json_.size(); ++i) {
      const Reader item(member.json_[i], absl::StrCat(member.where_, "[", i, "]"));
      SYNCLINE_ASSIGN_OR_RETURN(const auto v, item.Integers());
      if (v.size() != 4) return Bad(item.where_, "is not [x, lo, est, hi]");
      knots.push_back({v[0], v[1], v[2], v[3]});
      const std::span<const BoundedMap::Knot> all(knots);
      if (!BoundedMap::IsValid(all.last(std::min<size_t>(all.size(), 2)))) {
        return Bad(item.where_, "is not monotone (x and est increase, lo <= est <= hi)");
      }
    }
    return BoundedMap(std::move(knots), rate);
  }
  absl::StatusOr<BoundedMap> Map(const char* key) const {
    SYNCLINE_ASSIGN_OR_RETURN(const Reader member, Member(key));
    return member.Map();
  }

 private:
  const Json& json_;
  std::string where_;
};

absl::StatusOr<std::vector<std::string>> ReadNames(const Reader& reader) {
  SYNCLINE_ASSIGN_OR_RETURN(const auto items, reader.Items());
  if (items.size() > kNodesMax) return Bad(reader.where(), "has too many entries");
  std::vector<std::string> names;
  for (const Reader& item : items) {
    SYNCLINE_ASSIGN_OR_RETURN(names.emplace_back(), item.String());
  }
  return names;
}

absl::Status ReadClocks(const Reader& root, Data* data) {
  SYNCLINE_ASSIGN_OR_RETURN(const Reader clocks, root.Member("clocks"));
  SYNCLINE_ASSIGN_OR_RETURN(const auto items, clocks.Items());
  if (items.size() != data->names.size()) return Bad(clocks.where(), "has not one entry per node");
  data->clocks.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    NodeClocks& its = data->clocks[i];
    SYNCLINE_ASSIGN_OR_RETURN(its.host.monotonic, items[i].Map("monotonic"));
    SYNCLINE_ASSIGN_OR_RETURN(its.host.boottime, items[i].Map("boottime"));
    SYNCLINE_ASSIGN_OR_RETURN(its.timeline, items[i].Map("timeline"));
    SYNCLINE_ASSIGN_OR_RETURN(its.rate_slack_ppb, items[i].Integer("rate_slack_ppb", -1, kRateMax));
  }
  SYNCLINE_ASSIGN_OR_RETURN(const Reader wall, root.Member("wall_clock"));
  SYNCLINE_ASSIGN_OR_RETURN(data->epoch_unix_ns, wall.Integer("epoch_unix_ns"));
  SYNCLINE_ASSIGN_OR_RETURN(const Reader wall_nodes, wall.Member("realtime"));
  SYNCLINE_ASSIGN_OR_RETURN(const auto nodes, wall_nodes.Items());
  if (nodes.size() != data->names.size())
    return Bad(wall_nodes.where(), "has not one entry per node");
  for (size_t i = 0; i < nodes.size(); ++i) {
    SYNCLINE_ASSIGN_OR_RETURN(const auto stretches, nodes[i].Items());
    for (const Reader& stretch : stretches) {
      SYNCLINE_ASSIGN_OR_RETURN(BoundedMap map, stretch.Map());
      if (map.empty()) return Bad(stretch.where(), "has no knots");
      auto& realtime = data->clocks[i].host.realtime;
      if (!realtime.empty() && map.knots().front().x <= realtime.back().knots().back().x) {
        return Bad(stretch.where(), "begins before the one before it ends");
      }
      realtime.push_back(std::move(map));
    }
  }
  return absl::OkStatus();
}

Json EventsToJson(const std::vector<ClockEvent>& events, bool of_wall_clocks) {
  Json all = Json::array();
  for (const ClockEvent& event : events) {
    if ((event.kind == ClockEvent::Kind::kStep) != of_wall_clocks) continue;
    Json json = {{"kind", static_cast<int>(event.kind)},
                 {"cause", static_cast<int>(event.cause)},
                 {"node", event.node},
                 {"begin_ns", event.begin_ns},
                 {"end_ns", event.end_ns},
                 {"text", event.text}};
    if (event.begin && event.end) {
      json["timeline_begin_ns"] = event.begin->ns;
      json["timeline_end_ns"] = event.end->ns;
    }
    all.push_back(std::move(json));
  }
  return all;
}

// Absent in files from before events were stored.
absl::Status ReadEvents(const Reader& parent, std::vector<ClockEvent>* events) {
  if (!parent.json().is_object() || !parent.json().contains("events")) return absl::OkStatus();
  SYNCLINE_ASSIGN_OR_RETURN(const Reader member, parent.Member("events"));
  SYNCLINE_ASSIGN_OR_RETURN(const auto items, member.Items());
  for (const Reader& item : items) {
    ClockEvent event;
    SYNCLINE_ASSIGN_OR_RETURN(
        const int64_t kind,
        item.Integer("kind", 0, static_cast<int64_t>(ClockEvent::Kind::kNoSamples)));
    SYNCLINE_ASSIGN_OR_RETURN(
        const int64_t cause,
        item.Integer("cause", 0, static_cast<int64_t>(ClockEvent::Cause::kLoop)));
    event.kind = static_cast<ClockEvent::Kind>(kind);
    event.cause = static_cast<ClockEvent::Cause>(cause);
    SYNCLINE_ASSIGN_OR_RETURN(const Reader node, item.Member("node"));
    SYNCLINE_ASSIGN_OR_RETURN(event.node, node.String());
    SYNCLINE_ASSIGN_OR_RETURN(const Reader text, item.Member("text"));
    SYNCLINE_ASSIGN_OR_RETURN(event.text, text.String());
    SYNCLINE_ASSIGN_OR_RETURN(event.begin_ns, item.Integer("begin_ns"));
    SYNCLINE_ASSIGN_OR_RETURN(event.end_ns, item.Integer("end_ns"));
    if (item.json().contains("timeline_begin_ns")) {
      SYNCLINE_ASSIGN_OR_RETURN(const int64_t begin_ns, item.Integer("timeline_begin_ns"));
      SYNCLINE_ASSIGN_OR_RETURN(const int64_t end_ns, item.Integer("timeline_end_ns", begin_ns));
      event.begin = TimelineTime{begin_ns};
      event.end = TimelineTime{end_ns};
    }
    events->push_back(std::move(event));
  }
  return absl::OkStatus();
}

absl::Status ReadGraph(const Reader& root, Data* data) {
  const size_t vertices = data->names.size() + data->hubs.size();
  SYNCLINE_ASSIGN_OR_RETURN(const Reader edges_member, root.Member("edges"));
  SYNCLINE_ASSIGN_OR_RETURN(const auto items, edges_member.Items());
  std::vector<GraphEdge> edges;
  for (const Reader& item : items) {
    const auto last = static_cast<int64_t>(vertices) - 1;
    SYNCLINE_ASSIGN_OR_RETURN(const int64_t local, item.Integer("local", 0, last));
    SYNCLINE_ASSIGN_OR_RETURN(const int64_t remote, item.Integer("remote", 0, last));
    if (local == remote) return Bad(item.where(), "joins a node with itself");
    SYNCLINE_ASSIGN_OR_RETURN(BoundedMap map, item.Map("map"));
    GraphEdge edge{static_cast<uint32_t>(local), static_cast<uint32_t>(remote), std::move(map)};
    // Absent in files from before they were stored.
    for (auto [name, samples] : {std::pair("samples", &edge.samples_of_local),
                                 std::pair("samples_of_remote", &edge.samples_of_remote)}) {
      if (!item.json().contains(name)) continue;
      SYNCLINE_ASSIGN_OR_RETURN(const int64_t count, item.Integer(name, 0));
      *samples = static_cast<uint64_t>(count);
    }
    edges.push_back(std::move(edge));
  }
  data->graph = ClockGraph(static_cast<uint32_t>(vertices), std::move(edges));
  Grid& grid = data->grid;
  SYNCLINE_ASSIGN_OR_RETURN(const Reader member, root.Member("grid"));
  SYNCLINE_ASSIGN_OR_RETURN(grid.bend_ns, member.Integer("bend_ns", 0, int64_t{1} << 60));
  SYNCLINE_ASSIGN_OR_RETURN(grid.rate_ppb_max, member.Integer("rate_ppb_max", 0, kRateMax));
  SYNCLINE_ASSIGN_OR_RETURN(const Reader segments_member, member.Member("segments"));
  SYNCLINE_ASSIGN_OR_RETURN(const auto segments, segments_member.Integers());
  for (int64_t segment : segments) {
    if (segment < 0 || segment > 2) return Bad(segments_member.where(), "has an unknown kind");
    grid.segments.push_back(static_cast<Grid::Segment>(segment));
  }
  SYNCLINE_ASSIGN_OR_RETURN(const Reader x_member, member.Member("x"));
  SYNCLINE_ASSIGN_OR_RETURN(const auto lines, x_member.Items());
  if (lines.size() != vertices) return Bad(x_member.where(), "has not one entry per clock");
  for (const Reader& line : lines) {
    SYNCLINE_ASSIGN_OR_RETURN(std::vector<int64_t> x, line.Integers());
    if (!x.empty() && x.size() != grid.size()) return Bad(line.where(), "has another length");
    for (size_t k = 1; k < x.size(); ++k) {
      if (x[k] <= x[k - 1]) return Bad(line.where(), "does not increase");
    }
    grid.x.push_back(std::move(x));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ClockModel::ToJson() const {
  const Data& data = *data_;
  Json clocks = Json::array(), realtime = Json::array(), edges = Json::array();
  for (const NodeClocks& its : data.clocks) {
    clocks.push_back({{"monotonic", MapToJson(its.host.monotonic)},
                      {"boottime", MapToJson(its.host.boottime)},
                      {"timeline", MapToJson(its.timeline)},
                      {"rate_slack_ppb", its.rate_slack_ppb}});
    Json stretches = Json::array();
    for (const BoundedMap& map : its.host.realtime) stretches.push_back(MapToJson(map));
    realtime.push_back(std::move(stretches));
  }
  for (const GraphEdge& edge : data.graph.edges()) {
    edges.push_back({{"local", edge.local},
                     {"remote", edge.remote},
                     {"samples", edge.samples_of_local},
                     {"samples_of_remote", edge.samples_of_remote},
                     {"map", MapToJson(edge.map)}});
  }
  Json segments = Json::array();
  for (Grid::Segment segment : data.grid.segments) segments.push_back(static_cast<int>(segment));
  const Json json = {
      {"format_version", kFormatVersion},
      {"identity", data.identity},
      {"nodes", data.names},
      {"hubs", data.hubs},
      {"reference", data.reference},
      {"zero_reference_raw_ns", data.zero_reference_raw_ns},
      {"clocks", std::move(clocks)},
      {"edges", std::move(edges)},
      {"grid",
       {{"bend_ns", data.grid.bend_ns},
        {"rate_ppb_max", data.grid.rate_ppb_max},
        {"segments", std::move(segments)},
        {"x", data.grid.x}}},
      {"events", EventsToJson(data.events, /*of_wall_clocks=*/false)},
      {"wall_clock",
       {{"epoch_unix_ns", data.epoch_unix_ns},
        {"realtime", std::move(realtime)},
        {"events", EventsToJson(data.events, /*of_wall_clocks=*/true)}}},
  };
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<ClockModel> ClockModel::FromJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("the clock model is not JSON");
  const Reader root(json, "models.json");
  SYNCLINE_ASSIGN_OR_RETURN(const int64_t version, root.Integer("format_version"));
  if (version != kFormatVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the clock model has format_version ", version,
                                                   "; this program reads ", kFormatVersion,
                                                   ": merge with --refit makes a new one"));
  }
  auto data = std::make_unique<Data>();
  SYNCLINE_ASSIGN_OR_RETURN(const Reader identity, root.Member("identity"));
  if (!identity.json().is_boolean()) return Bad(identity.where(), "is not true or false");
  data->identity = identity.json().get<bool>();
  SYNCLINE_ASSIGN_OR_RETURN(const Reader names, root.Member("nodes"));
  SYNCLINE_ASSIGN_OR_RETURN(data->names, ReadNames(names));
  if (data->names.empty()) return Bad(names.where(), "is empty");
  SYNCLINE_ASSIGN_OR_RETURN(const Reader hubs, root.Member("hubs"));
  SYNCLINE_ASSIGN_OR_RETURN(data->hubs, ReadNames(hubs));
  SYNCLINE_ASSIGN_OR_RETURN(
      const int64_t reference,
      root.Integer("reference", 0, static_cast<int64_t>(data->names.size()) - 1));
  data->reference = static_cast<uint32_t>(reference);
  SYNCLINE_ASSIGN_OR_RETURN(data->zero_reference_raw_ns, root.Integer("zero_reference_raw_ns"));
  SYNCLINE_RETURN_IF_ERROR(ReadClocks(root, data.get()));
  if (!data->identity) SYNCLINE_RETURN_IF_ERROR(ReadGraph(root, data.get()));
  SYNCLINE_RETURN_IF_ERROR(ReadEvents(root, &data->events));
  SYNCLINE_ASSIGN_OR_RETURN(const Reader wall_clock, root.Member("wall_clock"));
  SYNCLINE_RETURN_IF_ERROR(ReadEvents(wall_clock, &data->events));
  data->Finish();
  return ClockModel(std::move(data));
}

}  // namespace syncline::clocksync
