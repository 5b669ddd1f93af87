// SPDX-License-Identifier: Apache-2.0
#include "analysis/network.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace syncline::analysis {
namespace {

using evidence::ConnectionSample;
using evidence::ConnectionValue;

// A network that works loses next to nothing; below both it is not worth a word.
constexpr int64_t kLostMin = 10;      // segments
constexpr double kLostShare = 0.001;  // of those sent
// A receiver that has no room drops segments itself; where that is most of the time, the network is
// not what the sender waits for.
constexpr double kNoRoomShare = 0.5;      // of the time in which it had data to send
constexpr double kBufferShare = 0.1;      // of the time in which it had data to send
constexpr int64_t kBufferMinUs = 50'000;  // in the window
// A pair of nodes whose way takes so many times, and so much, longer than the others' usually.
constexpr int64_t kSlowTimes = 5;
constexpr int64_t kSlowUs = 200;
constexpr size_t kPairsMin = 3;

struct SumField {
  ConnectionValue value;
  int64_t ConnectionSums::*field;
};
constexpr SumField kFields[] = {
    {ConnectionValue::kSentBytes, &ConnectionSums::sent_bytes},
    {ConnectionValue::kRetransmittedBytes, &ConnectionSums::retransmitted_bytes},
    {ConnectionValue::kSentSegments, &ConnectionSums::sent_segments},
    {ConnectionValue::kRetransmittedSegments, &ConnectionSums::retransmitted_segments},
    {ConnectionValue::kDuplicates, &ConnectionSums::duplicates},
    {ConnectionValue::kBusyUs, &ConnectionSums::busy_us},
    {ConnectionValue::kWindowFullUs, &ConnectionSums::window_full_us},
    {ConnectionValue::kBufferShortUs, &ConnectionSums::buffer_short_us},
};

// What grew; -1: the kernel does not say it, or it began anew.
int64_t GrownBetween(const ConnectionSample& first, const ConnectionSample& last,
                     ConnectionValue value) {
  const auto begin = first.values.Get(value);
  const auto end = last.values.Get(value);
  if (!begin.has_value() || !end.has_value() || *end < *begin) return -1;
  return *end - *begin;
}

void AddTo(const ConnectionSums& one, ConnectionSums* sums) {
  for (const SumField& of : kFields) {
    int64_t& sum = sums->*of.field;
    const int64_t amount = one.*of.field;
    sum = sum < 0 || amount < 0 ? -1 : sum + amount;
  }
}

int64_t LeastKnown(int64_t a, int64_t b) {
  if (a < 0 || b < 0) return std::max(a, b);
  return std::min(a, b);
}

std::optional<ConnectionUsage> UsageOf(const evidence::ConnectionSamples& samples,
                                       const evidence::Connection& connection,
                                       std::span<const ConnectionSample* const> readings) {
  if (readings.size() < 2) return std::nullopt;
  ConnectionUsage usage;
  const evidence::ProcessIdentity& process = samples.processes[connection.process];
  usage.process = {0, static_cast<uint64_t>(process.pid_namespace_inode), process.own_pid,
                   process.start_ticks};
  usage.network_namespace = connection.network_namespace;
  usage.local = connection.local;
  usage.remote = connection.remote;
  for (const SumField& of : kFields) {
    usage.sums.*of.field = GrownBetween(*readings.front(), *readings.back(), of.value);
  }
  for (size_t i = 1; i < readings.size(); ++i) {
    const auto& values = readings[i]->values;
    usage.unsent_bytes_most =
        std::max(usage.unsent_bytes_most, values.Get(ConnectionValue::kUnsentBytes).value_or(-1));
    usage.min_rtt_us =
        LeastKnown(usage.min_rtt_us, values.Get(ConnectionValue::kMinRttUs).value_or(-1));
    // Without anything sent in between it is an old one.
    const auto rtt = values.Get(ConnectionValue::kRttUs);
    const bool sent = GrownBetween(*readings[i - 1], *readings[i], ConnectionValue::kSentBytes) > 0;
    if (sent && rtt.value_or(0) > 0) usage.rtts_us.push_back(*rtt);
  }
  return usage;
}

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("[::1]");
}

