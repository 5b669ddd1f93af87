// SPDX-License-Identifier: Apache-2.0
#include "coordinator/clocks/peer_probing.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::clocks {
namespace {

constexpr size_t kHubs = 8;
constexpr size_t kKeyBytes = 32;
// At the end it may be waited for three times.
constexpr fleet::AgentClient::Timeout kTimeout{3'000};
constexpr std::chrono::milliseconds kPeriod{1'000};
// Long enough for a coordinator that is stopped for a while, short enough for one that died.
constexpr int64_t kLeaseMs = 30'000;
constexpr int64_t kNsPerMs = 1'000'000;

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  // Never short for so few bytes.
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) bytes.clear();
  return bytes;
}

clocksync::StampSource FromMessage(int source) {
  switch (source) {
    case v1::HARDWARE:
      return clocksync::StampSource::kHardware;
    case v1::KERNEL:
      return clocksync::StampSource::kKernel;
    case v1::USER_SPIN:
      return clocksync::StampSource::kUserSpin;
    default:
      return clocksync::StampSource::kUserBlocking;
  }
}

// The names are those of clocks/probes.json.
std::vector<std::pair<std::string, uint64_t>> CountsOf(uint64_t samples_forgotten,
                                                       const v1::ProbeCounters& counters) {
  return {{"samples_forgotten_count", samples_forgotten},
          {"packets_sent_count", counters.packets_sent_count()},
          {"packets_received_count", counters.packets_received_count()},
          {"send_failures_count", counters.send_failures_count()},
          {"dropped_wrong_size_count", counters.wrong_size_count()},
          {"dropped_malformed_count", counters.malformed_count()},
          {"dropped_unknown_plan_count", counters.unknown_plan_count()},
          {"dropped_forged_count", counters.forged_count()},
          {"dropped_replayed_count", counters.replayed_count()},
          {"transmit_stamps_missing_count", counters.transmit_stamps_missing_count()},
          {"receive_stamps_missing_count", counters.receive_stamps_missing_count()},
          {"wall_clock_steps_count", counters.wall_steps_count()},
          {"transmit_stamps_late_count", counters.transmit_stamps_late_count()},
          {"wall_clock_contradictions_count", counters.wall_contradictions_count()},
          {"stamps_unbracketed_count", counters.stamps_unbracketed_count()},
          {"hardware_stamps_missing_count", counters.hardware_stamps_missing_count()},
          {"hardware_contradictions_count", counters.hardware_contradictions_count()},
          {"hardware_unbracketed_count", counters.hardware_unbracketed_count()},
          {"samples_count", counters.samples_count()},
          {"samples_impossible_count", counters.samples_impossible_count()}};
}

const char* SourceName(v1::ProbeStampSource source) {
  switch (source) {
    case v1::HARDWARE:
      return "hardware";
    case v1::KERNEL:
      return "kernel";
    case v1::USER_SPIN:
      return "user, spinning";
    case v1::USER_BLOCKING:
      return "user, blocking";
    default:
      return "none";
  }
}

}  // namespace

std::vector<Pair> PairsToProbe(size_t nodes) {
  std::vector<Pair> pairs;
  for (size_t hub = 0; hub < std::min(nodes, kHubs); ++hub) {
    for (size_t other = hub + 1; other < nodes; ++other) {
      pairs.push_back({hub, other});
      // A question meets a processor that sleeps, its answer does not: asked from both sides, the
      // difference cancels.
      if (nodes <= kHubs) pairs.push_back({other, hub});
    }
  }
  for (size_t leaf = kHubs; leaf + 1 < nodes; ++leaf) pairs.push_back({leaf, leaf + 1});
  return pairs;
}

