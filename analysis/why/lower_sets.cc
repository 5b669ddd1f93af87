// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/lower_sets.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/onednn.h"
#include "analysis/why/work.h"

namespace syncline::analysis::why {
namespace {

using Implementations = std::set<std::string>;

// nullopt: none of them names one that is known.
std::optional<size_t> HighestSet(const Implementations& implementations) {
  std::optional<size_t> highest;
  for (const std::string& one : implementations) {
    const auto place = InstructionSetPlace(InstructionSetOf(one));
    if (place.has_value()) highest = std::max(highest.value_or(0), *place);
  }
  return highest;
}

// Of the others, what at least half of them have; nullptr: they differ, too.
const Implementations* OfMostOthers(std::span<const std::map<NameId, Implementations>> ranks,
                                    size_t rank, NameId name) {
  std::map<Implementations, size_t> counts;
  const Implementations* most = nullptr;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto found = ranks[i].find(name);
    if (i == rank || found == ranks[i].end()) continue;
    if (++counts[found->second] * 2 >= ranks.size() - 1) most = &found->second;
  }
  return most;
}

}  // namespace

LowerSets LowerSetsOf(std::span<const JudgedRank> ranks, size_t rank,
                      std::span<const std::string> names) {
  std::vector<std::map<NameId, Implementations>> all;
  for (const JudgedRank& one : ranks) all.push_back(ImplementationsOf(one.work, names));
  LowerSets lower;
  std::vector<NameId> found;
  for (const auto& [name, own] : all[rank]) {
    const Implementations* const others = OfMostOthers(all, rank, name);
    if (others == nullptr) continue;
    const auto own_set = HighestSet(own);
    const auto others_set = HighestSet(*others);
    if (!own_set.has_value() || !others_set.has_value() || *own_set >= *others_set) continue;
    found.push_back(name);
    lower.primitives.push_back(
        {names[name], {own.begin(), own.end()}, {others->begin(), others->end()}});
  }
  for (const JudgedRank& one : ranks) {
    std::vector<int64_t>& times_ns = lower.times_ns.emplace_back(one.steps.size());
    for (const NameId name : found) {
      const auto primitive = one.primitive_ns.find(name);
      if (primitive == one.primitive_ns.end()) continue;
      for (size_t step = 0; step < times_ns.size(); ++step) {
        times_ns[step] += primitive->second[step];
      }
    }
  }
  return lower;
}

}  // namespace syncline::analysis::why
