// SPDX-License-Identifier: Apache-2.0
// syncline-probe-bench: measures clock probing between two hosts whose true offset is known.
//
//   host a:  syncline-probe-bench respond --listen 10.0.0.1:7700
//   host b:  syncline-probe-bench probe --listen 10.0.0.2:7700 --peer 10.0.0.1:7700 --truth-ns N
//
// With --both on both sides (and --peer on the responder's) each asks the other, as the agents of a
// small fleet do. N is the responder's CLOCK_MONOTONIC_RAW minus the prober's. Prints one JSON
// object: round trips, the proven interval and the estimate's error over windows of 64 exchanges,
// and whether every single sample agrees with the truth. A tool for tests and for judging a
// network; the key is on the command line.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/probe/udp/probe_thread.h"
#include "clocksync/sample_file.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::probe {
namespace {

using clocksync::ProbeSample;
using clocksync::StampSource;
using Json = nlohmann::json;

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr size_t kWindow = 64;
constexpr uint64_t kPlanId = 1;

struct Options {
  std::string listen = "127.0.0.1:0";
  std::string peer;
  std::string key = "0123456789abcdef0123456789abcdef";
  std::string stamps = "kernel";
  int64_t truth_ns = 0;
  double seconds = 10;
  double fast_seconds = 30;
  uint64_t seed = 1;
  uint32_t edges = 1;
  bool asks = false;
  bool both = false;
  // Empty: they are not kept.
  std::string samples_path;
  std::string peers_samples_path;  // of what the other side asked
};

using SamplesBySource = std::map<StampSource, std::vector<ProbeSample>>;

int64_t Percentile(std::vector<int64_t> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

Json Percentiles(const std::vector<int64_t>& values) {
  return {{"min", Percentile(values, 0)},
          {"p50", Percentile(values, 0.5)},
          {"p99", Percentile(values, 0.99)},
          {"max", Percentile(values, 1)}};
}

// What the samples of one source say of a constant offset, against the truth.
Json Judge(const std::vector<ProbeSample>& samples, int64_t truth_ns) {
  std::vector<int64_t> round_trips;
  std::vector<int64_t> half_widths;
  std::vector<int64_t> errors;
  int64_t wrong = 0;
  for (const ProbeSample& s : samples) {
    round_trips.push_back(s.round_trip_ns());
    const int64_t hi = s.t2_remote_ns - s.t1_local_ns;
    const int64_t lo = s.t3_remote_ns - s.t4_local_ns;
    if (truth_ns < lo || truth_ns > hi) ++wrong;
  }
  const size_t window = std::min(kWindow, samples.size());
  for (size_t begin = 0; begin + window <= samples.size(); begin += kWindow / 8) {
    int64_t lo = INT64_MIN;
    int64_t hi = INT64_MAX;
    for (size_t i = begin; i < begin + window; ++i) {
      hi = std::min(hi, samples[i].t2_remote_ns - samples[i].t1_local_ns);
      lo = std::max(lo, samples[i].t3_remote_ns - samples[i].t4_local_ns);
    }
    half_widths.push_back((hi - lo + 1) / 2);
    errors.push_back(std::abs(lo + (hi - lo) / 2 - truth_ns));
  }
  return {{"samples", samples.size()},
          {"round_trip_ns", Percentiles(round_trips)},
          {"bound_ns", Percentiles(half_widths)},
          {"error_ns", Percentiles(errors)},
          {"samples_that_exclude_the_truth", wrong}};
}

Json CountersJson(const ProbeCounters& c) {
  return {{"packets_sent", c.packets_sent},
          {"send_failures", c.send_failures},
          {"packets_received", c.packets_received},
          {"wrong_size", c.wrong_size},
          {"malformed", c.malformed},
          {"unknown_plan", c.unknown_plan},
          {"forged", c.forged},
          {"replayed", c.replayed},
          {"transmit_stamps_missing", c.transmit_stamps_missing},
          {"transmit_stamps_late", c.transmit_stamps_late},
          {"receive_stamps_missing", c.receive_stamps_missing},
          {"wall_steps", c.wall_steps},
          {"wall_contradictions", c.wall_contradictions},
          {"stamps_unbracketed", c.stamps_unbracketed},
          {"hardware_stamps_missing", c.hardware_stamps_missing},
          {"hardware_contradictions", c.hardware_contradictions},
          {"hardware_unbracketed", c.hardware_unbracketed},
          {"samples", c.samples},
          {"samples_impossible", c.samples_impossible}};
}

Json StatusJson(const EdgeStatus& status) {
  return {{"rung", StampSourceName(status.rung)},
          {"reason", status.reason},
          {"silent", status.silent},
          {"silence", status.silence},
          {"exchanges", status.exchanges},
          {"answered", status.answered}};
}

void Rest(double seconds) {
  timespec rest{.tv_sec = static_cast<time_t>(seconds),
                .tv_nsec = static_cast<long>(
                    (seconds - static_cast<double>(static_cast<time_t>(seconds))) * kNsPerSecond)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) {
  }
}

absl::StatusOr<ProbePlan> MakePlan(const Options& options) {
  ProbePlan plan;
  plan.plan_id = kPlanId;
  std::copy_n(options.key.begin(), std::min(options.key.size(), plan.key.size()), plan.key.begin());
  plan.seed = options.seed;
  plan.kernel_stamps = options.stamps == "kernel";
  plan.spin_allowed = options.stamps != "blocking";
  plan.schedule.fast_at_start_ns = static_cast<int64_t>(options.fast_seconds * kNsPerSecond);
  PlannedEdge edge{.peer = "peer"};
  if (!options.peer.empty()) {
    SYNCLINE_ASSIGN_OR_RETURN(edge.address, Address::Parse(options.peer));
  }
  for (uint32_t i = 0; i < options.edges; ++i) {
    edge.edge_id = 2 * i + 1;
    edge.initiator = options.asks;
    plan.edges.push_back(edge);
    if (!options.both) continue;
    edge.edge_id = 2 * i + 2;
    edge.initiator = !options.asks;
    plan.edges.push_back(edge);
  }
  return plan;
}

// All of them, in the order in which they were taken, as a recording has them.
absl::Status WriteSamples(const SamplesBySource& by_source, const char* local, const char* remote,
                          const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::vector<ProbeSample> all;
  for (const auto& [source, list] : by_source) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end(), [](const ProbeSample& a, const ProbeSample& b) {
    return a.t1_local_ns < b.t1_local_ns;
  });
  std::string bytes = clocksync::EncodeSamplesHeader(local, remote);
  for (const ProbeSample& sample : all) clocksync::AppendSample(sample, &bytes);
  return WriteFileAtomically(path, bytes);
}

absl::StatusOr<Json> Run(const Options& options) {
  auto listen = Address::Parse(options.listen);
  if (!listen.ok()) return listen.status();
  auto plan = MakePlan(options);
  if (!plan.ok()) return plan.status();
  std::mutex mutex;
  SamplesBySource samples, peers_samples;
  auto probe = ProbeThread::Start(
      {.listen = *listen, .kernel_stamps = plan->kernel_stamps}, [&](const EdgeSample& sample) {
        const std::lock_guard lock(mutex);
        auto& whose = sample.initiator == options.asks ? samples : peers_samples;
        whose[sample.sample.source].push_back(sample.sample);
      });
  if (!probe.ok()) return probe.status();
  if (auto added = (*probe)->AddPlan(*plan); !added.ok()) return added;
  Rest(options.seconds);
  {
    const std::lock_guard lock(mutex);
    SYNCLINE_RETURN_IF_ERROR(WriteSamples(samples, "asking", "answering", options.samples_path));
    SYNCLINE_RETURN_IF_ERROR(
        WriteSamples(peers_samples, "answering", "asking", options.peers_samples_path));
  }
  Json result;
  result["status"] = StatusJson((*probe)->Status().front());
  result["counters"] = CountersJson((*probe)->counters());
  result["cpu_share"] = static_cast<double>((*probe)->CpuNs()) / (options.seconds * kNsPerSecond);
  const std::lock_guard lock(mutex);
  result["sources"] = Json::object();
  for (const auto& [source, list] : samples) {
    result["sources"][StampSourceName(source)] = Judge(list, options.truth_ns);
  }
  return result;
}

}  // namespace
}  // namespace syncline::probe

