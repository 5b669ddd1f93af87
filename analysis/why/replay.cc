// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/replay.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/why/path.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kRootedDivisor = 50;  // of one in so many it may not be known who waits for whom

// Collectives of a rank that none of its waits shows.
struct Hidden {
  using ByTime = std::vector<std::pair<int64_t, uint32_t>>;  // and index into its collectives
  ByTime over;
  ByTime needed;  // its next wait ended, or the optimizer began
};

Hidden HiddenOf(const JudgedRank& rank) {
  std::set<uint32_t> awaited;
  for (const Wait& wait : rank.waits) awaited.insert(wait.awaited);
  Hidden hidden;
  const std::vector<CollectiveEntry>& entries = rank.input->collectives;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].left_ns.has_value() || awaited.contains(i)) continue;
    const int64_t left_ns = *entries[i].left_ns;
    hidden.over.emplace_back(left_ns, i);
    int64_t needed_ns = INT64_MAX;
    const auto wait = std::lower_bound(
        rank.waits.begin(), rank.waits.end(), left_ns,
        [](const Wait& one, int64_t at_ns) { return one.interval.end_ns < at_ns; });
    if (wait != rank.waits.end()) needed_ns = wait->interval.end_ns;
    const auto optimizer =
        std::lower_bound(rank.optimizer_ns.begin(), rank.optimizer_ns.end(), left_ns);
    if (optimizer != rank.optimizer_ns.end()) needed_ns = std::min(needed_ns, *optimizer);
    hidden.needed.emplace_back(needed_ns, i);
  }
  std::sort(hidden.over.begin(), hidden.over.end());
  std::sort(hidden.needed.begin(), hidden.needed.end());
  return hidden;
}

}  // namespace

// One way through all acts.
class Replay::Run {
 public:
  Run(const Replay& replay, const Less* less, Joins joins)
      : replay_(replay), less_(less), joins_(joins) {
    for (const Circle& circle : replay.circles_.all()) circles_.push_back({circle.awaited.size()});
    for (const Rank& rank : replay.ranks_) {
      State& state = ranks_.emplace_back();
      state.now_ns = rank.begin_ns;
      state.ends_ns.resize(rank.parts.size());
      state.begins_ns.resize(rank.parts.size());
      state.steps.resize(replay.judged_->steps());
    }
  }

