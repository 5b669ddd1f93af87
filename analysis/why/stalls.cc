// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/stalls.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>

#include "analysis/why/places.h"
#include "analysis/why/samples.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kTimesUsual = 2;  // a stall takes so many times the median step
constexpr int64_t kLongerLeastNs = 5'000'000;
constexpr int64_t kCoveredDivisor = 10;   // what of a step may not be covered
constexpr double kMadeBy = 0.6;           // of what a stall takes longer, own work that made it
constexpr double kNobodys = 0.3;          // and own work that did not
constexpr int64_t kSamplesWanted = 4;     // periods of the sampler in a stall
constexpr uint64_t kRhythmLeast = 3;      // stalls
constexpr uint64_t kPartRhythmLeast = 4;  // where others have none
constexpr uint64_t kRhythmOf = 5;         // and three of five of them
constexpr uint64_t kRhythmParts = 3;

// A step of all ranks: a judged one, or another.
struct JobStep {
  size_t number = 0;  // of the first rank's
  bool judged = false;
  size_t index = 0;       // in JudgedRank::steps, or JudgedRank::unjudged
  int64_t length_ns = 0;  // of the rank of which it is shortest

  const OwnInterval& Of(const JudgedRank& rank) const {
    return judged ? rank.steps[index] : rank.unjudged[index];
  }
  // `cut`: with what was taken away told apart; for judged steps alone.
  const PartTable& PartsOf(const JudgedRank& rank, bool cut) const {
    if (!judged) return rank.unjudged_tables[index];
    return cut ? rank.tables[index] : rank.uncut[index];
  }
};

// In order. Without those of which a part was not recorded.
std::vector<JobStep> StepsOf(const Judged& judged) {
  std::vector<JobStep> steps;
  const auto add = [&](JobStep step) {
    step.length_ns = INT64_MAX;
    for (const JudgedRank& rank : judged.ranks) {
      const int64_t length_ns = step.Of(rank).length_ns();
      const int64_t hole_ns = step.PartsOf(rank, false)[static_cast<size_t>(Part::kNotCovered)];
      if (hole_ns * kCoveredDivisor > length_ns) return;
      step.length_ns = std::min(step.length_ns, length_ns);
    }
    steps.push_back(step);
  };
  for (size_t i = 0; i < judged.steps(); ++i) add({judged.numbers[i], true, i});
  for (size_t i = 0; i < judged.unjudged.size(); ++i) add({judged.unjudged[i], false, i});
  std::sort(steps.begin(), steps.end(),
            [](const JobStep& a, const JobStep& b) { return a.number < b.number; });
  return steps;
}

// How much of `within` they cover; they are in order, apart from each other.
int64_t Covered(const std::vector<OwnInterval>& intervals, const OwnInterval& within) {
  auto one = std::partition_point(intervals.begin(), intervals.end(), [&](const OwnInterval& any) {
    return any.end_ns <= within.begin_ns;
  });
  int64_t sum_ns = 0;
  for (; one != intervals.end() && one->begin_ns < within.end_ns; ++one) {
    sum_ns += std::min(one->end_ns, within.end_ns) - std::max(one->begin_ns, within.begin_ns);
  }
  return sum_ns;
}

int64_t PartOf(int64_t ns, double part) {
  return static_cast<int64_t>(static_cast<double>(ns) * part);
}

class StallFinder {
 public:
  StallFinder(const JobInput& input, const Judged& judged)
      : input_(input), judged_(judged), steps_(StepsOf(judged)) {}

  std::optional<Stalls> Find() {
    std::vector<int64_t> lengths;
    for (const JobStep& step : steps_) {
      if (step.judged) lengths.push_back(step.length_ns);
    }
    const std::optional<int64_t> usual_ns = MedianOf(std::move(lengths));
    if (!usual_ns.has_value()) return std::nullopt;
    Stalls found;
    found.usual_ns = *usual_ns;
    found.steps = steps_.size();
    for (size_t i = 0; i < steps_.size(); ++i) {
      const JobStep& step = steps_[i];
      found.total_ns += step.length_ns;
      const int64_t longer_ns = step.length_ns - *usual_ns;
      if (step.length_ns < kTimesUsual * *usual_ns || longer_ns < kLongerLeastNs) continue;
      stalls_.push_back(i);
      found.longer_ns += longer_ns;
      if (step.judged) found.judged.push_back(step.index);
    }
    found.stalls = stalls_.size();
    if (stalls_.empty() || stalls_.size() * kFewDivisor > steps_.size()) return std::nullopt;
    SetUsual();
    AddGroups(*usual_ns, &found);
    if (!IsLarge(found, found.groups.front())) return std::nullopt;
    return found;
  }

 private:
  using Kind = StallGroup::Kind;

