// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/clocks_text.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/duration_text.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {
namespace {

using clocksync::ClockEvent;

constexpr int kInstants = 33;
constexpr size_t kEdgesMax = 12;  // in the table of what could hide

// When there were samples, on the timeline.
struct Span {
  int64_t begin_ns = kUnknownHi;
  int64_t end_ns = kUnknownLo;
};

Span SampledSpan(const clocksync::BuildResult& built) {
  Span span;
  for (const clocksync::EdgeQuality& edge : built.edges) {
    if (edge.corridor.empty()) continue;
    const auto& knots = edge.corridor.knots();
    span.begin_ns = std::min(span.begin_ns, knots.front().x - edge.zero_local_ns);
    span.end_ns = std::max(span.end_ns, knots.back().x - edge.zero_local_ns);
  }
  return span;
}

int64_t Median(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

PairBound BoundOf(const clocksync::ClockModel& model, const clocksync::ClockModel* likely,
                  uint32_t from, uint32_t to, const Span& span) {
  PairBound pair{.from = model.nodes()[from], .to = model.nodes()[to]};
  std::vector<int64_t> bounds;
  std::vector<int64_t> likely_bounds;
  for (int i = 0; i < kInstants; ++i) {
    const int64_t t = span.begin_ns + (span.end_ns - span.begin_ns) / (kInstants - 1) * i;
    const NodeTime a = model.Unlocate({from, ClockKind::kRaw}, {t});
    const NodeTime b = model.Unlocate({to, ClockKind::kRaw}, {t});
    bounds.push_back(model.Difference(a, b).bound_ns());
    if (likely != nullptr) likely_bounds.push_back(likely->Difference(a, b).bound_ns());
    if (i == kInstants / 2) pair.offset_ns = b.ns - a.ns;
  }
  pair.bound_median_ns = Median(bounds);
  pair.bound_worst_ns = *std::max_element(bounds.begin(), bounds.end());
  if (likely != nullptr) pair.likely_median_ns = Median(likely_bounds);
  return pair;
}

std::string BoundText(int64_t ns) {
  return ns == kUnknownHi ? "unknown" : absl::StrCat("± ", DurationText(ns));
}

// "-" where it is no smaller than what is proven.
std::string LikelyText(const PairBound& pair) {
  if (!pair.likely_median_ns) return "-";
  const std::string likely = BoundText(*pair.likely_median_ns);
  return likely == BoundText(pair.bound_median_ns) ? "-" : likely;
}

std::string SizeText(int64_t ns) { return ns == kUnknownHi ? "any" : DurationText(ns); }

}  // namespace

std::vector<PairBound> PairsOf(const clocksync::BuildResult& built,
                               const clocksync::ClockModel* likely, size_t nodes_max) {
  const clocksync::ClockModel& model = built.model;
  const auto count = static_cast<uint32_t>(model.nodes().size());
  const Span span = SampledSpan(built);
  std::vector<PairBound> pairs;
  if (span.begin_ns > span.end_ns) return pairs;
  const uint32_t reference = model.reference_node();
  for (uint32_t a = 0; a < count; ++a) {
    for (uint32_t b = a + 1; b < count; ++b) {
      const bool with_reference = a == reference || b == reference;
      if (!with_reference && b >= nodes_max) continue;
      pairs.push_back(BoundOf(model, likely, b == reference ? b : a, b == reference ? a : b, span));
    }
  }
  return pairs;
}

std::vector<std::string> InOneUnit(const std::vector<int64_t>& ns) {
  int64_t largest_ns = 0;
  for (const int64_t one : ns) largest_ns = std::max(largest_ns, std::abs(one));
  const bool seconds = largest_ns >= 1'000'000'000;
  const bool millis = !seconds && largest_ns >= 1'000'000;
  const int64_t unit_ns = seconds ? 1'000'000'000 : millis ? 1'000'000 : 1'000;
  const int digits = seconds ? 9 : millis ? 6 : 3;
  std::vector<std::string> texts;
  for (const int64_t one : ns) {
    const int64_t size_ns = std::abs(one);
    texts.push_back(absl::StrFormat("%s%d.%0*d %s", one < 0 ? "-" : "+", size_ns / unit_ns, digits,
                                    size_ns % unit_ns,
                                    seconds  ? "s"
                                    : millis ? "ms"
                                             : "µs"));
  }
  return texts;
}

std::string WhenText(const ClockEvent& event) {
  if (!event.begin || !event.end) return "";
  if (event.begin->ns == event.end->ns) return SignedDurationText(event.begin->ns);
  return absl::StrCat(SignedDurationText(event.begin->ns), " to ",
                      SignedDurationText(event.end->ns));
}

void PrintPairs(std::ostream& out, const std::vector<PairBound>& pairs) {
  if (pairs.empty()) return;
  out << "\nAny two nodes, over the best paths:\n";
  Table table({"FROM", "TO", "BOUND MEDIAN", "BOUND WORST", "LIKELY", "OFFSET"});
  std::vector<int64_t> offsets_ns;
  for (const PairBound& pair : pairs) offsets_ns.push_back(pair.offset_ns);
  const std::vector<std::string> offsets = InOneUnit(offsets_ns);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const PairBound& pair = pairs[i];
    table.AddRow({Printable(pair.from), Printable(pair.to), BoundText(pair.bound_median_ns),
                  BoundText(pair.bound_worst_ns), LikelyText(pair), offsets[i]});
  }
  table.Print(out);
}

void PrintAssumptions(std::ostream& out, const clocksync::BuildResult& built,
                      const clocksync::BuildOptions& options) {
  out << "\nAssumed: clocks run within " << options.rate_ppb_max / 1000
      << " ppm of each other, and change their rate by at most " << options.wander_ppb_per_s
      << " ppb per second.\nWhat the samples show of that (smaller steps than these cannot be "
         "detected):\n";
  Table table({"EDGE", "WANDER AT LEAST", "STEP UNSEEN", "WORST", "AT"});
  for (size_t i = 0; i < std::min(built.edges.size(), kEdgesMax); ++i) {
    const clocksync::EdgeQuality& edge = built.edges[i];
    const clocksync::EdgeAudit& audit = edge.audit;
    const bool any = audit.unseen_step_ns_worst == kUnknownHi && audit.unseen_step_worst_at_ns == 0;
    table.AddRow(
        {Printable(absl::StrCat(edge.local, "--", edge.remote)),
         absl::StrFormat("%.3f ppb/s", static_cast<double>(audit.wander_needed_ppt_per_s) / 1000),
         SizeText(audit.unseen_step_ns_median), SizeText(audit.unseen_step_ns_worst),
         any ? "-" : SignedDurationText(audit.unseen_step_worst_at_ns - edge.zero_local_ns)});
  }
  table.Print(out);
  if (built.edges.size() > kEdgesMax) {
    out << "and " << built.edges.size() - kEdgesMax << " more edges (--json has all)\n";
  }
}

}  // namespace syncline::cli
