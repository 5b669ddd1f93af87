// SPDX-License-Identifier: Apache-2.0
// syncline-testbed-judge: a clock model made of two nodes' samples, against the truth. A second
// file has what the remote node asked the local one.
//
//   syncline-testbed-judge FILE.samples [FILE.samples] --truth-ns N [--drift "ANCHOR RATE_PPB
//   WANDER_PPB PERIOD"]
//
// The remote clock reads D(local + N), where D is the drift that the testbed gave it (drift.h).
// Prints one JSON object: at a thousand instants between the first and the last sample (less a
// second at either end, where a window has one side only) the error of the estimate and the proven
// bound, and how often the truth was not inside.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clocksync/builder.h"
#include "clocksync/sample_file.h"
#include "common/files.h"
#include "common/status.h"
#include "tests/testbed/wallclock/drift.h"

namespace syncline::testbed {
namespace {

using Json = nlohmann::json;

constexpr int kInstants = 1'000;
constexpr int64_t kSecond = 1'000'000'000;

struct Options {
  std::vector<std::string> paths;
  int64_t truth_ns = 0;
  std::string drift = "0 0 0 1000000000";
};

Json Percentiles(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {{"min", at(0)}, {"p50", at(0.5)}, {"p99", at(0.99)}, {"max", at(1)}};
}

// The least delays that there were, by the truth: what no bound can beat.
Json OneWayMinima(const std::vector<clocksync::Edge>& edges, const Options& options,
                  const Drift& drift) {
  const auto by_local = [&](int64_t remote_ns) {
    return Undrifted(&drift, remote_ns) - options.truth_ns;
  };
  int64_t out = INT64_MAX, back = INT64_MAX;
  for (const clocksync::Edge& edge : edges) {
    const bool reverse = edge.local != edges.front().local;
    for (const clocksync::ProbeSample& s : edge.samples) {
      const int64_t there = reverse ? s.t2_remote_ns - by_local(s.t1_local_ns)
                                    : by_local(s.t2_remote_ns) - s.t1_local_ns;
      const int64_t here = reverse ? by_local(s.t4_local_ns) - s.t3_remote_ns
                                   : s.t4_local_ns - by_local(s.t3_remote_ns);
      out = std::min(out, reverse ? here : there);
      back = std::min(back, reverse ? there : here);
    }
  }
  return {{"out", out}, {"back", back}};
}

absl::StatusOr<Json> Judge(const Options& options) {
  Drift drift;
  if (!ParseDrift(options.drift.c_str(), &drift)) {
    return absl::InvalidArgumentError("--drift wants four whole numbers");
  }
  clocksync::BuildInput input;
  size_t samples = 0;
  for (const std::string& path : options.paths) {
    SYNCLINE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    SYNCLINE_ASSIGN_OR_RETURN(clocksync::Edge one, clocksync::DecodeSamples(bytes));
    if (one.samples.empty()) return absl::NotFoundError(path + ": no samples in it");
    samples += one.samples.size();
    input.edges.push_back(std::move(one));
  }
  const clocksync::Edge& edge = input.edges.front();
  input.nodes = {edge.local, edge.remote};
  clocksync::BuildOptions build{.reference = edge.local,
                                .zero_reference_raw_ns = edge.samples.front().t1_local_ns};
  SYNCLINE_ASSIGN_OR_RETURN(const auto built, clocksync::BuildModel(input, build));
  const int64_t begin = edge.samples.front().t1_local_ns + kSecond;
  const int64_t end = edge.samples.back().t1_local_ns - kSecond;
  if (end <= begin) return absl::InvalidArgumentError("two seconds of samples are too few");
  std::vector<int64_t> errors, bounds;
  int64_t outside = 0;
  for (int i = 0; i < kInstants; ++i) {
    const int64_t local = begin + (end - begin) / kInstants * i;
    const int64_t there = local + options.truth_ns;
    const int64_t remote = there + DriftedBy(&drift, there);
    const auto apart =
        built.model.Difference({{0, ClockKind::kRaw}, local}, {{1, ClockKind::kRaw}, remote});
    // A nanosecond for the truth's own rounding.
    if (apart.lo_ns > 1 || apart.hi_ns < -1) ++outside;
    errors.push_back(std::abs(apart.est_ns));
    bounds.push_back((apart.hi_ns - apart.lo_ns + 1) / 2);
  }
  Json events = Json::array();
  for (const auto& event : built.events) events.push_back(event.text);
  const clocksync::EdgeQuality& quality = built.edges.front();
  return Json{{"samples", samples},
              {"samples_by_source", quality.samples_by_source},
              {"drift_ppb", quality.drift_ppb},
              {"round_trip_min_ns", quality.round_trip_min_ns},
              {"one_way_minima_ns", OneWayMinima(input.edges, options, drift)},
              {"error_ns", Percentiles(errors)},
              {"bound_ns", Percentiles(bounds)},
              {"outside", outside},
              {"events", events}};
}

}  // namespace
}  // namespace syncline::testbed

int main(int argc, char** argv) {
  syncline::testbed::Options options;
  CLI::App app("A clock model of two nodes' samples, against the truth.");
  app.add_option("FILE", options.paths, "clocks/A--B.samples, and B--A.samples if B asked, too")
      ->required()
      ->expected(1, 2);
  app.add_option("--truth-ns", options.truth_ns, "remote's RAW minus local's, without its drift");
  app.add_option("--drift", options.drift, "the remote's: ANCHOR_NS RATE_PPB WANDER_PPB PERIOD_NS");
  CLI11_PARSE(app, argc, argv);
  const auto judged = syncline::testbed::Judge(options);
  if (!judged.ok()) {
    std::fprintf(stderr, "%s\n", std::string(judged.status().message()).c_str());
    return 1;
  }
  std::printf("%s\n", judged->dump(1).c_str());
  return 0;
}