  // Sums over ranks of the judged steps' lengths; empty: a rank waits for ever.
  std::vector<int64_t> Steps() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Rank& of_rank = replay_.ranks_[rank];
      for (uint32_t i = 0; i < of_rank.parts.size(); ++i) {
        if (of_rank.parts[i].entered_ns < of_rank.begin_ns) {
          Launch({rank, i}, of_rank.parts[i].entered_ns);
        }
      }
    }
    for (size_t rank = 0; rank < ranks_.size(); ++rank) Advance(rank);
    while (!ready_.empty()) {
      const size_t rank = ready_.back();
      ready_.pop_back();
      Advance(rank);
    }
    std::vector<int64_t> sums(replay_.judged_->steps());
    for (const State& state : ranks_) {
      for (size_t step = 0; step < sums.size(); ++step) {
        if (!state.steps[step].ended) return {};
        sums[step] += state.steps[step].end_ns - state.steps[step].begin_ns;
      }
    }
    return sums;
  }

 private:
  struct StepTime {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    bool begun = false;
    bool ended = false;
  };
  struct State {
    int64_t now_ns = 0;
    size_t next = 0;                                // act
    std::vector<std::optional<int64_t>> begins_ns;  // of collectives, by their thread
    std::vector<std::optional<int64_t>> ends_ns;
    std::optional<uint32_t> waits_for;  // collective
    std::vector<StepTime> steps;
  };
  struct CircleState {
    size_t missing = 0;  // of the awaited, those that have not begun
    int64_t last_ns = INT64_MIN;
  };

  void Advance(size_t rank) {
    const Rank& of_rank = replay_.ranks_[rank];
    State& state = ranks_[rank];
    state.waits_for.reset();
    for (; state.next < of_rank.acts.size(); ++state.next) {
      const Act& act = of_rank.acts[state.next];
      Mark(act, &state, false);
      if (act.kind == Act::Kind::kWork) {
        state.now_ns += WorkNs(rank, act);
      } else if (act.kind == Act::Kind::kLaunch) {
        Launch({rank, act.index}, state.now_ns);
      } else if (const bool waits = act.kind == Act::Kind::kWait; waits || Joined(act)) {
        const uint32_t awaited =
            waits ? replay_.judged_->ranks[rank].waits[act.index].awaited : act.index;
        if (!state.ends_ns[awaited].has_value()) {
          state.waits_for = awaited;
          return;
        }
        const int64_t lag_ns = waits ? of_rank.lags_ns[act.index] : 0;
        state.now_ns = std::max(state.now_ns, *state.ends_ns[awaited] + lag_ns);
      }
      Mark(act, &state, true);
    }
  }

  bool Joined(const Act& act) const {
    return act.kind == Act::Kind::kJoin ? joins_ == Joins::kEarly : joins_ == Joins::kLate;
  }

  static void Mark(const Act& act, State* state, bool done) {
    if (act.step < 0) return;
    StepTime& step = state->steps[static_cast<size_t>(act.step)];
    if (!step.begun) step.begin_ns = state->now_ns;
    step.begun = true;
    if (!done) return;
    step.end_ns = state->now_ns;
    step.ended = true;
  }

  int64_t WorkNs(size_t rank, const Act& act) const {
    const JudgedRank& judged = replay_.judged_->ranks[rank];
    const Stretch& stretch = judged.stretches[act.index];
    const int64_t length_ns = stretch.end_ns - stretch.begin_ns;
    if (less_ == nullptr || less_->rank != rank || stretch.step < 0) return length_ns;
    const auto step = static_cast<size_t>(stretch.step);
    int64_t taken_ns = 0;
    for (size_t part = 0; part < kParts; ++part) {
      const int64_t all_ns = judged.tables[step][part];
      const int64_t less_ns = std::min(less_->of_steps[step][part], all_ns);
      if (less_ns <= 0) continue;
      taken_ns += static_cast<int64_t>(static_cast<double>(stretch.parts[part]) *
                                       static_cast<double>(less_ns) / static_cast<double>(all_ns));
    }
    return length_ns - std::min(taken_ns, length_ns);
  }

  void Launch(const Member& member, int64_t at_ns) {
    State& state = ranks_[member.rank];
    state.begins_ns[member.entry] = at_ns;  // until the thread's turn is known
    launched_.push_back(member);
    while (!launched_.empty()) {
      const Member next = launched_.back();
      launched_.pop_back();
      Begin(next);
    }
  }

  // If the thread's turn has come: the collective that it carried out before has ended, or is not
  // known to have been launched.
  void Begin(const Member& member) {
    const Part& part = replay_.ranks_[member.rank].parts[member.entry];
    State& state = ranks_[member.rank];
    int64_t begin_ns = *state.begins_ns[member.entry];
    if (part.before.has_value()) {
      const std::optional<int64_t>& before_ns = state.ends_ns[*part.before];
      if (!before_ns.has_value()) {
        behind_[{member.rank, *part.before}] = member;
        return;
      }
      begin_ns = std::max(begin_ns, *before_ns);
    }
    begin_ns += part.delay_ns;
    if (replay_.circles_.Of(member) == Circles::kNone) End(member, begin_ns + part.lasts_ns);
    for (const uint32_t at : replay_.awaited_in_[member.rank][member.entry]) {
      CircleState& circle = circles_[at];
      circle.last_ns = std::max(circle.last_ns, begin_ns);
      if (--circle.missing > 0) continue;
      for (const Member& one : replay_.circles_.all()[at].waiting) {
        End(one, circle.last_ns + replay_.ranks_[one.rank].parts[one.entry].lasts_ns);
      }
    }
  }

  void End(const Member& member, int64_t at_ns) {
    State& state = ranks_[member.rank];
    state.ends_ns[member.entry] = at_ns;
    if (state.waits_for == member.entry) ready_.push_back(member.rank);
    const auto behind = behind_.find({member.rank, member.entry});
    if (behind == behind_.end()) return;
    launched_.push_back(behind->second);
    behind_.erase(behind);
  }

  const Replay& replay_;
  const Less* less_;
  const Joins joins_;
  std::vector<State> ranks_;
  std::vector<CircleState> circles_;
  std::vector<size_t> ready_;
  std::vector<Member> launched_;
  // Collectives that wait for their thread, by what it carries out before.
  std::map<std::pair<size_t, uint32_t>, Member> behind_;
};

