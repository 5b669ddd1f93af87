// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/side.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/why/judged.h"

namespace syncline::analysis::why {
namespace {

StepKind KindOf(const Pattern& pattern, const std::vector<std::string>& names) {
  StepKind kind{{}, pattern.forwards, pattern.loads};
  for (const auto& [name, count] : pattern.collectives) kind.collectives[names[name]] += count;
  return kind;
}

void TakeOperators(const std::vector<std::string>& names, Judged* judged, Side* side) {
  for (auto& [name, time] : judged->operators.cut) {
    SideOperator& of_side = side->operators[names[name]];
    of_side.cut_ns = std::move(time.step_ns);
    of_side.rank_cut_ns = std::move(time.rank_ns);
  }
  for (auto& [name, time] : judged->operators.uncut) {
    SideOperator& of_side = side->operators[names[name]];
    of_side.uncut_ns = std::move(time.step_ns);
    of_side.rank_uncut_ns = std::move(time.rank_ns);
  }
  const auto sum = [](const WorkDone::Counts& counts) {
    return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  };
  for (const JudgedRank& rank : judged->ranks) {
    for (const auto& [key, counts] : rank.work.counts) {
      const auto found = side->operators.find(names[key.second]);
      if (found != side->operators.end()) found->second.calls += sum(counts);
    }
    for (const auto& [key, counts] : rank.work.shapes) {
      const auto found = side->operators.find(names[key.first]);
      if (found != side->operators.end()) found->second.shapes[names[key.second]] += sum(counts);
    }
  }
}

}  // namespace

Side SideOf(const JobInput& input, size_t threads) {
  Side side;
  side.job = input.job;
  side.incomplete = input.incomplete;
  side.lost_events = input.lost_events;
  side.redacted = input.redacted;
  side.detail = input.detail;
  for (const RankInput& rank : input.ranks) {
    side.window_ns = std::max(side.window_ns, rank.window.length_ns());
  }
  Judged judged = Judge(input, {.operators = true, .threads = threads});
  side.refusal = judged.refusal;
  side.refusal_text = judged.refusal_text;
  side.steps = judged.steps();
  if (!judged.pairing.classes.empty()) {
    side.step_class = judged.pairing.classes[0].name;
    side.kind = KindOf(judged.pairing.classes[0].pattern, input.names);
  }
  if (side.refusal != Refusal::kNone) return side;
  TakeOperators(input.names, &judged, &side);
  for (JudgedRank& rank : judged.ranks) {
    const BlockedSleep sleep = rank.sleep.value_or(BlockedSleep{});
    side.ranks.push_back({rank.input->rank, std::move(rank.tables), std::move(rank.unblocked),
                          std::move(rank.uncut), rank.samples.measured(), rank.sleep.has_value(),
                          std::max(sleep.less_ns, sleep.more_ns)});
  }
  return side;
}

}  // namespace syncline::analysis::why