int main(int argc, char** argv) {
  syncline::probe::Options options;
  CLI::App app("Measures clock probing over UDP between two hosts.");
  auto add_common = [&](CLI::App* command) {
    command->add_option("--listen", options.listen, "own ADDRESS:PORT");
    command->add_option("--fast-seconds", options.fast_seconds, "probe at 10 Hz for so long");
    command->add_option("--key", options.key, "at most 32 characters, the same on both sides");
    command->add_option("--edges", options.edges,
                        "so many edges between the two: a hub of so many, for what it costs");
    command->add_option("--seconds", options.seconds, "how long");
    command->add_flag("--both", options.both, "each side asks the other");
    command->add_option("--peer", options.peer, "ADDRESS:PORT of the other side, to ask it");
    command->add_option("--truth-ns", options.truth_ns, "responder's RAW minus prober's");
    command->add_option("--stamps", options.stamps, "the best to use")
        ->check(CLI::IsMember({"kernel", "spin", "blocking"}));
  };
  CLI::App* respond = app.add_subcommand("respond", "answer probes");
  add_common(respond);
  CLI::App* probe = app.add_subcommand("probe", "send probes");
  add_common(probe);
  probe->add_option("--samples", options.samples_path, "keep the samples in this file");
  probe->add_option("--peers-samples", options.peers_samples_path,
                    "keep those that the other side asked for (--both)");
  probe->add_option("--seed", options.seed, "of the schedule");
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  options.asks = probe->parsed();
  if ((options.asks || options.both) && options.peer.empty()) {
    std::fprintf(stderr, "who asks needs to know whom: --peer ADDRESS:PORT\n");
    return 2;
  }

  const auto result = syncline::probe::Run(options);
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", std::string(result.status().message()).c_str());
    return 1;
  }
  std::printf("%s\n", result->dump(1).c_str());
  return 0;
}
