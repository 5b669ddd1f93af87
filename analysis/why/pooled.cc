// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/pooled.h"

#include <utility>
#include <vector>

#include "analysis/why/compared_sides.h"

namespace syncline::analysis::why {
namespace {

template <class T>
void Append(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

// By rank: times of all steps.
void AddUp(const std::vector<int64_t>& from, std::vector<int64_t>* to) {
  if (to->size() < from.size()) to->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] += from[i];
}

// `steps`: how many there were before those of `from`; where the operator never ran it has none.
void AddOperator(const SideOperator& from, uint64_t steps, SideOperator* to) {
  to->cut_ns.resize(steps);
  to->uncut_ns.resize(steps);
  Append(from.cut_ns, &to->cut_ns);
  Append(from.uncut_ns, &to->uncut_ns);
  AddUp(from.rank_cut_ns, &to->rank_cut_ns);
  AddUp(from.rank_uncut_ns, &to->rank_uncut_ns);
  to->calls += from.calls;
  for (const auto& [shape, calls] : from.shapes) to->shapes[shape] += calls;
}

void Add(const Side& side, Side* pooled) {
  for (size_t i = 0; i < side.ranks.size(); ++i) {
    SideRank& rank = pooled->ranks[i];
    Append(side.ranks[i].cut, &rank.cut);
    Append(side.ranks[i].unblocked, &rank.unblocked);
    Append(side.ranks[i].uncut, &rank.uncut);
    rank.taken_away_known = rank.taken_away_known && side.ranks[i].taken_away_known;
    rank.blocked_known = rank.blocked_known && side.ranks[i].blocked_known;
    rank.blocked_open_ns = std::max(rank.blocked_open_ns, side.ranks[i].blocked_open_ns);
  }
  for (const auto& [name, one] : side.operators) {
    AddOperator(one, pooled->steps, &pooled->operators[name]);
  }
  pooled->steps += side.steps;
  pooled->window_ns += side.window_ns;
  pooled->incomplete = pooled->incomplete || side.incomplete;
  pooled->redacted = pooled->redacted || side.redacted;
  if (pooled->detail != side.detail) pooled->detail.clear();
  AddLost(side.lost_events, &pooled->lost_events);
}

}  // namespace

Side Pooled(std::span<const Side> sides) {
  Side pooled = sides.front();
  for (const Side& side : sides.subspan(1)) Add(side, &pooled);
  for (auto& [name, one] : pooled.operators) {
    one.cut_ns.resize(pooled.steps);  // of one that the last recordings lack
    one.uncut_ns.resize(pooled.steps);
  }
  return pooled;
}

}  // namespace syncline::analysis::why
