// SPDX-License-Identifier: Apache-2.0
// syncline clocks: how good the clocks of a recording are, or of the fleet right now.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/duration_text.h"
#include "common/files.h"
#include "common/status.h"
#include "coordinator/cli/clocks_text.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/clocks/models.h"
#include "coordinator/clocks/peer_probing.h"
#include "coordinator/clocks/probe_report.h"
#include "coordinator/clocks/prober.h"
#include "export/report/clock_plot.h"

namespace syncline::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kLiveNs = 3'000'000'000;
constexpr size_t kEdgesNamedMax = 4;
constexpr fleet::AgentClient::Timeout kExplainTimeout{5'000};
constexpr size_t kPairNodesInText = 6;
constexpr size_t kPairNodesInJson = 32;
constexpr size_t kPlotsInText = 2;
constexpr size_t kTerminalColumns = 100;

struct ClocksOptions {
  std::string directory;
  bool live = false;
  bool json = false;
  std::string svg;  // file to write a picture to
  int64_t asymmetry_percent = clocksync::kAsymmetryPercentUsual;
};

struct Clocks {
  clocksync::BuildResult built;
  std::string title;
  clocks::ProbeReport probes;  // empty: the nodes did not probe each other
  // What is likely if paths are at most so asymmetric; nullopt: the samples contradict that, or
  // nothing is assumed.
  int64_t asymmetry_percent = clocksync::kAsymmetryPercentAny;
  std::optional<clocksync::ClockModel> likely = std::nullopt;

  void Assume(int64_t percent) {
    asymmetry_percent = percent;
    likely.reset();
    if (Assumes()) likely = built.model.AssumingAsymmetry(percent);
  }
  bool Assumes() const { return asymmetry_percent < clocksync::kAsymmetryPercentAny; }
  const clocksync::ClockModel* LikelyModel() const { return likely ? &*likely : nullptr; }
};

const char* SourceName(clocksync::StampSource source) {
  switch (source) {
    case clocksync::StampSource::kHardware:
      return "hardware";
    case clocksync::StampSource::kKernel:
      return "kernel";
    case clocksync::StampSource::kUserSpin:
      return "user, spinning";
    case clocksync::StampSource::kUserBlocking:
      return "user";
    case clocksync::StampSource::kGrpc:
      return "grpc";
  }
  return "";
}

const char* KindName(clocksync::ClockEvent::Kind kind) {
  switch (kind) {
    case clocksync::ClockEvent::Kind::kInfeasible:
      return "infeasible";
    case clocksync::ClockEvent::Kind::kStep:
      return "step";
    case clocksync::ClockEvent::Kind::kSlew:
      return "slew";
    case clocksync::ClockEvent::Kind::kSuspend:
      return "suspend";
    case clocksync::ClockEvent::Kind::kGap:
      return "gap";
    case clocksync::ClockEvent::Kind::kNoSamples:
      return "no samples";
  }
  return "";
}

Json BySource(const clocksync::EdgeQuality& edge) {
  Json json = Json::object();
  for (size_t i = 0; i < edge.samples_by_source.size(); ++i) {
    if (edge.samples_by_source[i] == 0) continue;
    json[SourceName(static_cast<clocksync::StampSource>(i))] = edge.samples_by_source[i];
  }
  return json;
}

Json Ns(int64_t ns) { return ns == kUnknownHi || ns == kUnknownLo ? Json() : Json(ns); }

Json EdgeToJson(const clocksync::EdgeQuality& edge) {
  const clocksync::EdgeAudit& audit = edge.audit;
  return {{"local", edge.local},
          {"remote", edge.remote},
          {"source", SourceName(edge.source)},
          {"samples_kept", edge.samples},
          {"samples_by_source", BySource(edge)},
          {"offset_ns", edge.offset_ns},
          {"drift_ppb", edge.drift_ppb},
          {"bound_median_ns", edge.bound_median_ns},
          {"bound_worst_ns", edge.bound_worst_ns},
          {"round_trip_min_ns", edge.round_trip_min_ns},
          {"wander_at_least_ppb_per_s", static_cast<double>(audit.wander_needed_ppt_per_s) / 1000},
          {"step_unseen_median_ns", Ns(audit.unseen_step_ns_median)},
          {"step_unseen_worst_ns", Ns(audit.unseen_step_ns_worst)},
          {"step_unseen_worst_at_ns", audit.unseen_step_worst_at_ns - edge.zero_local_ns}};
}

// begin_ns and end_ns by the RAW clock of `node`; the same on the timeline where it has a place.
Json EventToJson(const clocksync::ClockEvent& event) {
  Json json = {{"kind", KindName(event.kind)},
               {"node", event.node},
               {"begin_ns", event.begin_ns},
               {"end_ns", event.end_ns},
               {"text", event.text}};
  if (event.begin && event.end) {
    json["timeline_begin_ns"] = event.begin->ns;
    json["timeline_end_ns"] = event.end->ns;
  }
  if (event.cause != clocksync::ClockEvent::Cause::kNone) json["cause"] = CauseName(event.cause);
  if (event.step_ns != 0) {
    json["step_ns"] = event.step_ns;
    json["step_ns_min"] = Ns(event.step_ns_min);
    json["step_ns_max"] = Ns(event.step_ns_max);
  }
  if (!event.between.empty()) json["one_of"] = event.between;
  if (!event.evidence.empty()) json["shown_by"] = event.evidence;
  return json;
}

void PrintJson(std::ostream& out, const Clocks& clocks) {
  const clocksync::BuildOptions assumed;
  Json json;
  json["format_version"] = 1;
  json["assumptions"] = {{"rate_ppb_max", assumed.rate_ppb_max},
                         {"wander_ppb_per_s", assumed.wander_ppb_per_s}};
  if (clocks.Assumes()) {
    json["likely_assumes"] = {
        {"path_asymmetry_percent_max", clocks.asymmetry_percent},
        {"name", clocksync::AsymmetryText(clocks.asymmetry_percent)},
        {"meaning", clocksync::AsymmetryMeaning(clocks.asymmetry_percent)},
        {"refuted_by", clocks.likely ? Json() : Json(clocksync::kAsymmetryContradicted)}};
  } else {
    json["likely_assumes"] = nullptr;
  }
  json["edges"] = Json::array();
  for (const auto& edge : clocks.built.edges) json["edges"].push_back(EdgeToJson(edge));
  json["pairs"] = Json::array();
  for (const PairBound& pair : PairsOf(clocks.built, clocks.LikelyModel(), kPairNodesInJson)) {
    json["pairs"].push_back(
        {{"from", pair.from},
         {"to", pair.to},
         {"offset_ns", pair.offset_ns},
         {"bound_median_ns", Ns(pair.bound_median_ns)},
         {"bound_worst_ns", Ns(pair.bound_worst_ns)},
         {"likely_bound_median_ns", pair.likely_median_ns ? Ns(*pair.likely_median_ns) : Json()}});
  }
  json["events"] = Json::array();
  for (const auto& event : clocks.built.events) json["events"].push_back(EventToJson(event));
  json["probes"] = Json::array();
  for (const clocks::ProbeReport::Edge& edge : clocks.probes.edges) {
    json["probes"].push_back({{"local", edge.local.node},
                              {"remote", edge.remote.node},
                              {"samples_taken", edge.samples},
                              {"text", clocks::Describe(edge)}});
  }
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

// Which stamps the nodes had of each other, and why not better: edges alike share a line.
void PrintProbes(std::ostream& out, const clocks::ProbeReport& probes) {
  if (probes.edges.empty()) return;
  std::map<std::string, std::vector<std::string>> edges_by_text;
  for (const clocks::ProbeReport::Edge& edge : probes.edges) {
    edges_by_text[clocks::Describe(edge)].push_back(
        absl::StrCat(edge.local.node, "--", edge.remote.node));
  }
  out << "\nNodes probing each other over UDP:\n";
  for (const auto& [text, edges] : edges_by_text) {
    std::string names;
    for (size_t i = 0; i < std::min(edges.size(), kEdgesNamedMax); ++i) {
      absl::StrAppend(&names, i == 0 ? "" : ", ", edges[i]);
    }
    if (edges.size() > kEdgesNamedMax) {
      absl::StrAppend(&names, " and ", edges.size() - kEdgesNamedMax, " more");
    }
    out << "  " << Printable(names) << ": " << Printable(text) << '\n';
  }
}

void PrintLikely(std::ostream& out, const Clocks& clocks) {
  if (!clocks.Assumes()) return;
  const std::string name = clocksync::AsymmetryText(clocks.asymmetry_percent);
  if (!clocks.likely) {
    out << "Nothing is called likely: " << name
        << " is false here: " << clocksync::kAsymmetryContradicted << ".\n";
    return;
  }
  out << "Bounds are proven. LIKELY, where it is smaller: the median bound if " << name << ":\n"
      << clocksync::AsymmetryMeaning(clocks.asymmetry_percent)
      << ". No sample can prove that (--assume-asymmetry).\n";
}

void PrintText(const Context& context, const Clocks& clocks) {
  std::ostream& out = *context.out;
  Table table({"CLOCK OF", "SEEN FROM", "BOUND MEDIAN", "BOUND WORST", "OFFSET", "DRIFT",
               "ROUND TRIP", "SAMPLES", "STAMPS"});
  std::vector<int64_t> offsets_ns;
  for (const clocksync::EdgeQuality& edge : clocks.built.edges) {
    offsets_ns.push_back(edge.offset_ns);
  }
  const std::vector<std::string> offsets = InOneUnit(offsets_ns);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const clocksync::EdgeQuality& edge = clocks.built.edges[i];
    table.AddRow({edge.remote, edge.local, absl::StrCat("± ", DurationText(edge.bound_median_ns)),
                  absl::StrCat("± ", DurationText(edge.bound_worst_ns)), offsets[i],
                  absl::StrFormat("%+.3f ppm", static_cast<double>(edge.drift_ppb) / 1000),
                  DurationText(edge.round_trip_min_ns), FormatCount(edge.samples),
                  SourceName(edge.source)});
  }
  table.Print(out);
  PrintProbes(out, clocks.probes);
  PrintPairs(out, PairsOf(clocks.built, clocks.LikelyModel(), kPairNodesInText));
  PrintLikely(out, clocks);
  const report::ClockPlotInput plot{
      .edges = clocks.built.edges, .events = clocks.built.events, .edges_max = kPlotsInText};
  out << '\n' << report::ClockPlotText(plot, kTerminalColumns);
  PrintAssumptions(out, clocks.built, {});
  out << "\noffset = remote - local, of CLOCK_MONOTONIC_RAW, in the middle of the samples. The "
         "truth is\n"
         "within the bound as long as clocks run within 200 ppm of each other; a constant "
         "asymmetry of\n"
         "the path is inside the bound and cannot be told from an offset.\n";
  for (const clocksync::ClockEvent& event : clocks.built.events) {
    const std::string when = WhenText(event);
    const bool broken = event.kind == clocksync::ClockEvent::Kind::kInfeasible ||
                        event.kind == clocksync::ClockEvent::Kind::kNoSamples;
    PrintNote(
        context, broken ? "warning" : "note", event.node,
        absl::StrCat(clocksync::EventName(event), when.empty() ? "" : ", ", when, ": ", event.text),
        "");
  }
}

// `incomplete`: samples are missing that there were; said.
absl::StatusOr<Clocks> OfRecording(const Context& context, const std::string& directory,
                                   bool* incomplete) {
  SYNCLINE_ASSIGN_OR_RETURN(const recording::Recording recording,
                            recording::ReadRecording(directory));
  const recording::Layout layout(directory);
  SYNCLINE_ASSIGN_OR_RETURN(clocksync::BuildResult built,
                            clocks::BuildFromRecording(layout, recording, {.audit = true}));
  const clocks::StoredModel stored = clocks::CompareWithStored(layout, &built);
  if (!stored.complaint.empty()) PrintNote(context, "warning", "", stored.complaint, "");
  for (const clocks::LostSamples& lost : stored.samples_lost) {
    *incomplete = true;
    PrintNote(context, "warning", "",
              absl::StrCat(lost.text,
                           "; the output below uses these samples, a merge uses the stored model"),
              "");
  }
  Clocks clocks{.built = std::move(built),
                .title = absl::StrCat("Clocks of recording ", recording.recording_id)};
  // A recording without it is complete: no two nodes, or a coordinator that was killed.
  const auto report = ReadFile(layout.Probes());
  if (!report.ok()) return clocks;
  absl::StatusOr<clocks::ProbeReport> probes = clocks::ReportFromJson(*report);
  if (probes.ok()) {
    clocks.probes = *std::move(probes);
  } else {
    PrintNote(context, "warning", "",
              absl::StrCat("\"", layout.Probes().string(),
                           "\" is damaged: the stamps of the nodes' probes are not shown"),
              "");
  }
  return clocks;
}

// Why a node answered no probe: a call of the ordinary kind explains a connection that fails.
std::string WhyNoProbe(fleet::AgentClient& client, const absl::Status& probing) {
  const absl::StatusOr<v1::DescribeResponse> asked = client.Describe({}, kExplainTimeout);
  if (!asked.ok()) return std::string(asked.status().message());
  return probing.ok() ? "no probe was answered" : std::string(probing.message());
}

std::vector<clocks::PeerTarget> PeersOf(const std::vector<fleet::Member>& members) {
  std::vector<clocks::PeerTarget> peers;
  for (const fleet::Member& member : members) {
    peers.push_back(
        {member.node.name, member.node.local() ? "" : member.node.Address(), member.client.get()});
  }
  return peers;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// As while recording: over gRPC from here, over UDP between the nodes. `incomplete`: a node is
// missing; said.
absl::StatusOr<Clocks> Live(const Context& context, bool* incomplete) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::vector<fleet::Member> members, ConnectTargets(context));
  std::vector<clocks::ProbeTarget> targets;
  for (const fleet::Member& member : members) {
    targets.push_back({member.node.name, member.client.get(), ""});
  }
  clocks::Prober prober(std::move(targets), context.clock);
  clocks::PeerProbing peers(PeersOf(members), std::nullopt);
  context.clock->Wait(kLiveNs, context.interrupts->First());
  peers.Stop();
  prober.Stop();
  clocksync::BuildInput input;
  for (size_t i = 0; i < members.size(); ++i) {
    clocksync::Edge edge = prober.EdgeOf(i);
    if (edge.samples.empty()) {
      PrintNote(context, "error", members[i].node.name,
                WhyNoProbe(*members[i].client, prober.StatusOf(i)), "");
      *incomplete = true;
      continue;
    }
    input.nodes.push_back(edge.remote);
    input.edges.push_back(std::move(edge));
  }
  if (input.edges.empty()) return absl::UnavailableError("No node answers clock probes");
  const int64_t zero_ns = input.edges.front().samples.front().t2_remote_ns;
  // What the nodes say of one another, of those whose clocks could be read at all.
  for (clocksync::Edge& edge : peers.Edges()) {
    if (Contains(input.nodes, edge.local) && Contains(input.nodes, edge.remote)) {
      input.edges.push_back(std::move(edge));
    }
  }
  clocksync::BuildOptions options;
  options.reference = input.nodes.front();
  options.zero_reference_raw_ns = zero_ns;
  options.audit = true;
  SYNCLINE_ASSIGN_OR_RETURN(clocksync::BuildResult built, clocksync::BuildModel(input, options));
  return Clocks{.built = std::move(built), .title = "Clocks right now", .probes = peers.Report()};
}

