#include "coordinator/clocks/peer_probing.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocksync/sample_file.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::clocks {
namespace {

using Json = nlohmann::json;

constexpr size_t kHubs = 8;
constexpr size_t kKeyBytes = 32;
constexpr fleet::AgentClient::Timeout kTimeout{5'000};
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

absl::Status AppendTo(const std::filesystem::path& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("Cannot open ", path.string()));
  absl::Status status;
  while (status.ok() && !bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) status = ErrnoStatus(errno, absl::StrCat("Cannot write ", path.string()));
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
  ::close(fd);
  return status;
}

}  // namespace

std::vector<Pair> PairsToProbe(size_t nodes) {
  std::vector<Pair> pairs;
  for (size_t hub = 0; hub < std::min(nodes, kHubs); ++hub) {
    for (size_t other = hub + 1; other < nodes; ++other) pairs.push_back({hub, other});
  }
  return pairs;
}

PeerProbing::PeerProbing(std::vector<PeerTarget> targets, const recording::Layout& layout)
    : layout_(layout) {
  std::erase_if(targets, [](const PeerTarget& target) { return target.address.empty(); });
  for (PeerTarget& target : targets) nodes_.push_back({.target = std::move(target)});
  for (const Pair& pair : PairsToProbe(nodes_.size())) lines_.push_back({.pair = pair});
  const std::string number = RandomBytes(sizeof(uint64_t));
  plan_.set_key(RandomBytes(kKeyBytes));
  if (lines_.empty() || number.empty() || plan_.key().empty()) return;
  uint64_t plan_number = 0;
  std::memcpy(&plan_number, number.data(), sizeof plan_number);
  plan_.set_plan_number(plan_number);
  plan_.set_spin_allowed(true);
  HandOut();
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

PeerProbing::~PeerProbing() { Stop(); }

void PeerProbing::HandOut() {
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    threads.emplace_back([this, i] {
      v1::ProbePlan plan = plan_;
      plan.set_lease_ms(kLeaseMs);
      for (size_t number = 0; number < lines_.size(); ++number) {
        const Pair& pair = lines_[number].pair;
        if (pair.local != i && pair.remote != i) continue;
        const PeerTarget& peer = nodes_[pair.local == i ? pair.remote : pair.local].target;
        v1::ProbeEdge* edge = plan.add_edges();
        edge->set_edge_number(static_cast<uint32_t>(number));
        edge->set_initiator(pair.local == i);
        edge->set_peer(peer.node);
        edge->set_peer_address(peer.address);
      }
      const auto reply = nodes_[i].target.client->Probe(plan, kTimeout);
      nodes_[i].active = reply.ok();
      nodes_[i].status = reply.status();
    });
  }
}

void PeerProbing::Hurry(int64_t ns) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    hurry_ms_ = std::max(hurry_ms_, ns / kNsPerMs);
  }
  wake_.notify_all();
}

void PeerProbing::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    int64_t hurry_ms = 0;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait_for(lock, stop, kPeriod, [this] { return hurry_ms_ > 0; });
      std::swap(hurry_ms, hurry_ms_);
    }
    if (!stop.stop_requested()) Collect(kLeaseMs, hurry_ms);
  }
}

void PeerProbing::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  Collect(kLeaseMs, 0);
  Collect(0, 0);
  WriteReport();
}

void PeerProbing::Collect(int64_t lease_ms, int64_t hurry_ms) {
  for (Node& node : nodes_) {
    if (!node.active) continue;
    v1::ProbePlan plan;
    plan.set_plan_number(plan_.plan_number());
    plan.set_lease_ms(lease_ms);
    plan.set_hurry_ms(hurry_ms);
    auto reply = node.target.client->Probe(plan, kTimeout);
    if (!reply.ok()) {
      // It does not get the plan again: an agent that began anew has other clocks to offer,
      // perhaps.
      node.active = absl::IsUnavailable(reply.status()) && lease_ms > 0;
      node.status = reply.status();
      continue;
    }
    node.last = *std::move(reply);
    node.status = absl::OkStatus();
    if (lease_ms > 0) Take(&node);
  }
}

