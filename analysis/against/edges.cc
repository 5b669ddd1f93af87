// SPDX-License-Identifier: Apache-2.0
#include "analysis/against/edges.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::analysis::against {
namespace {

using Ends = std::pair<std::string, std::string>;

std::string NameOf(const NetworkEnd& end) {
  return end.rank >= 0 ? absl::StrCat("rank ", end.rank) : end.process;
}

// Of the counted time, how much is one step or second.
double OneOf(const Report& report, const Units& units) {
  double counted_ns = 0;
  for (const timeline::Interval& one : CoverageOf(report)) {
    counted_ns += static_cast<double>(one.end.ns - one.begin.ns);
  }
  if (counted_ns <= 0 || units.size() == 0) return 0;
  if (units.per == Per::kSecond) return 1e9 / counted_ns;
  const auto all_ns = static_cast<double>(
      std::accumulate(units.lengths_ns.begin(), units.lengths_ns.end(), int64_t{0}));
  return all_ns / units.Ones() / counted_ns;
}

// All recordings before: their means, and the least and most bytes of one.
struct Before {
  Edge mean;
  double least = 0;
  double most = 0;
};

Before BeforeOf(std::span<const std::vector<Edge>> recordings, const Ends& ends) {
  Before before;
  before.mean.from = ends.first;
  before.mean.to = ends.second;
  size_t known = 0;
  for (const std::vector<Edge>& edges : recordings) {
    double bytes = 0;
    for (const Edge& edge : edges) {
      if (Ends{edge.from, edge.to} != ends) continue;
      bytes = edge.bytes;
      before.mean.rtt_us = std::max(before.mean.rtt_us, edge.rtt_us);
      if (edge.retransmitted < 0) continue;
      before.mean.retransmitted = std::max(before.mean.retransmitted, 0.0) + edge.retransmitted;
      ++known;
    }
    const bool first = &edges == recordings.data();
    before.least = first ? bytes : std::min(before.least, bytes);
    before.most = std::max(before.most, bytes);
    before.mean.bytes += bytes / static_cast<double>(recordings.size());
  }
  if (known > 0) before.mean.retransmitted /= static_cast<double>(known);
  return before;
}

}  // namespace

std::vector<Edge> EdgesOf(const Report& report, const Units& units) {
  std::map<Ends, Edge> edges;
  const double one = OneOf(report, units);
  for (const NetworkLink& link : report.network) {
    if (!link.to.has_value()) continue;
    const Ends ends{NameOf(link.from), NameOf(*link.to)};
    Edge& edge = edges[ends];
    edge.from = ends.first;
    edge.to = ends.second;
    edge.bytes += static_cast<double>(link.sums.sent_bytes -
                                      std::max<int64_t>(0, link.sums.retransmitted_bytes)) *
                  one;
    edge.retransmitted = std::max(edge.retransmitted, link.retransmitted_share().value_or(-1));
    edge.rtt_us = std::max(edge.rtt_us, link.median_rtt_us);
  }
  std::vector<Edge> found;
  for (auto& [ends, edge] : edges) found.push_back(std::move(edge));
  return found;
}

std::vector<EdgeChange> CompareEdges(std::span<const std::vector<Edge>> before,
                                     const std::vector<Edge>& now) {
  const bool all = !now.empty() && std::none_of(before.begin(), before.end(),
                                                [](const auto& one) { return one.empty(); });
  if (!all) return {};
  std::map<Ends, Edge> ends;
  double busiest = 0;
  for (const std::vector<Edge>& edges : before) {
    for (const Edge& edge : edges) {
      ends[{edge.from, edge.to}] = {edge.from, edge.to};
      busiest = std::max(busiest, edge.bytes);
    }
  }
  for (const Edge& edge : now) {
    ends[{edge.from, edge.to}] = edge;
    busiest = std::max(busiest, edge.bytes);
  }
  std::vector<EdgeChange> changes;
  for (const auto& [names, edge] : ends) {
    const Before of = BeforeOf(before, names);
    if (std::max(edge.bytes, of.most) < busiest * kEdgeLeast) continue;
    const bool more = edge.bytes > of.most * (1 + kEdgeLimit);
    const bool less = edge.bytes < of.least * (1 - kEdgeLimit);
    changes.push_back({of.mean, edge, more || less});
  }
  std::sort(changes.begin(), changes.end(), [](const EdgeChange& a, const EdgeChange& b) {
    const auto rank = [](const EdgeChange& one) {
      return std::tuple(!one.changed, -std::abs(one.now.bytes - one.before.bytes), one.now.from,
                        one.now.to);
    };
    return rank(a) < rank(b);
  });
  return changes;
}

}  // namespace syncline::analysis::against
