// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/lower_sets.h"

#include <algorithm>
#include <utility>

#include "analysis/why/work.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kRarely = 20;  // not done in more than one step of so many

// Of the sets that implementations are called by.
struct Highest {
  bool known = true;            // each one's place is
  std::optional<size_t> place;  // nullopt: none is named
};

Highest HighestOf(const std::set<std::string>& implementations) {
  Highest highest;
  for (const std::string& one : implementations) {
    const std::string_view set = InstructionSetOf(one);
    if (set.empty()) continue;
    const auto place = InstructionSetPlace(set);
    highest.known &= place.has_value();
    if (place.has_value()) highest.place = std::max(highest.place.value_or(0), *place);
  }
  return highest;
}

void Add(std::span<const StepTime> times, std::vector<int64_t>* sums_ns) {
  for (const StepTime& time : times) (*sums_ns)[time.step] += time.ns;
}

std::span<const StepTime> TimesOf(const JudgedRank& rank, const std::pair<NameId, NameId>& key) {
  const auto found = rank.primitives.find(key);
  if (found == rank.primitives.end()) return {};
  return found->second;
}

// One line for a primitive, whatever it works on.
class Lines {
 public:
  void Add(const std::string& primitive, const std::set<std::string>& own,
           const std::set<std::string>& others, bool all_others) {
    Line& line = lines_[primitive];
    line.own.insert(own.begin(), own.end());
    line.others.insert(others.begin(), others.end());
    line.all_others &= all_others;
  }
  std::vector<LowerSet> Take() const {
    std::vector<LowerSet> sets;
    for (const auto& [primitive, line] : lines_) {
      sets.push_back({primitive,
                      {line.own.begin(), line.own.end()},
                      {line.others.begin(), line.others.end()},
                      line.all_others});
    }
    return sets;
  }

 private:
  struct Line {
    std::set<std::string> own;
    std::set<std::string> others;
    bool all_others = true;
  };
  std::map<std::string, Line> lines_;
};

}  // namespace

// Without what is done in some steps alone: of shapes that change from step to step there are many.
Primitives::ByWork Primitives::Regular(const JudgedRank& rank, std::span<const std::string> names) {
  ByWork works;
  for (const auto& [key, counts] : rank.work.shapes) {
    const auto said = DescriptionOf(names[key.second]);
    if (!said.has_value() || IsReorder(said->kind)) continue;
    Done& done = works[WorkAlone(*said)];
    done.implementations.insert(said->implementation);
    done.in_step.resize(counts.size());
    for (size_t step = 0; step < counts.size(); ++step) {
      if (counts[step] > 0) done.in_step[step] = true;
    }
    const std::span<const StepTime> times = TimesOf(rank, key);
    done.times.insert(done.times.end(), times.begin(), times.end());
  }
  std::erase_if(works, [](const auto& one) {
    const std::vector<bool>& in_step = one.second.in_step;
    const auto without = static_cast<size_t>(std::count(in_step.begin(), in_step.end(), false));
    return without * kRarely > in_step.size();
  });
  return works;
}

Primitives::Primitives(std::span<const JudgedRank> ranks, std::span<const std::string> names)
    : steps_(ranks[0].steps.size()) {
  for (const JudgedRank& rank : ranks) {
    ranks_.push_back(Regular(rank, names));
    std::vector<int64_t>& reorders_ns = reorders_ns_.emplace_back(steps_);
    for (const auto& [key, times] : rank.primitives) {
      if (IsReorder(names[key.first])) Add(times, &reorders_ns);
    }
  }
}

const Primitives::Done* Primitives::OfMostOthers(size_t rank, const PrimitiveDescription& work,
                                                 size_t* count) const {
  std::map<std::set<std::string>, std::pair<size_t, const Done*>> others;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const auto found = ranks_[i].find(work);
    if (i == rank || found == ranks_[i].end()) continue;
    auto& [ranks, done] = others[found->second.implementations];
    ++ranks;
    done = &found->second;
  }
  for (const auto& [implementations, of] : others) {
    if (of.first * 2 <= ranks_.size() - 1) continue;
    *count = of.first;
    return of.second;
  }
  return nullptr;
}

LowerSets Primitives::LowerSetsOf(size_t rank) const {
  std::vector<PrimitiveDescription> found;
  Lines lines;
  bool any_lower = false;
  for (const auto& [work, own] : ranks_[rank]) {
    size_t count = 0;
    const Done* const others = OfMostOthers(rank, work, &count);
    if (others == nullptr) continue;
    const Highest own_set = HighestOf(own.implementations);
    const Highest others_set = HighestOf(others->implementations);
    if (!own_set.known || !others_set.known || !others_set.place.has_value()) continue;
    if (own_set.place.has_value() && *own_set.place >= *others_set.place) continue;
    any_lower |= own_set.place.has_value();
    found.push_back(work);
    lines.Add(work.kind, own.implementations, others->implementations, count == ranks_.size() - 1);
  }
  LowerSets lower;
  if (!any_lower) return lower;
  lower.primitives = lines.Take();
  for (const ByWork& works : ranks_) {
    std::vector<int64_t>& times_ns = lower.times_ns.emplace_back(steps_);
    for (const PrimitiveDescription& work : found) {
      const auto done = works.find(work);
      if (done != works.end()) Add(done->second.times, &times_ns);
    }
  }
  return lower;
}

}  // namespace syncline::analysis::why