PeerProbing::PeerProbing(std::vector<PeerTarget> targets, std::optional<recording::Layout> layout)
    : layout_(std::move(layout)) {
  std::erase_if(targets, [](const PeerTarget& target) { return target.address.empty(); });
  for (const Pair& pair : PairsToProbe(targets.size())) {
    const std::string& local = targets[pair.local].node;
    const std::string& remote = targets[pair.remote].node;
    const std::filesystem::path path = layout_ ? layout_->Samples(local, remote) : "";
    lines_.push_back({.pair = pair, .log = SampleLog(path, local, remote)});
  }
  const std::string number = RandomBytes(sizeof(uint64_t));
  plan_.set_key(RandomBytes(kKeyBytes));
  if (lines_.empty() || number.empty() || plan_.key().empty()) return;
  uint64_t plan_number = 0;
  std::memcpy(&plan_number, number.data(), sizeof plan_number);
  plan_.set_plan_number(plan_number);
  plan_.set_spin_allowed(true);
  for (PeerTarget& target : targets) nodes_.push_back({.target = std::move(target)});
  for (size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].thread = std::jthread([this, i](const std::stop_token& stop) { Run(i, stop); });
  }
}

PeerProbing::~PeerProbing() { Stop(); }

v1::ProbePlan PeerProbing::PlanFor(size_t index) const {
  v1::ProbePlan plan = plan_;
  plan.set_lease_ms(kLeaseMs);
  for (size_t number = 0; number < lines_.size(); ++number) {
    const Pair& pair = lines_[number].pair;
    if (pair.local != index && pair.remote != index) continue;
    const PeerTarget& peer = nodes_[pair.local == index ? pair.remote : pair.local].target;
    v1::ProbeEdge* edge = plan.add_edges();
    edge->set_edge_number(static_cast<uint32_t>(number));
    edge->set_initiator(pair.local == index);
    edge->set_peer(peer.node);
    edge->set_peer_address(peer.address);
  }
  return plan;
}

void PeerProbing::Hurry(int64_t ns) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    hurry_ms_ = ns / kNsPerMs;
    ++hurry_number_;
  }
  wake_.notify_all();
}

void PeerProbing::Run(size_t index, const std::stop_token& stop) {
  Node& node = nodes_[index];
  auto begun = node.target.client->Probe(PlanFor(index), kTimeout);
  node.active = begun.ok();
  node.status = begun.status();
  if (absl::IsUnimplemented(node.status)) {
    node.status = absl::UnimplementedError(
        "its agent is too old for clock probes over UDP: install the same version everywhere");
  }
  if (begun.ok()) node.last = *std::move(begun);
  uint64_t hurries_seen = 0;
  while (node.active && !stop.stop_requested()) {
    int64_t hurry_ms = 0;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait_for(lock, stop, kPeriod, [&] { return hurry_number_ != hurries_seen; });
      if (hurry_number_ != hurries_seen) hurry_ms = hurry_ms_;
      hurries_seen = hurry_number_;
    }
    if (!stop.stop_requested()) Collect(index, kLeaseMs, hurry_ms);
  }
  if (node.active) Collect(index, kLeaseMs, 0);
  if (node.active) Collect(index, 0, 0);
}

void PeerProbing::Stop() {
  if (std::exchange(stopped_, true) || nodes_.empty()) return;
  for (Node& node : nodes_) node.thread.request_stop();
  for (Node& node : nodes_) node.thread.join();
  if (!layout_) return;
  // A recording without it is complete.
  [[maybe_unused]] const absl::Status written =
      WriteFileAtomically(layout_->Probes(), ToJson(Report()));
}

void PeerProbing::Collect(size_t index, int64_t lease_ms, int64_t hurry_ms) {
  Node& node = nodes_[index];
  v1::ProbePlan plan;
  plan.set_plan_number(plan_.plan_number());
  plan.set_lease_ms(lease_ms);
  plan.set_hurry_ms(hurry_ms);
  auto reply = node.target.client->Probe(plan, kTimeout);
  node.status = reply.status();
  if (!reply.ok()) {
    // It may come back; but it does not get the plan again if it began anew.
    node.active = absl::IsUnavailable(reply.status()) || absl::IsDeadlineExceeded(reply.status());
    return;
  }
  node.last = *std::move(reply);
  if (lease_ms > 0) Take(index);
}

