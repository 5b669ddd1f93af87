// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/path.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/why/carried.h"
#include "analysis/why/small_collectives.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

struct Place {
  size_t rank = 0;
  int64_t at_ns = 0;  // in the rank's clock
};

class Walk {
 public:
  Walk(const JobInput& input, const Judged& judged)
      : input_(input), judged_(judged), circles_(input) {
    for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
      clocks_.emplace_back(input.ranks[rank]);
      carried_.push_back(CarriedOf(input.ranks[rank], judged.names));
    }
  }

  CriticalPath Run() {
    Place at;
    for (size_t rank = 0; rank < judged_.ranks.size(); ++rank) {
      const Place end{rank, judged_.ranks[rank].steps.back().end_ns};
      if (rank == 0 || TimelineNs(end) > TimelineNs(at)) at = end;
    }
    while (at.at_ns > FirstNs(at.rank)) {
      const Place next = Back(at);
      if (TimelineNs(next) >= TimelineNs(at)) break;  // the ranks' clocks contradict themselves
      at = next;
    }
    std::reverse(path_.pieces.begin(), path_.pieces.end());
    return std::move(path_);
  }

 private:
  struct Last {
    Place begun;
    uint32_t entry = 0;
    bool proven = false;
  };

  int64_t TimelineNs(const Place& place) const {
    return clocks_[place.rank].TimelineNs(place.at_ns);
  }
  int64_t FirstNs(size_t rank) const { return judged_.ranks[rank].steps.front().begin_ns; }

  // To the wait before the place, and through it.
  Place Back(const Place& at) {
    const std::vector<Wait>& waits = judged_.ranks[at.rank].waits;
    const auto next = std::lower_bound(
        waits.begin(), waits.end(), at.at_ns,
        [](const Wait& one, int64_t at_ns) { return one.interval.begin_ns < at_ns; });
    const Wait* const wait = next == waits.begin() ? nullptr : &*(next - 1);
    const int64_t first_ns = FirstNs(at.rank);
    const int64_t released_ns =
        wait == nullptr ? first_ns : std::min(wait->interval.end_ns, at.at_ns);
    AddOwnWork(at, std::max(released_ns, first_ns));
    if (released_ns <= first_ns) return {at.rank, first_ns};
    const CollectiveEntry& awaited = input_.ranks[at.rank].collectives[wait->awaited];
    if (awaited.transfer) {
      const Place begun{at.rank, std::max(wait->interval.begin_ns, first_ns)};
      const std::optional<Last> last = LastOf({at.rank, wait->awaited});
      // It was under way, or over, when the rank began to wait for it.
      if (!last.has_value() || TimelineNs(last->begun) <= TimelineNs(begun)) {
        AddCollective(awaited, begun, {at.rank, released_ns}, last.has_value());
        return begun;
      }
    }
    return Through(wait->awaited, {at.rank, released_ns});
  }

  void AddOwnWork(const Place& until, int64_t since_ns) {
    const std::vector<Stretch>& stretches = judged_.ranks[until.rank].stretches;
    auto at =
        std::lower_bound(stretches.begin(), stretches.end(), until.at_ns,
                         [](const Stretch& one, int64_t at_ns) { return one.begin_ns < at_ns; });
    bool begun = false;
    while (at != stretches.begin() && (at - 1)->begin_ns >= since_ns) {
      --at;
      if (!begun || path_.pieces.back().step != at->step) {
        PathPiece piece;
        piece.rank = piece.begin_rank = until.rank;
        piece.end_ns = at->end_ns;
        piece.step = at->step;
        path_.pieces.push_back(std::move(piece));
        begun = true;
      }
      PathPiece& piece = path_.pieces.back();
      piece.begin_ns = at->begin_ns;
      piece.length_ns = piece.end_ns - piece.begin_ns;
      for (size_t part = 0; part < kParts; ++part) piece.parts[part] += at->parts[part];
    }
  }

  // Of those whom the rank waits for in the collective, who began it last; nullopt: nobody knows.
  std::optional<Last> LastOf(const Member& waiting) const {
    const uint32_t circle = circles_.Of(waiting);
    if (circle == Circles::kNone) return std::nullopt;
    std::optional<Last> last;
    bool recorded = true;
    int64_t last_ns = 0;
    int64_t second_ns = INT64_MIN;
    for (const auto& [rank, entry] : circles_.all()[circle].awaited) {
      const Place begun{rank, carried_[rank][entry].begun_ns};
      recorded = recorded && carried_[rank][entry].recorded;
      const int64_t at_ns = TimelineNs(begun);
      if (last.has_value() && at_ns <= last_ns) {
        second_ns = std::max(second_ns, at_ns);
        continue;
      }
      if (last.has_value()) second_ns = last_ns;
      last = {begun, entry, false};
      last_ns = at_ns;
    }
    if (last.has_value() && recorded && input_.clock_bound_ns.has_value()) {
      // The bound is of each rank and one that entered last; of two others it may be twice that.
      last->proven = last_ns - second_ns > 2 * *input_.clock_bound_ns;
    }
    return last;
  }

  // What kept a rank from beginning a collective earlier: its own work before it launched it, or
  // the collective that its thread carried out before.
  struct Origin {
    Place at;
    bool busy = false;
    uint32_t before = 0;  // if it was busy: index into the rank's collectives
  };
  Origin OriginOf(const Last& last) const {
    const std::vector<CollectiveEntry>& entries = input_.ranks[last.begun.rank].collectives;
    const int64_t entered_ns = entries[last.entry].entered_ns;
    const std::optional<uint32_t>& before = carried_[last.begun.rank][last.entry].before;
    if (before.has_value() && *entries[*before].left_ns > entered_ns) {
      return {{last.begun.rank, *entries[*before].left_ns}, true, *before};
    }
    return {{last.begun.rank, entered_ns}};
  }

  // Of all that the rank waited for in the collective: who entered it last waits for nobody.
  int64_t OwnLengthNs(const Member& waiting) const {
    int64_t least_ns = -1;
    for (const auto& [rank, entry] : circles_.all()[circles_.Of(waiting)].awaited) {
      const std::vector<CollectiveEntry>& entries = input_.ranks[rank].collectives;
      if (!entries[entry].left_ns.has_value()) continue;
      const int64_t length_ns = *entries[entry].left_ns - OriginOf({{rank}, entry}).at.at_ns;
      if (length_ns >= 0 && (least_ns < 0 || length_ns < least_ns)) least_ns = length_ns;
    }
    return least_ns;
  }

  // Through the collective that the rank waited for, and those that kept it from beginning.
  Place Through(uint32_t awaited, Place released) {
    for (;;) {
      const CollectiveEntry& entry = input_.ranks[released.rank].collectives[awaited];
      const std::optional<Last> last = LastOf({released.rank, awaited});
      const Origin origin = last.has_value() ? OriginOf(*last) : Origin{};
      // Whoever contradicts that time goes on is not followed.
      if (!last.has_value() || TimelineNs(origin.at) >= TimelineNs(released)) {
        const Place own{released.rank, std::min(entry.entered_ns, released.at_ns)};
        AddCollective(entry, own, released, false);
        return own;
      }
      if (origin.at.rank != released.rank) {
        ++path_.crossings;
        path_.proven += last->proven ? 1 : 0;
      }
      AddCollective(entry, origin.at, released, true);
      path_.pieces.back().own_length_ns = OwnLengthNs({released.rank, awaited});
      if (!origin.busy) return origin.at;
      awaited = origin.before;
      released = origin.at;
    }
  }

  void AddCollective(const CollectiveEntry& entry, const Place& begin, const Place& end,
                     bool followed) {
    PathPiece piece;
    piece.kind = followed ? PathPiece::Kind::kCollective : PathPiece::Kind::kNotFollowed;
    piece.rank = end.rank;
    piece.end_ns = end.at_ns;
    piece.begin_rank = begin.rank;
    piece.begin_ns = begin.at_ns;
    piece.length_ns =
        begin.rank == end.rank ? end.at_ns - begin.at_ns : TimelineNs(end) - TimelineNs(begin);
    piece.step = StepAt(end);
    piece.name = input_.names[entry.name];
    piece.group = entry.group;
    piece.bytes = entry.bytes;
    path_.pieces.push_back(std::move(piece));
  }

  // Of the instant before.
  int32_t StepAt(const Place& place) const {
    const std::vector<OwnInterval>& steps = judged_.ranks[place.rank].steps;
    const auto next = std::lower_bound(
        steps.begin(), steps.end(), place.at_ns,
        [](const OwnInterval& step, int64_t at_ns) { return step.begin_ns < at_ns; });
    if (next == steps.begin() || (next - 1)->end_ns < place.at_ns) return -1;
    return static_cast<int32_t>(next - 1 - steps.begin());
  }

  const JobInput& input_;
  const Judged& judged_;
  std::vector<RankClock> clocks_;
  std::vector<std::vector<Carried>> carried_;  // by rank, beside its collectives
  const Circles circles_;
  CriticalPath path_;
};