// Brings the ends of connections together.
class Ends {
 public:
  explicit Ends(std::span<const NodeConnections> nodes) : nodes_(nodes) {
    for (size_t node = 0; node < nodes.size(); ++node) {
      for (size_t i = 0; i < nodes[node].usages.size(); ++i) {
        const ConnectionUsage& usage = nodes[node].usages[i];
        by_addresses_[{usage.local, usage.remote}].emplace_back(node, i);
      }
    }
  }

  // Who is at the other end; nullopt: nobody who was recorded, or it is not certain who.
  std::optional<NetworkEnd> OtherOf(size_t node, const ConnectionUsage& usage) const {
    const auto found = by_addresses_.find({usage.remote, usage.local});
    if (found == by_addresses_.end()) return std::nullopt;
    const bool loopback = IsLoopback(usage.remote);
    std::optional<NetworkEnd> other;
    for (const auto& [its_node, i] : found->second) {
      const ConnectionUsage& candidate = nodes_[its_node].usages[i];
      const bool here = its_node == node && candidate.network_namespace == usage.network_namespace;
      if (loopback && !here) continue;
      if (other.has_value()) return std::nullopt;
      other = nodes_[its_node].ends[i];
      if (!other.has_value()) return std::nullopt;
    }
    return other;
  }

 private:
  const std::span<const NodeConnections> nodes_;
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<size_t, size_t>>>
      by_addresses_;
};

bool StaysOnNode(const NetworkLink& link) {
  return link.to.has_value() ? link.to->node == link.from.node : IsLoopback(link.remote);
}