  // Of each rank, the median of its own work, and the means of its parts, in judged steps that are
  // no stalls.
  void SetUsual() {
    const auto is_stall = [&](size_t i) {
      return std::binary_search(stalls_.begin(), stalls_.end(), i);
    };
    for (const JudgedRank& rank : judged_.ranks) {
      std::vector<int64_t> own_ns;
      for (const bool cut : {false, true}) {
        PartTable sum{};
        int64_t count = 0;
        for (size_t i = 0; i < steps_.size(); ++i) {
          if (!steps_[i].judged || is_stall(i)) continue;
          const PartTable& parts = steps_[i].PartsOf(rank, cut);
          for (size_t part = 0; part < kParts; ++part) sum[part] += parts[part];
          if (!cut) own_ns.push_back(OwnWorkOf(parts));
          ++count;
        }
        for (int64_t& ns : sum) ns /= std::max<int64_t>(1, count);
        (cut ? usual_cut_ : usual_uncut_).push_back(sum);
      }
      usual_own_ns_.push_back(MedianOf(std::move(own_ns)).value_or(0));
    }
  }

  int64_t LongerNs(size_t rank, const JobStep& step) const {
    return OwnWorkOf(step.PartsOf(judged_.ranks[rank], false)) - usual_own_ns_[rank];
  }

  // Whose own work made the stall. Where a rank may have waited is not known to be own work.
  std::pair<Kind, std::vector<size_t>> MadeBy(const JobStep& step, int64_t usual_ns) const {
    const int64_t stall_ns = step.length_ns - usual_ns;
    std::vector<size_t> makers;
    bool clear = true;
    bool nobodys = true;
    for (size_t rank = 0; rank < judged_.ranks.size(); ++rank) {
      const JudgedRank& judged = judged_.ranks[rank];
      const int64_t longer_ns = LongerNs(rank, step);
      const int64_t least_ns = longer_ns - Covered(judged.perhaps_waits, step.Of(judged));
      const int64_t made_ns = PartOf(stall_ns, kMadeBy);
      if (least_ns >= made_ns) makers.push_back(rank);
      clear = clear && (least_ns >= made_ns || longer_ns < made_ns);
      nobodys = nobodys && longer_ns < PartOf(stall_ns, kNobodys);
    }
    if (!clear) return {Kind::kUntold, {}};
    if (makers.empty()) return {nobodys ? Kind::kCollectives : Kind::kUntold, {}};
    if (makers.size() * 2 <= judged_.ranks.size()) return {Kind::kRanks, std::move(makers)};
    makers.resize(judged_.ranks.size());
    for (size_t rank = 0; rank < makers.size(); ++rank) makers[rank] = rank;
    return {Kind::kEverybody, std::move(makers)};
  }

  void AddGroups(int64_t usual_ns, Stalls* found) const {
    std::map<std::pair<Kind, std::vector<size_t>>, std::vector<size_t>> groups;
    for (const size_t stall : stalls_) groups[MadeBy(steps_[stall], usual_ns)].push_back(stall);
    for (const auto& [made, stalls] : groups) {
      StallGroup& group = found->groups.emplace_back();
      group.kind = made.first;
      group.ranks = made.second;
      group.stalls = stalls.size();
      group.shortest_ns = INT64_MAX;
      for (const size_t stall : stalls) {
        const int64_t length_ns = steps_[stall].length_ns;
        group.shortest_ns = std::min(group.shortest_ns, length_ns);
        group.longest_ns = std::max(group.longest_ns, length_ns);
        group.total_longer_ns += length_ns - usual_ns;
      }
      SetRhythm(stalls, &group);
      if (!group.ranks.empty()) Measure(stalls, &group);
    }
    std::stable_sort(found->groups.begin(), found->groups.end(),
                     [](const StallGroup& a, const StallGroup& b) {
                       return a.total_longer_ns > b.total_longer_ns;
                     });
  }

  // All stalls, or most of them, lie multiples of the median distance apart, but for one step.
  void SetRhythm(const std::vector<size_t>& stalls, StallGroup* group) const {
    if (stalls.size() < kRhythmLeast) return;
    std::vector<int64_t> numbers;
    std::vector<int64_t> gaps;
    for (const size_t stall : stalls) {
      numbers.push_back(static_cast<int64_t>(steps_[stall].number));
      if (numbers.size() > 1) gaps.push_back(numbers.back() - numbers[numbers.size() - 2]);
    }
    const auto [least, most] = std::minmax_element(gaps.begin(), gaps.end());
    if (*most <= *least + 1) {
      const auto count = static_cast<int64_t>(gaps.size());
      group->every_steps = (numbers.back() - numbers.front() + count / 2) / count;
      group->in_rhythm = stalls.size();
      return;
    }
    const int64_t every = *MedianOf(gaps);
    uint64_t aligned = 0;
    for (const int64_t first : numbers) {
      const auto with_first = std::count_if(numbers.begin(), numbers.end(), [&](int64_t number) {
        const int64_t off = std::abs(number - first) % every;
        return std::min(off, every - off) <= 1;
      });
      aligned = std::max(aligned, static_cast<uint64_t>(with_first));
    }
    if (aligned < kPartRhythmLeast || aligned * kRhythmOf < stalls.size() * kRhythmParts) return;
    group->every_steps = every;
    group->in_rhythm = aligned;
  }