// By judged step.
using Series = std::vector<int64_t>;

constexpr int64_t kHiddenDivisor = 50;  // less of a step than this hardly matters
constexpr int64_t kBesideDivisor = 10;

// How much each rank had worked until an instant of the timeline.
class WorkUntil {
 public:
  WorkUntil(const JobInput& input, const Judged& judged) {
    for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
      const RankClock clock(input.ranks[rank]);
      const JudgedRank& of_rank = judged.ranks[rank];
      std::vector<Point>& points = ranks_.emplace_back();
      int64_t worked_ns = 0;
      auto wait = of_rank.waits.begin();
      for (const Stretch& one : of_rank.stretches) {
        while (wait != of_rank.waits.end() && wait->interval.end_ns <= one.begin_ns) ++wait;
        const bool waits = wait != of_rank.waits.end() && wait->interval.begin_ns <= one.begin_ns;
        if (waits) continue;
        points.push_back({clock.TimelineNs(one.begin_ns), worked_ns});
        worked_ns += one.end_ns - one.begin_ns - one.parts[static_cast<size_t>(Part::kNotCovered)];
        points.push_back({clock.TimelineNs(one.end_ns), worked_ns});
      }
    }
  }

  int64_t OfRank(size_t rank, int64_t begin_ns, int64_t end_ns) const {
    return At(ranks_[rank], end_ns) - At(ranks_[rank], begin_ns);
  }
  // Of all ranks.
  int64_t Between(int64_t begin_ns, int64_t end_ns) const {
    int64_t sum_ns = 0;
    for (const std::vector<Point>& points : ranks_)
      sum_ns += At(points, end_ns) - At(points, begin_ns);
    return sum_ns;
  }

 private:
  struct Point {
    int64_t at_ns = 0;
    int64_t worked_ns = 0;
  };

  static int64_t At(const std::vector<Point>& points, int64_t at_ns) {
    const auto next = std::upper_bound(points.begin(), points.end(), at_ns,
                                       [](int64_t at, const Point& one) { return at < one.at_ns; });
    if (next == points.begin()) return 0;
    const Point& last = *(next - 1);
    if (next == points.end()) return last.worked_ns;
    const double part =
        static_cast<double>(at_ns - last.at_ns) / static_cast<double>(next->at_ns - last.at_ns);
    return last.worked_ns +
           static_cast<int64_t>(part * static_cast<double>(next->worked_ns - last.worked_ns));
  }

  std::vector<std::vector<Point>> ranks_;
};