void PeerProbing::Take(size_t index) {
  Node& node = nodes_[index];
  for (bool more = true; more;) {
    v1::ProbeSamplesRequest request;
    request.set_plan_number(plan_.plan_number());
    request.set_from_sample_number(node.next_sample_number);
    const auto reply = node.target.client->ProbeSamples(request, kTimeout);
    const int count = reply.ok() ? reply->edge_number_size() : 0;
    if (count == 0 || reply->t1_local_ns_size() != count || reply->t2_remote_ns_size() != count ||
        reply->t3_remote_ns_size() != count || reply->t4_local_ns_size() != count ||
        reply->source_size() != count) {
      return;
    }
    std::map<uint32_t, std::vector<clocksync::ProbeSample>> by_edge;
    for (int i = 0; i < count; ++i) {
      by_edge[reply->edge_number(i)].push_back({.t1_local_ns = reply->t1_local_ns(i),
                                                .t2_remote_ns = reply->t2_remote_ns(i),
                                                .t3_remote_ns = reply->t3_remote_ns(i),
                                                .t4_local_ns = reply->t4_local_ns(i),
                                                .source = FromMessage(reply->source(i))});
    }
    for (const auto& [edge_number, samples] : by_edge) Append(index, edge_number, samples);
    node.next_sample_number = reply->next_sample_number();
    node.dropped_count = reply->dropped_count();
    more = reply->more();
  }
}

void PeerProbing::Append(size_t index, uint32_t edge_number,
                         const std::vector<clocksync::ProbeSample>& samples) {
  // A node speaks for the edges on which it asks, for no others.
  if (edge_number >= lines_.size() || lines_[edge_number].pair.local != index) return;
  Line& line = lines_[edge_number];
  absl::Status status = line.log.Append(samples);
  if (!status.ok()) {
    line.status = std::move(status);
    return;
  }
  line.samples += samples.size();
  if (!layout_) line.in_memory.insert(line.in_memory.end(), samples.begin(), samples.end());
}

std::vector<clocksync::Edge> PeerProbing::Edges() const {
  std::vector<clocksync::Edge> edges;
  for (const Line& line : lines_) {
    if (line.in_memory.empty()) continue;
    edges.push_back({.local = nodes_[line.pair.local].target.node,
                     .remote = nodes_[line.pair.remote].target.node,
                     .samples = line.in_memory});
  }
  return edges;
}

ProbeReport::End PeerProbing::EndOf(size_t index, size_t edge_number) const {
  const Node& node = nodes_[index];
  ProbeReport::End end{.node = node.target.node};
  if (!node.status.ok()) end.failure = std::string(node.status.message());
  for (const v1::ProbeEdgeState& edge : node.last.edges()) {
    if (edge.edge_number() != edge_number) continue;
    end.stamps = SourceName(edge.source());
    end.why_not_better = edge.reason();
    if (edge.silent()) end.silence = edge.silence();
  }
  return end;
}

ProbeReport PeerProbing::Report() const {
  ProbeReport report;
  for (size_t number = 0; number < lines_.size(); ++number) {
    const Line& line = lines_[number];
    report.edges.push_back({.local = EndOf(line.pair.local, number),
                            .remote = EndOf(line.pair.remote, number),
                            .samples = line.samples,
                            .failure = std::string(line.status.message())});
  }
  for (const Node& node : nodes_) {
    report.nodes.push_back({.node = node.target.node,
                            .cpu_ns = node.last.cpu_ns(),
                            .counts = CountsOf(node.dropped_count, node.last.counters())});
  }
  return report;
}

}  // namespace syncline::clocks