  void Measure(const std::vector<size_t>& stalls, StallGroup* group) const {
    group->taken_away = true;
    for (const size_t rank : group->ranks) {
      const JudgedRank& judged = judged_.ranks[rank];
      group->taken_away &= judged.samples.measured() && judged.sleep.has_value();
    }
    for (const size_t stall : stalls) group->taken_away &= steps_[stall].judged;
    const auto count = static_cast<int64_t>(stalls.size() * group->ranks.size());
    for (const size_t stall : stalls) {
      const JobStep& step = steps_[stall];
      for (const size_t rank : group->ranks) {
        const PartTable& parts = step.PartsOf(judged_.ranks[rank], group->taken_away);
        const PartTable& usual = (group->taken_away ? usual_cut_ : usual_uncut_)[rank];
        for (size_t part = 0; part < kParts; ++part) {
          group->longer[part] += parts[part] - usual[part];
        }
        group->longer_ns += LongerNs(rank, step);
      }
      for (size_t rank = 0; rank < judged_.ranks.size(); ++rank) {
        if (std::binary_search(group->ranks.begin(), group->ranks.end(), rank)) continue;
        group->others_most_ns = std::max(group->others_most_ns, LongerNs(rank, step));
      }
    }
    group->longer_ns /= count;
    for (int64_t& ns : group->longer) ns /= count;
    SetProcessor(stalls, group);
    SetStood(stalls, group);
  }

  // What the drivers' processor times grew by in the stalls.
  void SetProcessor(const std::vector<size_t>& stalls, StallGroup* group) const {
    int64_t on_cpu_ns = 0;
    int64_t run_queue_ns = 0;
    int64_t length_ns = 0;
    int64_t count = 0;  // those that lie between two samples
    for (const size_t rank : group->ranks) {
      const JudgedRank& judged = judged_.ranks[rank];
      if (!judged.samples.measured()) return;
      const std::vector<Reading>& readings = judged.samples.driver;
      for (const size_t stall : stalls) {
        const OwnInterval& step = steps_[stall].Of(judged);
        if (step.begin_ns < readings.front().at_ns) continue;
        if (step.end_ns > readings.back().at_ns) continue;
        ++count;
        const auto grew_ns = [&](int64_t Reading::*field) {
          return ValueAt(readings, field, step.end_ns) - ValueAt(readings, field, step.begin_ns);
        };
        on_cpu_ns += grew_ns(&Reading::on_cpu_ns);
        run_queue_ns += grew_ns(&Reading::run_queue_ns);
        length_ns += step.length_ns();
      }
    }
    if (count == 0 || length_ns / count < kSamplesWanted * 2 * kMarginNs) return;
    group->on_cpu_ns = on_cpu_ns / count;
    group->run_queue_ns = run_queue_ns / count;
  }

  void SetStood(const std::vector<size_t>& stalls, StallGroup* group) const {
    std::vector<PlacesDuring> ranks;
    for (const size_t rank : group->ranks) {
      const JudgedRank& judged = judged_.ranks[rank];
      PlacesDuring& places = ranks.emplace_back(PlacesDuring{judged.input, judged.driver_tid});
      for (size_t i = 0; i < steps_.size(); ++i) {
        const bool in_group = std::binary_search(stalls.begin(), stalls.end(), i);
        const bool usual = !std::binary_search(stalls_.begin(), stalls_.end(), i);
        if (in_group) places.during.push_back(steps_[i].Of(judged));
        if (usual) places.beside.push_back(steps_[i].Of(judged));
      }
    }
    group->stood = StoodDuring(ranks, input_.names);
  }

  const JobInput& input_;
  const Judged& judged_;
  const std::vector<JobStep> steps_;
  std::vector<size_t> stalls_;  // indexes into `steps_`
  std::vector<int64_t> usual_own_ns_;
  std::vector<PartTable> usual_cut_;
  std::vector<PartTable> usual_uncut_;
};

}  // namespace

bool IsLarge(const Stalls& stalls, const StallGroup& group) {
  constexpr int64_t kDivisor = 20;
  return group.total_longer_ns * kDivisor >= stalls.total_ns;
}

std::optional<Stalls> StallsOf(const JobInput& input, const Judged& judged) {
  if (!judged.collective_job || judged.steps() == 0) return std::nullopt;
  return StallFinder(input, judged).Find();
}

}  // namespace syncline::analysis::why