// What any rank waits in a step at least: without its waits a step is its own work. What is not
// known to be work may be a wait.
int64_t LeastWaitNs(const Judged& judged) {
  int64_t least_ns = INT64_MAX;
  for (const JudgedRank& rank : judged.ranks) {
    int64_t sum_ns = rank.pending_ns;
    for (size_t step = 0; step < rank.steps.size(); ++step) {
      sum_ns += rank.steps[step].length_ns() - rank.OwnWork(step);
    }
    least_ns = std::min(least_ns, sum_ns);
  }
  return least_ns / static_cast<int64_t>(judged.steps());
}

// Of a step, how much the rank that does so most works while a collective of its own is under way.
int64_t BesideNs(const JobInput& input, const Judged& judged, const WorkUntil& work) {
  int64_t most_ns = 0;
  for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
    const RankClock clock(input.ranks[rank]);
    const OwnInterval steps{judged.ranks[rank].steps.front().begin_ns,
                            judged.ranks[rank].steps.back().end_ns};
    int64_t sum_ns = 0;
    int64_t until_ns = steps.begin_ns;
    for (const CollectiveEntry& entry : input.ranks[rank].collectives) {
      const int64_t begin_ns = std::max(entry.entered_ns, until_ns);
      const int64_t end_ns = std::min(entry.left_ns.value_or(entry.entered_ns), steps.end_ns);
      if (end_ns <= begin_ns) continue;
      sum_ns += work.OfRank(rank, clock.TimelineNs(begin_ns), clock.TimelineNs(end_ns));
      until_ns = end_ns;
    }
    most_ns = std::max(most_ns, sum_ns);
  }
  return most_ns / static_cast<int64_t>(judged.steps());
}

