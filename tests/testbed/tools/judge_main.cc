// syncline-testbed-judge: a clock model made of one edge's samples, against the truth.
//
//   syncline-testbed-judge FILE.samples --truth-ns N [--drift "ANCHOR RATE_PPB WANDER_PPB PERIOD"]
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
  std::string path;
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
Json OneWayMinima(const clocksync::Edge& edge, const Options& options, const Drift& drift) {
  int64_t out = INT64_MAX, back = INT64_MAX;
  for (const clocksync::ProbeSample& s : edge.samples) {
    out = std::min(out, Undrifted(&drift, s.t2_remote_ns) - options.truth_ns - s.t1_local_ns);
    back = std::min(back, s.t4_local_ns - (Undrifted(&drift, s.t3_remote_ns) - options.truth_ns));
  }
  return {{"out", out}, {"back", back}};
}

absl::StatusOr<Json> Judge(const Options& options) {
  Drift drift;
  if (!ParseDrift(options.drift.c_str(), &drift)) {
    return absl::InvalidArgumentError("--drift wants four whole numbers");
  }
  SYNCLINE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(options.path));
  SYNCLINE_ASSIGN_OR_RETURN(const clocksync::Edge edge, clocksync::DecodeSamples(bytes));
  if (edge.samples.empty()) return absl::NotFoundError("no samples in it");
  clocksync::BuildInput input{.nodes = {edge.local, edge.remote}, .edges = {edge}};
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
  return Json{{"samples", edge.samples.size()},
              {"samples_by_source", quality.samples_by_source},
              {"drift_ppb", quality.drift_ppb},
              {"round_trip_min_ns", quality.round_trip_min_ns},
              {"one_way_minima_ns", OneWayMinima(edge, options, drift)},
              {"error_ns", Percentiles(errors)},
              {"bound_ns", Percentiles(bounds)},
              {"outside", outside},
              {"events", events}};
}

}  // namespace
}  // namespace syncline::testbed

int main(int argc, char** argv) {
  syncline::testbed::Options options;
  CLI::App app("A clock model of one edge's samples, against the truth.");
  app.add_option("FILE", options.path, "clocks/A--B.samples")->required();
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