std::optional<double> Share(int64_t part, int64_t whole) {
  if (part < 0 || whole <= 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

int64_t MedianOf(std::vector<int64_t> values) {
  if (values.empty()) return -1;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void AddSlowPairs(std::span<const NetworkLink> links, std::vector<NetworkFinding>* findings) {
  std::map<std::pair<std::string, std::string>, const NetworkLink*> pairs;
  for (const NetworkLink& link : links) {
    if (!link.to.has_value() || link.to->node == link.from.node || link.min_rtt_us < 0) continue;
    const NetworkLink*& fastest = pairs[std::minmax(link.from.node, link.to->node)];
    if (fastest == nullptr || link.min_rtt_us < fastest->min_rtt_us) fastest = &link;
  }
  if (pairs.size() < kPairsMin) return;
  for (const auto& [nodes, link] : pairs) {
    std::vector<int64_t> others;
    for (const auto& [other_nodes, other] : pairs) {
      if (other_nodes != nodes) others.push_back(other->min_rtt_us);
    }
    const int64_t usual_us = MedianOf(std::move(others));
    if (link->min_rtt_us < usual_us * kSlowTimes || link->min_rtt_us < usual_us + kSlowUs) continue;
    findings->push_back({NetworkFinding::Kind::kSlowPair, *link, usual_us});
  }
}

}  // namespace

std::vector<ConnectionUsage> UsagesOf(const evidence::ConnectionSamples& samples, int64_t begin_ns,
                                      int64_t end_ns) {
  std::vector<std::vector<const ConnectionSample*>> readings(samples.connections.size());
  std::vector<bool> over(samples.connections.size(), false);
  for (const ConnectionSample& sample : samples.samples) {
    auto& kept = readings[sample.connection];
    if (over[sample.connection]) continue;
    if (sample.until_ns <= begin_ns) kept.clear();
    kept.push_back(&sample);
    over[sample.connection] = sample.at_ns >= end_ns;
  }
  std::vector<ConnectionUsage> usages;
  for (size_t i = 0; i < readings.size(); ++i) {
    auto usage = UsageOf(samples, samples.connections[i], readings[i]);
    if (usage.has_value()) usages.push_back(*std::move(usage));
  }
  return usages;
}

std::optional<double> NetworkLink::retransmitted_share() const {
  return Share(sums.retransmitted_segments, sums.sent_segments);
}
std::optional<double> NetworkLink::window_full_share() const {
  return Share(sums.window_full_us, sums.busy_us);
}
std::optional<double> NetworkLink::buffer_short_share() const {
  return Share(sums.buffer_short_us, sums.busy_us);
}

std::vector<NetworkLink> LinksOf(std::span<const NodeConnections> nodes) {
  const Ends ends(nodes);
  using Key = std::tuple<NetworkEnd, std::optional<NetworkEnd>, std::string>;
  std::map<Key, NetworkLink> links;
  std::map<Key, std::vector<int64_t>> rtts;
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (size_t i = 0; i < nodes[node].usages.size(); ++i) {
      const ConnectionUsage& usage = nodes[node].usages[i];
      const bool sent = usage.sums.sent_bytes != 0 && usage.sums.sent_segments != 0;
      if (!nodes[node].ends[i].has_value() || !sent) continue;
      const auto to = ends.OtherOf(node, usage);
      const Key key{*nodes[node].ends[i], to, to.has_value() ? "" : HostOf(usage.remote)};
      NetworkLink& link = links[key];
      std::tie(link.from, link.to, link.remote) = key;
      ++link.connections;
      AddTo(usage.sums, &link.sums);
      link.min_rtt_us = LeastKnown(link.min_rtt_us, usage.min_rtt_us);
      link.unsent_bytes_most = std::max(link.unsent_bytes_most, usage.unsent_bytes_most);
      rtts[key].insert(rtts[key].end(), usage.rtts_us.begin(), usage.rtts_us.end());
    }
  }
  std::vector<NetworkLink> found;
  for (auto& [key, link] : links) {
    link.median_rtt_us = MedianOf(std::move(rtts[key]));
    found.push_back(std::move(link));
  }
  std::stable_sort(found.begin(), found.end(), [](const NetworkLink& a, const NetworkLink& b) {
    const int32_t to_a = a.to.has_value() ? a.to->rank : INT32_MAX;
    const int32_t to_b = b.to.has_value() ? b.to->rank : INT32_MAX;
    return std::tie(a.from.rank, to_a) < std::tie(b.from.rank, to_b);
  });
  return found;
}

std::vector<NetworkFinding> FindingsOf(std::span<const NetworkLink> links) {
  using Kind = NetworkFinding::Kind;
  std::vector<NetworkFinding> findings;
  for (const NetworkLink& link : links) {
    // Nothing is lost on the way within a node, and its buffers are no matter of the network.
    if (StaysOnNode(link)) continue;
    // What the receiver had already was not lost: its acknowledgement came late.
    const int64_t lost = link.sums.retransmitted_segments - link.sums.duplicates;
    if (link.sums.duplicates >= 0 && lost >= kLostMin &&
        Share(lost, link.sums.sent_segments).value_or(0) >= kLostShare &&
        link.window_full_share().value_or(0) < kNoRoomShare) {
      findings.push_back({Kind::kRetransmitted, link, -1});
    }
    if (link.sums.buffer_short_us >= kBufferMinUs &&
        link.buffer_short_share().value_or(0) >= kBufferShare) {
      findings.push_back({Kind::kBufferShort, link, -1});
    }
  }
  AddSlowPairs(links, &findings);
  const auto amount = [](const NetworkFinding& finding) {
    switch (finding.kind) {
      case Kind::kRetransmitted:
        return finding.link.retransmitted_share().value_or(0);
      case Kind::kBufferShort:
        return finding.link.buffer_short_share().value_or(0);
      case Kind::kSlowPair:
        return static_cast<double>(finding.link.min_rtt_us);
    }
    return 0.0;
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const NetworkFinding& a, const NetworkFinding& b) {
                     return a.kind != b.kind ? a.kind < b.kind : amount(a) > amount(b);
                   });
  return findings;
}

}  // namespace syncline::analysis
