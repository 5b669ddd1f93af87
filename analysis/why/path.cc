// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/path.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

using Key = std::pair<uint32_t, uint64_t>;  // of a collective: its group and number

// How a rank carried one of its collectives out.
struct Carried {
  int64_t begun_ns = 0;  // by Gloo's thread; not recorded: when it was entered
  // What that thread did before, if it ended when this one had been entered: index into the rank's
  // collectives.
  std::optional<uint32_t> before;
};

std::vector<Carried> CarriedOf(const RankInput& rank, const TaskNames& names) {
  std::vector<Carried> carried;
  std::map<int64_t, uint32_t> by_left;
  for (const CollectiveEntry& entry : rank.collectives) {
    if (entry.left_ns.has_value()) {
      by_left.emplace(*entry.left_ns, static_cast<uint32_t>(carried.size()));
    }
    carried.push_back({entry.entered_ns, std::nullopt});
  }
  for (const ThreadInput& thread : rank.threads) {
    std::optional<uint32_t> before;
    for (const TaskSpan& span : thread.spans) {
      if (!names.Is(span.name, Role::kTransfer)) continue;
      const auto found = by_left.find(span.end_ns);
      if (found == by_left.end() || rank.collectives[found->second].entered_ns > span.begin_ns) {
        before.reset();
        continue;
      }
      Carried& one = carried[found->second];
      one.begun_ns = span.begin_ns;
      const int64_t entered_ns = rank.collectives[found->second].entered_ns;
      if (before.has_value() && *rank.collectives[*before].left_ns > entered_ns) {
        one.before = before;
      }
      before = found->second;
    }
  }
  return carried;
}

// A rank's clock beside the timeline's, by its collectives' entries.
class RankClock {
 public:
  explicit RankClock(const RankInput& rank) : entries_(rank.collectives) {}

  int64_t TimelineNs(int64_t own_ns) const {
    const auto next = std::upper_bound(
        entries_.begin(), entries_.end(), own_ns,
        [](int64_t at_ns, const CollectiveEntry& entry) { return at_ns < entry.entered_ns; });
    if (next == entries_.begin()) return own_ns + ShiftOf(entries_.front());
    const CollectiveEntry& last = *(next - 1);
    if (next == entries_.end()) return own_ns + ShiftOf(last);
    const double part = static_cast<double>(own_ns - last.entered_ns) /
                        static_cast<double>(next->entered_ns - last.entered_ns);
    const auto grown_ns = static_cast<double>(ShiftOf(*next) - ShiftOf(last));
    return own_ns + ShiftOf(last) + static_cast<int64_t>(part * grown_ns);
  }

 private:
  static int64_t ShiftOf(const CollectiveEntry& entry) {
    return *entry.timeline_ns - entry.entered_ns;
  }

  std::span<const CollectiveEntry> entries_;
};

struct Place {
  size_t rank = 0;
  int64_t at_ns = 0;  // in the rank's clock
};

