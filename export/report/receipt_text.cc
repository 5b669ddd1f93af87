// SPDX-License-Identifier: Apache-2.0
#include "export/report/receipt_text.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "common/process_part.h"
#include "export/report/json_values.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/table.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::NodeReceipt;
using analysis::ProcessReceipt;

// As many digits as say something: "12", "3.4", "0.42", "0.004".
std::string PercentNumber(int64_t ppm) {
  const double percent = static_cast<double>(ppm) / 1e4;
  const int digits = percent >= 10 ? 0 : percent >= 1 ? 1 : percent >= 0.1 ? 2 : 3;
  return absl::StrFormat("%.*f", digits, percent);
}

std::string PpmText(int64_t ppm) { return PercentNumber(ppm) + " %"; }

bool IsWhole(const NodeReceipt& node) {
  return node.discarded_events == 0u && node.lost_packets == 0u;
}

// A rank's loader workers, or children, as one; the cost is not measured where that of one of them
// is not.
ProcessReceipt Together(const std::string& node,
                        const std::vector<const ProcessReceipt*>& workers) {
  ProcessReceipt sum = *workers.front();
  for (const ProcessReceipt* worker : std::span(workers).subspan(1)) {
    sum.events += worker->events;
    sum.covered_ns += worker->covered_ns;
    if (!sum.cost.has_value() || !worker->cost.has_value()) {
      sum.cost.reset();
      continue;
    }
    const bool bounded = sum.cost->bounded() && worker->cost->bounded();
    sum.cost->est_ns += worker->cost->est_ns;
    sum.cost->lo_ns += bounded ? worker->cost->lo_ns : 0;
    sum.cost->hi_ns = bounded ? sum.cost->hi_ns + worker->cost->hi_ns : kUnknownHi;
  }
  sum.name = FoldedName(node, workers);
  return sum;
}

std::vector<ProcessReceipt> Measured(const NodeReceipt& node) {
  std::vector<ProcessReceipt> processes;
  std::copy_if(node.processes.begin(), node.processes.end(), std::back_inserter(processes),
               [](const ProcessReceipt& process) { return process.events > 0; });
  return processes;
}

// Those that handed over events; a rank's loader workers are one, and its children of one name.
std::vector<ProcessReceipt> ProcessesOf(std::span<const NodeReceipt> nodes) {
  std::vector<ProcessReceipt> processes;
  for (const NodeReceipt& node : nodes) {
    const std::vector<ProcessReceipt> some = Measured(node);
    for (const auto& row : Folded(some)) processes.push_back(Together(node.name, row));
  }
  return processes;
}

int64_t PpmOf(const ProcessReceipt& process) {
  const std::optional<analysis::ShareEstimate> share = process.share();
  return share.has_value() ? share->est_ppm : -1;
}

std::string PerStep(const ProcessReceipt& process) {
  if (!process.step_ns.has_value() || !process.cost.has_value() || process.covered_ns <= 0) {
    return "-";
  }
  const double part = static_cast<double>(process.cost->est_ns) /  //
                      static_cast<double>(process.covered_ns);
  const double ns = part * static_cast<double>(*process.step_ns);
  return absl::StrCat(DurationText(std::llround(ns)), " of ", DurationText(*process.step_ns));
}

std::string Volume(const NodeReceipt& node, int64_t window_ns) {
  std::string text = absl::StrCat(node.name, ": ", Count(*node.trace_bytes), " bytes of trace");
  if (window_ns > 0) {
    const double per_second =
        1e9 * static_cast<double>(*node.trace_bytes) / static_cast<double>(window_ns);
    absl::StrAppend(&text, ", ", Count(static_cast<uint64_t>(std::llround(per_second))),
                    " per second");
  }
  if (!node.lost_packets.has_value()) {
    absl::StrAppend(&text, "; what LTTng discarded is unknown");
  } else if (!node.discarded_events.has_value()) {
    absl::StrAppend(&text, "; events were discarded, their number is unknown");
  } else if (IsWhole(node)) {
    absl::StrAppend(&text, "; LTTng discarded no event");
  } else {
    absl::StrAppend(&text, "; ", Plural(*node.discarded_events, "event"), " discarded, ",
                    Plural(*node.lost_packets, "packet"), " lost");
  }
  return text;
}