// What of the own work on the path may be no work. If it is not known for which of two collectives
// ranks waited, the path may be another one: all of it.
int64_t UnsureNs(const Judged& judged, const CriticalPath& path) {
  if (AreAmbiguous(judged)) return path.step.est_ns;
  int64_t sum_ns = 0;
  for (const JudgedRank& rank : judged.ranks) sum_ns += rank.pending_ns;
  for (const PathPiece& piece : path.pieces) {
    if (piece.step >= 0) sum_ns += piece.parts[static_cast<size_t>(Part::kNotCovered)];
  }
  return sum_ns / static_cast<int64_t>(judged.steps());
}

void Summarize(const JobInput& input, const Judged& judged, CriticalPath* path) {
  const size_t steps = judged.steps();
  const size_t ranks = judged.ranks.size();
  const WorkUntil work(input, judged);
  Series all(steps);
  Series collectives(steps);
  Series uneven(steps);
  std::vector<Series> own(ranks, Series(steps));
  std::map<std::pair<std::string, bool>, int64_t> kinds;
  path->parts.resize(ranks);
  for (const PathPiece& piece : path->pieces) {
    if (piece.step < 0) continue;
    const auto step = static_cast<size_t>(piece.step);
    all[step] += piece.length_ns;
    if (piece.kind == PathPiece::Kind::kOwnWork) {
      own[piece.rank][step] += piece.length_ns;
      const RankClock clock(input.ranks[piece.rank]);
      uneven[step] +=
          piece.length_ns - piece.parts[static_cast<size_t>(Part::kNotCovered)] -
          work.Between(clock.TimelineNs(piece.begin_ns), clock.TimelineNs(piece.end_ns)) /
              static_cast<int64_t>(ranks);
      for (size_t part = 0; part < kParts; ++part) {
        path->parts[piece.rank][part] += piece.parts[part];
      }
      continue;
    }
    const bool followed = piece.kind == PathPiece::Kind::kCollective;
    collectives[step] += piece.length_ns;
    kinds[{piece.name, followed}] += piece.length_ns;
    if (!followed) path->not_followed_ns += piece.length_ns;
  }
  const auto count = static_cast<int64_t>(steps);
  const size_t block = BlockOf(steps);
  path->step = Bootstrap(all, block);
  path->collectives = Bootstrap(collectives, block);
  // Work that a collective hides is not waited for: how evenly it is spread does not matter. And
  // work is not spread over ranks that do not wait for each other.
  const EntryCounts counts = CountEntries(input, judged);
  const int64_t beside_ns = BesideNs(input, judged, work);
  if (beside_ns * kHiddenDivisor < path->step.est_ns && counts.rooted == 0 && counts.partial == 0 &&
      !judged.transfers) {
    path->uneven = Bootstrap(uneven, block);
  }
  path->least_wait_ns = LeastWaitNs(judged);
  path->unsure_ns = UnsureNs(judged, *path);
  for (size_t rank = 0; rank < ranks; ++rank) {
    path->ranks.push_back(Bootstrap(own[rank], block));
    for (int64_t& part_ns : path->parts[rank]) part_ns /= count;
  }
  for (const auto& [kind, ns] : kinds) path->kinds.push_back({kind.first, ns / count, kind.second});
  std::stable_sort(
      path->kinds.begin(), path->kinds.end(),
      [](const CriticalPath::Kind& a, const CriticalPath::Kind& b) { return a.ns > b.ns; });
  path->not_followed_ns /= count;
  // What own work hides is not saved.
  if (beside_ns * kBesideDivisor < path->step.est_ns) {
    path->small = SmallCollectivesOf(path->pieces, steps, path->step.est_ns,
                                     std::min(path->least_wait_ns, path->collectives.est_ns));
  }
}