void PeerProbing::Take(Node* node) {
  for (bool more = true; more;) {
    v1::ProbeSamplesRequest request;
    request.set_plan_number(plan_.plan_number());
    request.set_from_sample_number(node->next_sample_number);
    const auto reply = node->target.client->ProbeSamples(request, kTimeout);
    const int count = reply.ok() ? reply->edge_number_size() : 0;
    if (count == 0 || reply->t1_local_ns_size() != count || reply->t2_remote_ns_size() != count ||
        reply->t3_remote_ns_size() != count || reply->t4_local_ns_size() != count ||
        reply->source_size() != count) {
      return;
    }
    std::map<uint32_t, std::string> records;
    for (int i = 0; i < count; ++i) {
      clocksync::AppendSample({.t1_local_ns = reply->t1_local_ns(i),
                               .t2_remote_ns = reply->t2_remote_ns(i),
                               .t3_remote_ns = reply->t3_remote_ns(i),
                               .t4_local_ns = reply->t4_local_ns(i),
                               .source = FromMessage(reply->source(i))},
                              &records[reply->edge_number(i)]);
      if (reply->edge_number(i) < lines_.size()) ++lines_[reply->edge_number(i)].samples;
    }
    for (const auto& [edge_number, bytes] : records) Append(edge_number, bytes);
    node->next_sample_number = reply->next_sample_number();
    node->dropped_count = reply->dropped_count();
    more = reply->more();
  }
}

void PeerProbing::Append(uint32_t edge_number, const std::string& records) {
  if (edge_number >= lines_.size()) return;
  Line& line = lines_[edge_number];
  const std::string& local = nodes_[line.pair.local].target.node;
  const std::string& remote = nodes_[line.pair.remote].target.node;
  const std::filesystem::path path = layout_.Samples(local, remote);
  std::error_code error;
  absl::Status status;
  if (!std::filesystem::exists(path, error)) {
    status = AppendTo(path, clocksync::EncodeSamplesHeader(local, remote));
  }
  if (status.ok()) status = AppendTo(path, records);
  if (!status.ok()) line.status = status;
}

void PeerProbing::WriteReport() const {
  const auto end_of = [this](size_t index, size_t number) {
    const Node& node = nodes_[index];
    Json end = {{"node", node.target.node}};
    if (!node.status.ok()) end["failure"] = std::string(node.status.message());
    for (const v1::ProbeEdgeState& edge : node.last.edges()) {
      if (edge.edge_number() != number) continue;
      end["stamps"] = SourceName(edge.source());
      end["why_not_better"] = edge.reason();
      if (edge.silent()) end["silence"] = edge.silence();
    }
    return end;
  };
  Json report = {{"format_version", 1}, {"edges", Json::array()}, {"nodes", Json::array()}};
  for (size_t number = 0; number < lines_.size(); ++number) {
    const Line& line = lines_[number];
    Json edge = {{"local", end_of(line.pair.local, number)},
                 {"remote", end_of(line.pair.remote, number)},
                 {"samples_count", line.samples}};
    if (!line.status.ok()) edge["failure"] = std::string(line.status.message());
    report["edges"].push_back(std::move(edge));
  }
  for (const Node& node : nodes_) {
    const v1::ProbeCounters& counters = node.last.counters();
    report["nodes"].push_back(
        {{"node", node.target.node},
         {"cpu_ns", node.last.cpu_ns()},
         {"samples_forgotten_count", node.dropped_count},
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
         {"wall_clock_steps_count", counters.wall_steps_count()}});
  }
  // A recording without it is complete.
  [[maybe_unused]] const absl::Status written =
      WriteFileAtomically(layout_.Clocks() / "probes.json", report.dump(1) + "\n");
}

}  // namespace syncline::clocks