absl::Status WriteSvg(const Clocks& clocks, const std::string& path) {
  const report::ClockPlotInput plot{
      .title = clocks.title, .edges = clocks.built.edges, .events = clocks.built.events};
  return WriteOutput(path, report::ClockPlotSvg(plot));
}

int ShowClocks(const Context& context, const ClocksOptions& options) {
  if (options.live == !options.directory.empty()) {
    return Fail(context, absl::InvalidArgumentError("Give either RUN or --live"));
  }
  bool incomplete = false;
  absl::StatusOr<Clocks> clocks = options.live
                                      ? Live(context, &incomplete)
                                      : OfRecording(context, options.directory, &incomplete);
  if (!clocks.ok()) return Fail(context, clocks.status());
  clocks->Assume(options.asymmetry_percent);
  if (!options.svg.empty()) {
    const absl::Status written = WriteSvg(*clocks, options.svg);
    if (!written.ok()) return Fail(context, written);
  }
  if (options.json) {
    PrintJson(*context.out, *clocks);
  } else {
    PrintText(context, *clocks);
  }
  return incomplete ? kIncomplete : kDone;
}

}  // namespace

void AddAsymmetry(CLI::App* command, int64_t* percent) {
  command
      ->add_option("--assume-asymmetry", *percent,
                   "\"Likely\" assumes that the delays of a path's two directions differ by\n"
                   "at most this share of their sum: no message took less than\n"
                   "(100 - PERCENT)/2 % of the shortest round trip; 100: nothing is likely")
      ->type_name("PERCENT")
      ->check(CLI::Range(int64_t{0}, clocksync::kAsymmetryPercentAny))
      ->capture_default_str();
}

void RegisterClocks(CLI::App* app, Context* context) {
  CLI::App* const clocks =
      app->add_subcommand("clocks", "Show how well the nodes' clocks are known");
  const auto options = std::make_shared<ClocksOptions>();
  clocks->add_option("RUN", options->directory, "A recording's directory");
  clocks->add_flag("--live", options->live, "Probe the fleet for three seconds instead");
  clocks->add_flag("--json", options->json,
                   "As JSON, in ns and ppb; of a long recording only the samples that\n"
                   "add information are kept");
  clocks
      ->add_option("--svg", options->svg,
                   "Also draw samples, proven corridor and estimate of each edge into FILE")
      ->type_name("FILE");
  AddAsymmetry(clocks, &options->asymmetry_percent);
  clocks->footer(
      "Examples:\n"
      "  syncline clocks run-20261121-093012-7f3a --svg clocks.svg\n"
      "  syncline clocks --live --hosts hosts.txt --tls-dir tls");
  clocks->callback([=] { context->action = [=] { return ShowClocks(*context, *options); }; });
}

}  // namespace syncline::cli