void Replay::AddRank(const JobInput& input, const Judged& judged, size_t rank) {
  const std::vector<CollectiveEntry>& entries = input.ranks[rank].collectives;
  const JudgedRank& of_rank = judged.ranks[rank];
  std::vector<Act>& acts = ranks_[rank].acts;
  size_t launched = 0;
  size_t waited = 0;
  const auto launch_until = [&](int64_t at_ns) {
    for (; launched < entries.size() && entries[launched].entered_ns <= at_ns; ++launched) {
      if (entries[launched].entered_ns >= of_rank.stretches.front().begin_ns) {
        acts.push_back({Act::Kind::kLaunch, static_cast<uint32_t>(launched), -1});
      }
    }
  };
  const Hidden hidden = HiddenOf(of_rank);
  auto early = hidden.over.begin();
  auto late = hidden.needed.begin();
  int32_t step = -1;
  for (size_t i = 0; i < of_rank.stretches.size(); ++i) {
    const Stretch& stretch = of_rank.stretches[i];
    while (waited < of_rank.waits.size() &&
           of_rank.waits[waited].interval.end_ns <= stretch.begin_ns) {
      ++waited;
    }
    launch_until(stretch.begin_ns);
    for (; early != hidden.over.end() && early->first <= stretch.begin_ns; ++early) {
      acts.push_back({Act::Kind::kJoin, early->second, step});
    }
    for (; late != hidden.needed.end() && late->first <= stretch.begin_ns; ++late) {
      acts.push_back({Act::Kind::kLateJoin, late->second, step});
    }
    step = stretch.step;
    const bool waits = waited < of_rank.waits.size() &&
                       of_rank.waits[waited].interval.begin_ns <= stretch.begin_ns;
    if (!waits) {
      acts.push_back({Act::Kind::kWork, static_cast<uint32_t>(i), stretch.step});
    } else if (stretch.end_ns >= of_rank.waits[waited].interval.end_ns) {
      acts.push_back({Act::Kind::kWait, static_cast<uint32_t>(waited), stretch.step});
    }
  }
}

void Replay::SetLengths(const JobInput& input, const std::vector<RankClock>& clocks,
                        const std::vector<std::vector<Carried>>& carried) {
  const std::vector<Circle>& circles = circles_.all();
  std::vector<int64_t> last_ns(circles.size(), INT64_MIN);
  const auto begun_ns = [&](const Member& one) {
    return clocks[one.rank].TimelineNs(carried[one.rank][one.entry].begun_ns);
  };
  for (uint32_t i = 0; i < circles.size(); ++i) {
    for (const Member& one : circles[i].awaited) {
      awaited_in_[one.rank][one.entry].push_back(i);
      last_ns[i] = std::max(last_ns[i], begun_ns(one));
    }
  }
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::vector<CollectiveEntry>& entries = input.ranks[rank].collectives;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      Part& part = ranks_[rank].parts[i];
      const int64_t begin_ns = begun_ns({rank, i});
      int64_t free_ns = part.entered_ns = clocks[rank].TimelineNs(entries[i].entered_ns);
      part.before = carried[rank][i].before;
      if (part.before.has_value()) {
        free_ns = std::max(free_ns, clocks[rank].TimelineNs(*entries[*part.before].left_ns));
      }
      part.delay_ns = begin_ns - free_ns;
      const uint32_t circle = circles_.Of({rank, i});
      const int64_t since_ns = circle == Circles::kNone ? begin_ns : last_ns[circle];
      part.lasts_ns = entries[i].left_ns.has_value()
                          ? clocks[rank].TimelineNs(*entries[i].left_ns) - since_ns
                          : 0;
    }
  }
}