// "TensorFlow's profiler and PyTorch's (Kineto)"; empty: none ran.
std::string ProfilersOf(std::span<const NodeReceipt> nodes) {
  std::vector<std::string> profilers;
  const auto any = [&](bool NodeReceipt::*ran) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const NodeReceipt& node) { return node.*ran; });
  };
  if (any(&NodeReceipt::tensorflow_profiler)) profilers.emplace_back("TensorFlow's profiler");
  if (any(&NodeReceipt::kineto)) profilers.emplace_back("PyTorch's profiler (Kineto)");
  if (any(&NodeReceipt::jax)) profilers.emplace_back("JAX's profiler");
  return absl::StrJoin(profilers, " and ");
}

// What went wrong with clock probes, by the names of clocks/probes.json.
constexpr std::pair<std::string_view, const char*> kProbeTroubles[] = {
    {"send_failures_count", "packets that could not be sent"},
    {"dropped_wrong_size_count", "packets of a wrong size"},
    {"dropped_malformed_count", "packets that are no probes"},
    {"dropped_unknown_plan_count", "packets of probing that the node knows nothing of"},
    {"dropped_forged_count", "packets with a wrong signature"},
    {"dropped_replayed_count", "packets seen before or not asked for"},
    {"transmit_stamps_missing_count", "kernel stamps of sent packets that did not come"},
    {"transmit_stamps_late_count", "kernel stamps of sent packets that came too late"},
    {"receive_stamps_missing_count", "received packets without a kernel stamp"},
    {"wall_clock_steps_count", "steps of the wall clock"},
    {"wall_clock_contradictions_count", "kernel stamps that fit no reading of the wall clock"},
    {"stamps_unbracketed_count", "kernel stamps without a reading of the wall clock close by"},
    {"hardware_stamps_missing_count", "sent packets without a stamp of the network device"},
    {"hardware_contradictions_count", "device stamps that fit no reading of the device's clock"},
    {"hardware_unbracketed_count", "device stamps without a reading of its clock close by"},
    {"samples_impossible_count", "samples with stamps in an order that cannot be"},
};

// Empty: nothing did.
std::string ProbeTroubles(const NodeReceipt& node) {
  std::vector<std::string> troubles;
  for (const auto& [name, count] : node.probes.value_or(analysis::ProbeCounts())) {
    for (const auto& [known, words] : kProbeTroubles) {
      if (name == known) troubles.push_back(absl::StrCat(words, ": ", Count(count)));
    }
  }
  if (troubles.empty()) return "";
  return absl::StrCat(node.name,
                      ": clock probes since the agent began: ", absl::StrJoin(troubles, "; "));
}

Json OfReceipt(const analysis::ProcessReceipt& process) {
  const std::optional<analysis::ShareEstimate> share = process.share();
  Json json = {{"process", process.name},
               {"events", process.events},
               {"events_per_second", OrNull(process.events_per_second())},
               {"covered_ns", process.covered_ns},
               {"cost", Interval(process.cost)},
               {"share_of_time", Json()},
               {"step_ns", OrNull(process.step_ns)}};
  if (!share.has_value()) return json;
  json["share_of_time"] = {{"est_ppm", share->est_ppm},
                           {"lo_ppm", share->bounded() ? Json(share->lo_ppm) : Json()},
                           {"hi_ppm", share->bounded() ? Json(share->hi_ppm) : Json()}};
  return json;
}

Json OfReceipt(const analysis::NodeReceipt& node) {
  Json processes = Json::array();
  for (const auto& process : node.processes) processes.push_back(OfReceipt(process));
  Json profilers = Json::array();
  if (node.tensorflow_profiler) profilers.push_back("tensorflow");
  if (node.kineto) profilers.push_back("kineto");
  if (node.jax) profilers.push_back("jax");
  Json json = {{"node", node.name},
               {"trace_bytes", OrNull(node.trace_bytes)},
               {"discarded_events", OrNull(node.discarded_events)},
               {"lost_packets", OrNull(node.lost_packets)},
               {"profilers_not_counted", std::move(profilers)},
               {"processes", std::move(processes)}};
  if (!node.probes.has_value()) {
    json["clock_probes"] = nullptr;
    return json;
  }
  json["clock_probes"] = Json::object();
  for (const auto& [name, count] : *node.probes) json["clock_probes"][name] = count;
  return json;
}

}  // namespace

std::string ShareText(const std::optional<analysis::ShareEstimate>& share) {
  if (!share.has_value()) return "-";
  const std::string est = PpmText(share->est_ppm);
  if (!share->bounded()) return est + " (interval unknown)";
  return absl::StrCat(est, " [", PercentNumber(share->lo_ppm), ", ", PercentNumber(share->hi_ppm),
                      "]");
}