// In more than one step of twenty a rank receives from a single one.
bool Receives(const Judged& judged) {
  for (const JudgedRank& rank : judged.ranks) {
    const auto driver =
        std::find_if(rank.input->threads.begin(), rank.input->threads.end(),
                     [&](const ThreadInput& thread) { return thread.tid == rank.driver_tid; });
    if (driver == rank.input->threads.end()) continue;
    const auto received = static_cast<size_t>(
        std::count_if(driver->spans.begin(), driver->spans.end(), [&](const TaskSpan& span) {
          return judged.names.Is(span.name, Role::kReceive) &&
                 span.begin_ns >= rank.steps.front().begin_ns &&
                 span.begin_ns < rank.steps.back().end_ns;
        }));
    if (received * 20 > judged.steps()) return true;
  }
  return false;
}

}  // namespace

EntryCounts CountEntries(const JobInput& input, const Judged& judged) {
  std::set<std::pair<uint32_t, uint64_t>> known;
  for (const Arrival& arrival : input.arrivals) known.emplace(arrival.group, arrival.number);
  const Circles circles(input);
  EntryCounts counts;
  for (size_t place = 0; place < judged.ranks.size(); ++place) {
    const JudgedRank& rank = judged.ranks[place];
    auto step = rank.steps.begin();
    for (uint32_t i = 0; i < rank.input->collectives.size(); ++i) {
      const CollectiveEntry& entry = rank.input->collectives[i];
      while (step != rank.steps.end() && step->end_ns <= entry.entered_ns) ++step;
      if (step == rank.steps.end()) break;
      if (entry.entered_ns < step->begin_ns) continue;
      ++counts.all;
      const uint32_t circle = circles.Of({place, i});
      // Nobody waits for a send that its rank does not wait for.
      const bool ends = entry.left_ns.has_value() || entry.transfer;
      if (!ends || !known.contains({entry.group, entry.number})) {
        ++counts.unknown;
      } else if (circle == Circles::kNone) {
        ++counts.rooted;
      } else if (circles.all()[circle].awaited.size() < judged.ranks.size()) {
        ++counts.partial;
      }
    }
  }
  return counts;
}

bool AreAmbiguous(const Judged& judged) {
  int64_t ambiguous_ns = 0;
  int64_t steps_ns = 0;
  for (const JudgedRank& rank : judged.ranks) {
    for (const Wait& wait : rank.waits) {
      if (wait.ambiguous) ambiguous_ns += wait.interval.length_ns();
    }
    for (const OwnInterval& step : rank.steps) steps_ns += step.length_ns();
  }
  return ambiguous_ns * kHiddenDivisor > steps_ns;
}

std::string PathUnknown(const JobInput& input, const Judged& judged) {
  if ((!judged.collective_job && !judged.transfers) || judged.steps() == 0) return "";
  if (input.waits_unknown) return "how long ranks waited for what others sent was not recorded";
  if (!judged.collective_job) return "which send belongs to which receive is not known";
  if (!input.clock_bounds_hold) return "what was recorded contradicts the clocks";
  if (input.arrivals.empty()) return "of no collective the entries of all its ranks were recorded";
  if (!ArePlaced(input)) return "how the clocks of its nodes relate is not known with a bound";
  const EntryCounts counts = CountEntries(input, judged);
  if (counts.unknown * kHiddenDivisor > counts.all) {
    return TransfersOf(input) > 0
               ? "of more than 2 % of the collectives, sends and receives an end, or another "
                 "rank's part, was not recorded, or which belong together is not known"
               : "of more than 2 % of the collectives an end, or the entry of a rank, was not "
                 "recorded";
  }
  if (Receives(judged)) {
    return "ranks also receive from single ranks (c10d::recv_), and whom they wait for there is "
           "not followed";
  }
  return "";
}

std::optional<CriticalPath> PathOf(const JobInput& input, const Judged& judged) {
  if (!judged.collective_job || judged.steps() == 0) return std::nullopt;
  CriticalPath path = Walk(input, judged).Run();
  Summarize(input, judged, &path);
  return path;
}

}  // namespace syncline::analysis::why