Replay::Replay(const JobInput& input, const Judged& judged) : judged_(&judged), circles_(input) {
  std::vector<RankClock> clocks;
  std::vector<std::vector<Carried>> carried;
  for (const RankInput& rank : input.ranks) {
    clocks.emplace_back(rank);
    carried.push_back(CarriedOf(rank, judged.names));
  }
  ranks_.resize(input.ranks.size());
  awaited_in_.resize(input.ranks.size());
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::vector<CollectiveEntry>& entries = input.ranks[rank].collectives;
    ranks_[rank].parts.resize(entries.size());
    awaited_in_[rank].resize(entries.size());
    ranks_[rank].begin_ns = clocks[rank].TimelineNs(judged.ranks[rank].stretches.front().begin_ns);
    for (const Wait& wait : judged.ranks[rank].waits) {
      ranks_[rank].lags_ns.push_back(clocks[rank].TimelineNs(wait.interval.end_ns) -
                                     clocks[rank].TimelineNs(*entries[wait.awaited].left_ns));
    }
    AddRank(input, judged, rank);
  }
  SetLengths(input, clocks, carried);
}

std::optional<Replay> Replay::Of(const JobInput& input, const Judged& judged) {
  if (!judged.collective_job || judged.steps() == 0) return std::nullopt;
  if (!PathUnknown(input, judged).empty() || AreAmbiguous(judged)) return std::nullopt;
  // When a transfer was over that its rank did not wait for yet is not known.
  if (judged.transfers) return std::nullopt;
  const EntryCounts counts = CountEntries(input, judged);
  if (counts.rooted * kRootedDivisor > counts.all) return std::nullopt;
  Replay replay(input, judged);
  for (const Joins joins : {Joins::kEarly, Joins::kLate, Joins::kNone}) {
    std::vector<int64_t>& steps_ns = replay.steps_ns_[static_cast<size_t>(joins)];
    steps_ns = replay.StepsWith(nullptr, joins);
    if (steps_ns.empty()) return std::nullopt;
  }
  int64_t difference_ns = 0;
  for (size_t step = 0; step < judged.steps(); ++step) {
    difference_ns += replay.steps_ns_[static_cast<size_t>(Joins::kLate)][step];
    for (const JudgedRank& rank : judged.ranks) difference_ns -= rank.steps[step].length_ns();
  }
  replay.error_ns_ = difference_ns / static_cast<int64_t>(judged.steps() * judged.ranks.size());
  return replay;
}

std::vector<int64_t> Replay::StepsWith(const Less* less, Joins joins) const {
  return Run(*this, less, joins).Steps();
}

// Whether a rank comes to its last step depends on the order of acts alone, which is the same.
Replay::Saved Replay::SavedBy(const Less& less) const {
  const auto saved_with = [&](Joins joins) {
    std::vector<int64_t> saved = StepsWith(&less, joins);
    const std::vector<int64_t>& before = steps_ns_[static_cast<size_t>(joins)];
    for (size_t step = 0; step < saved.size(); ++step) {
      saved[step] = (before[step] - saved[step]) / static_cast<int64_t>(ranks_.size());
    }
    return saved;
  };
  return {saved_with(Joins::kEarly), saved_with(Joins::kLate), saved_with(Joins::kNone)};
}

}  // namespace syncline::analysis::why