std::string ReceiptText(std::span<const NodeReceipt> nodes, int64_t window_ns, size_t width,
                        size_t indent) {
  std::vector<ProcessReceipt> processes = ProcessesOf(nodes);
  if (processes.empty()) return "";
  Table table({{"process", Table::Align::kLeft, true},
               {"events/s", Table::Align::kRight},
               {"time inside", Table::Align::kRight},
               {"per event", Table::Align::kRight},
               {"share of time", Table::Align::kRight},
               {"per step", Table::Align::kRight}});
  bool any_cost = false;
  for (const ProcessReceipt* process : Ranked(processes, PpmOf)) {
    any_cost = any_cost || process->cost.has_value();
    const auto events = static_cast<int64_t>(process->events);
    const std::optional<uint64_t> per_second = process->events_per_second();
    table.Add({process->name, per_second.has_value() ? Count(*per_second) : "unknown",
               process->cost.has_value() ? DurationText(process->cost->est_ns) : "-",
               process->cost.has_value() ? DurationText(process->cost->est_ns / events) : "-",
               ShareText(process->share()), PerStep(*process)});
  }
  std::string out = table.Format(width, indent);
  const std::string blanks(indent, ' ');
  for (const NodeReceipt& node : nodes) {
    if (node.trace_bytes.has_value()) absl::StrAppend(&out, blanks, Volume(node, window_ns), "\n");
  }
  for (const NodeReceipt& node : nodes) {
    const std::string troubles = ProbeTroubles(node);
    if (!troubles.empty()) absl::StrAppend(&out, blanks, troubles, "\n");
  }
  if (any_cost) {
    absl::StrAppend(&out, blanks,
                    "time inside: in Syncline's code, all threads added, from timed calls; "
                    "[low, high]: 95 % interval\n");
  }
  if (const std::string profilers = ProfilersOf(nodes); !profilers.empty()) {
    absl::StrAppend(&out, blanks, "not in it: what ", profilers,
                    " took, which ran too (docs/receipt.md)\n");
  }
  size_t alone = 0;
  for (const NodeReceipt& node : nodes) alone += Measured(node).size();
  if (alone > processes.size()) {
    absl::StrAppend(&out, blanks,
                    "several in one row: time inside is their sum, the rest their mean\n");
  }
  return out;
}

bool HasOverhead(const analysis::Report& report) { return !ProcessesOf(report.receipt).empty(); }

void OverheadInFull(Page* page) {
  page->Raw(ReceiptText(page->report().receipt, page->window_ns(), page->width(), Page::kIndent));
}

void OverheadInShort(Page* page) {
  std::vector<SpreadValue> shares;
  for (const ProcessReceipt& process : ProcessesOf(page->report().receipt)) {
    const std::optional<analysis::ShareEstimate> share = process.share();
    if (share.has_value()) shares.push_back({process.name, share->est_ppm, ShareText(share)});
  }
  const std::string measured = shares.empty()
                                   ? "not measured"
                                   : SpreadText(std::move(shares), {.text = PpmText, .named = 1});
  const std::string profilers = ProfilersOf(page->report().receipt);
  page->Item("Overhead",
             absl::StrCat(
                 "share of recorded time [95 % interval]: ", measured,
                 profilers.empty() ? "" : "; without what " + profilers + " took, which ran too"));
  const NodeReceipt* largest = nullptr;
  std::vector<std::string> discarding;
  std::vector<std::string> unknown;
  for (const NodeReceipt& node : page->report().receipt) {
    if (!node.trace_bytes.has_value()) continue;
    if (largest == nullptr || *node.trace_bytes > *largest->trace_bytes) largest = &node;
    if (IsWhole(node)) continue;
    (node.lost_packets.has_value() ? discarding : unknown).push_back(node.name);
  }
  if (largest == nullptr) return;
  std::vector<std::string> lost;
  if (!discarding.empty()) lost.push_back("events discarded on " + ListText(discarding));
  if (!unknown.empty()) lost.push_back("what LTTng discarded is unknown on " + ListText(unknown));
  if (lost.empty()) lost.emplace_back("LTTng discarded no event");
  page->Item("",
             absl::StrCat("at most ", Count(*largest->trace_bytes), " bytes of trace per node (",
                          largest->name, "); ", absl::StrJoin(lost, "; ")));
}

void OverheadInJson(const analysis::Report& report, Json* json) {
  (*json)["receipt"] = Json::array();
  for (const NodeReceipt& node : report.receipt) (*json)["receipt"].push_back(OfReceipt(node));
}

}  // namespace syncline::report
