// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/answers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace syncline::sim {
namespace {

using clocksync::BuildInput;
using clocksync::ProbeSample;

// lo and hi at half (or another share) of their distance from the estimate.
int64_t Halve(int64_t end, int64_t est) {
  return end == kUnknownLo || end == kUnknownHi ? end : est + (end - est) / 2;
}

// Exchanges that say that everybody's clock reads what the local one reads.
void ZeroOffsets(BuildInput* input) {
  for (clocksync::Edge& edge : input->edges) {
    for (ProbeSample& s : edge.samples) {
      const int64_t half = (s.t4_local_ns - s.t1_local_ns) / 2;
      if (s.t4_local_ns != 0) s.t2_remote_ns = s.t3_remote_ns = s.t1_local_ns + half;
    }
  }
}

void FlipSigns(BuildInput* input) {
  for (clocksync::Edge& edge : input->edges) {
    for (ProbeSample& s : edge.samples) {
      if (s.t4_local_ns == 0) continue;
      const ProbeSample old = s;
      s.t2_remote_ns = 2 * s.t1_local_ns - old.t3_remote_ns + (s.t4_local_ns - s.t1_local_ns);
      s.t3_remote_ns = 2 * s.t4_local_ns - old.t2_remote_ns - (s.t4_local_ns - s.t1_local_ns);
    }
  }
}

// Exchanges as the wall clocks would have it: offset of RAW = difference of the wall clocks'
// offsets.
void AlignByWall(BuildInput* input) {
  const auto wall_minus_raw = [&](const std::string& name, int64_t* offset) {
    for (const clocksync::HostClocks& host : input->hosts) {
      if (host.node != name || host.tuples.empty()) continue;
      *offset = host.tuples[0].realtime_ns - host.tuples[0].raw_before_ns;
      return true;
    }
    return false;
  };
  for (clocksync::Edge& edge : input->edges) {
    int64_t local = 0, remote = 0;
    if (!wall_minus_raw(edge.local, &local) || !wall_minus_raw(edge.remote, &remote)) continue;
    for (ProbeSample& s : edge.samples) {
      if (s.t4_local_ns == 0) continue;
      const int64_t middle = s.t1_local_ns + (s.t4_local_ns - s.t1_local_ns) / 2;
      s.t2_remote_ns = s.t3_remote_ns = middle + local - remote;
    }
  }
}

}  // namespace

Mutant MutantFromEnvironment() {
  const char* value = std::getenv("SYNCLINE_MUTANT");
  const std::string_view name = value == nullptr ? "" : value;
  if (name.empty()) return Mutant::kNone;
  if (name == "sign") return Mutant::kSignFlipped;
  if (name == "half") return Mutant::kBoundHalved;
  if (name == "zero") return Mutant::kZeroOffset;
  if (name == "second") return Mutant::kOneSecondBound;
  if (name == "wall") return Mutant::kWallClock;
  if (name == "swapped") return Mutant::kSwappedNodes;
  if (name == "nowander") return Mutant::kNoWander;
  if (name == "hop") return Mutant::kOneHop;
  std::fprintf(stderr, "unknown SYNCLINE_MUTANT\n");
  std::exit(0);  // a mutant that was not applied must not look like one that was noticed
}

absl::StatusOr<clocksync::BuildResult> Build(BuildInput input, clocksync::BuildOptions options,
                                             Mutant mutant) {
  if (mutant == Mutant::kSignFlipped) FlipSigns(&input);
  if (mutant == Mutant::kZeroOffset) ZeroOffsets(&input);
  if (mutant == Mutant::kWallClock) AlignByWall(&input);
  if (mutant == Mutant::kNoWander) options.wander_ppb_per_s = 0;
  return clocksync::BuildModel(input, options);
}

NodeTime Answers::Asked(NodeTime time) const {
  const auto count = static_cast<uint32_t>(model_.nodes().size());
  if (mutant_ == Mutant::kSwappedNodes) time.clock.node = (time.clock.node + 1) % count;
  return time;
}

TimelineEstimate Answers::Locate(NodeTime time) const {
  TimelineEstimate answer = model_.Locate(Asked(time));
  if (!answer.bounded()) return answer;
  if (mutant_ == Mutant::kBoundHalved) {
    answer.lo.ns = Halve(answer.lo.ns, answer.est.ns);
    answer.hi.ns = Halve(answer.hi.ns, answer.est.ns);
  }
  if (mutant_ == Mutant::kOneSecondBound) {
    answer.lo.ns = answer.est.ns - 1'000'000'000;
    answer.hi.ns = answer.est.ns + 1'000'000'000;
  }
  return answer;
}

DurationEstimate Answers::Difference(NodeTime a, NodeTime b) const {
  DurationEstimate answer = model_.Difference(Asked(a), Asked(b));
  if (!answer.bounded()) return answer;
  if (mutant_ == Mutant::kBoundHalved) {
    answer.lo_ns = Halve(answer.lo_ns, answer.est_ns);
    answer.hi_ns = Halve(answer.hi_ns, answer.est_ns);
  }
  if (mutant_ == Mutant::kOneHop && a.clock.node != b.clock.node) {
    const int64_t hop = std::min(model_.Locate(a).bound_ns(), model_.Locate(b).bound_ns());
    answer.lo_ns = std::max(answer.lo_ns, answer.est_ns - hop);
    answer.hi_ns = std::min(answer.hi_ns, answer.est_ns + hop);
  }
  if (mutant_ == Mutant::kOneSecondBound) {
    answer.lo_ns = answer.est_ns - 1'000'000'000;
    answer.hi_ns = answer.est_ns + 1'000'000'000;
  }
  return answer;
}

Ordering Answers::Order(NodeTime a, NodeTime b) const { return model_.Order(Asked(a), Asked(b)); }

}  // namespace syncline::sim