class Walk {
 public:
  Walk(const JobInput& input, const Judged& judged) : input_(input), judged_(judged) {
    for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
      const RankInput& of_rank = input.ranks[rank];
      clocks_.emplace_back(of_rank);
      carried_.push_back(CarriedOf(of_rank, judged.names));
      for (uint32_t i = 0; i < of_rank.collectives.size(); ++i) {
        const CollectiveEntry& entry = of_rank.collectives[i];
        members_[{entry.group, entry.number}].emplace_back(rank, i);
      }
    }
    for (const Arrival& arrival : input.arrivals) {
      if (!arrival.everybody_waits) members_.erase({arrival.group, arrival.number});
      known_.push_back({arrival.group, arrival.number});
    }
    std::sort(known_.begin(), known_.end());
  }

  CriticalPath Run() {
    Place at;
    for (size_t rank = 0; rank < judged_.ranks.size(); ++rank) {
      const Place end{rank, judged_.ranks[rank].steps.back().end_ns};
      if (rank == 0 || TimelineNs(end) > TimelineNs(at)) at = end;
    }
    while (at.at_ns > FirstNs(at.rank)) at = Back(at);
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

  // Who began the collective last. nullopt: nobody knows, or not everybody waits for that rank.
  std::optional<Last> LastOf(const Key& key) const {
    if (!std::binary_search(known_.begin(), known_.end(), key)) return std::nullopt;
    const auto members = members_.find(key);
    if (members == members_.end()) return std::nullopt;
    std::optional<Last> last;
    int64_t last_ns = 0;
    int64_t second_ns = INT64_MIN;
    for (const auto& [rank, entry] : members->second) {
      const Place begun{rank, carried_[rank][entry].begun_ns};
      const int64_t at_ns = TimelineNs(begun);
      if (last.has_value() && at_ns <= last_ns) {
        second_ns = std::max(second_ns, at_ns);
        continue;
      }
      if (last.has_value()) second_ns = last_ns;
      last = {begun, entry, false};
      last_ns = at_ns;
    }
    if (last.has_value() && input_.clock_bound_ns.has_value()) {
      last->proven = last_ns - second_ns > *input_.clock_bound_ns;
    }
    return last;
  }

  // Through the collective that the rank waited for, and those that kept it from beginning.
  Place Through(uint32_t awaited, Place released) {
    for (;;) {
      const CollectiveEntry& entry = input_.ranks[released.rank].collectives[awaited];
      const std::optional<Last> last = LastOf({entry.group, entry.number});
      Place begin{released.rank, std::min(entry.entered_ns, released.at_ns)};
      std::optional<uint32_t> before;
      bool followed = last.has_value();
      if (followed) {
        const size_t rank = last->begun.rank;
        before = carried_[rank][last->entry].before;
        const std::vector<CollectiveEntry>& of_rank = input_.ranks[rank].collectives;
        const Place from{
            rank, before.has_value() ? *of_rank[*before].left_ns : of_rank[last->entry].entered_ns};
        // Whoever contradicts that time goes on is not followed.
        followed = TimelineNs(from) < TimelineNs(released);
        if (followed) begin = from;
        if (followed && rank != released.rank) {
          ++path_.crossings;
          path_.proven += last->proven ? 1 : 0;
        }
      }
      AddCollective(entry, begin, released, followed);
      if (!followed || !before.has_value()) return begin;
      awaited = *before;
      released = begin;
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
  // Of collectives in which everybody waits: ranks, and indices into their collectives.
  std::map<Key, std::vector<std::pair<size_t, uint32_t>>> members_;
  std::vector<Key> known_;  // that all ranks' entries were recorded of; sorted
  CriticalPath path_;
};

// By judged step.
using Series = std::vector<int64_t>;

void Summarize(const Judged& judged, CriticalPath* path) {
  const size_t steps = judged.steps();
  const size_t ranks = judged.ranks.size();
  Series all(steps);
  Series collectives(steps);
  Series uneven(steps);
  std::vector<Series> own(ranks, Series(steps));
  std::map<std::string, int64_t> kinds;
  path->parts.resize(ranks);
  for (const PathPiece& piece : path->pieces) {
    if (piece.step < 0) continue;
    const auto step = static_cast<size_t>(piece.step);
    all[step] += piece.length_ns;
    if (piece.kind == PathPiece::Kind::kOwnWork) {
      own[piece.rank][step] += piece.length_ns;
      uneven[step] += piece.length_ns - piece.parts[static_cast<size_t>(Part::kNotCovered)];
      for (size_t part = 0; part < kParts; ++part)
        path->parts[piece.rank][part] += piece.parts[part];
      continue;
    }
    collectives[step] += piece.length_ns;
    kinds[piece.name] += piece.length_ns;
    if (piece.kind == PathPiece::Kind::kNotFollowed) path->not_followed_ns += piece.length_ns;
  }
  for (size_t step = 0; step < steps; ++step) {
    int64_t work_ns = 0;
    for (const JudgedRank& rank : judged.ranks) work_ns += rank.OwnWork(step);
    uneven[step] -= work_ns / static_cast<int64_t>(ranks);
  }
  const auto count = static_cast<int64_t>(steps);
  const size_t block = BlockOf(steps);
  path->step = Bootstrap(all, block);
  path->collectives = Bootstrap(collectives, block);
  path->uneven = Bootstrap(uneven, block);
  for (size_t rank = 0; rank < ranks; ++rank) {
    path->ranks.push_back(Bootstrap(own[rank], block));
    for (int64_t& part_ns : path->parts[rank]) part_ns /= count;
  }
  for (const auto& [name, ns] : kinds) path->kinds.emplace_back(name, ns / count);
  std::stable_sort(path->kinds.begin(), path->kinds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  path->not_followed_ns /= count;
}

}  // namespace

std::optional<CriticalPath> PathOf(const JobInput& input, const Judged& judged) {
  if (!judged.collective_job || judged.steps() == 0 || input.arrivals.empty()) return std::nullopt;
  for (const RankInput& rank : input.ranks) {
    if (rank.collectives.empty()) return std::nullopt;
    for (const CollectiveEntry& entry : rank.collectives) {
      if (!entry.timeline_ns.has_value()) return std::nullopt;
    }
  }
  CriticalPath path = Walk(input, judged).Run();
  Summarize(judged, &path);
  return path;
}

}  // namespace syncline::analysis::why
