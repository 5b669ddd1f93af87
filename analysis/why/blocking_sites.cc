// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/blocking_sites.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>

namespace syncline::analysis::why {
namespace {

constexpr int64_t kReleaseNs = 300'000;      // from a collective's leave to the driver's next task
constexpr int64_t kTogetherNs = 300'000;     // between entries that one call makes
constexpr int64_t kLateLeaveNs = 5'000'000;  // a scheduler's slice: Gloo's thread is told late
constexpr int64_t kShareMinPerMille = 5;     // of all time
constexpr int64_t kTightPercent = 30;
constexpr int64_t kWidePercent = 90;
constexpr int64_t kAlwaysPercent = 90;
constexpr size_t kAlwaysLeast = 8;     // silences
constexpr size_t kBehindPercent = 95;  // of the silences
constexpr int64_t kSteadyPercent = 70;
constexpr size_t kManyUnderWay = 4;

struct Weights {
  int64_t pending_ns = 0;  // silence with a collective pending
  int64_t tight_ns = 0;    // of it: ends soon after one leaves
  int64_t wide_ns = 0;     // of it: ends near a leave, on either side

  void Add(const Weights& other) {
    pending_ns += other.pending_ns;
    tight_ns += other.tight_ns;
    wide_ns += other.wide_ns;
  }
  bool Waits() const {
    return tight_ns * 100 >= pending_ns * kTightPercent ||
           wide_ns * 100 >= pending_ns * kWidePercent;
  }
};

// The distance of the 25th and the 75th percentile.
int64_t SpreadOf(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * 3 / 4] - values[(values.size() - 1) / 4];
}

// Of one rank, or of all.
struct AtSite {
  Weights weights;
  size_t silences = 0;
  // Of those in which a collective leaves: how long they last, and how long behind the last leave.
  std::vector<int64_t> lengths_ns;
  std::vector<int64_t> behind_ns;

  // `by_chance`: that it ends as a collective does weighs nothing.
  void Add(const Silence& silence, std::span<const CollectiveEntry> collectives, bool by_chance) {
    ++silences;
    int64_t behind = INT64_MAX;  // the last leave before the silence's end: how long
    int64_t before = INT64_MAX;  // the first one after it, likewise
    for (const uint32_t index : silence.pending) {
      const int64_t after_ns = silence.end_ns - *collectives[index].left_ns;
      int64_t& least_ns = after_ns >= 0 ? behind : before;
      least_ns = std::min(least_ns, std::abs(after_ns));
    }
    const int64_t length_ns = silence.end_ns - silence.begin_ns;
    const bool tight = behind < kReleaseNs && !by_chance;
    const bool wide = tight || (before < kLateLeaveNs && !by_chance);
    weights.Add({length_ns, tight ? length_ns : 0, wide ? length_ns : 0});
    if (behind == INT64_MAX) return;
    lengths_ns.push_back(length_ns);
    behind_ns.push_back(behind);
  }

  void Add(const AtSite& other) {
    weights.Add(other.weights);
    silences += other.silences;
    lengths_ns.insert(lengths_ns.end(), other.lengths_ns.begin(), other.lengths_ns.end());
    behind_ns.insert(behind_ns.end(), other.behind_ns.begin(), other.behind_ns.end());
  }

  // Nearly all end soon behind a leave; or nearly all end behind one, and more steadily than they
  // last.
  bool ShowsWaits() const {
    if (silences < kAlwaysLeast) return false;
    if (weights.tight_ns * 100 >= weights.pending_ns * kAlwaysPercent) return true;
    if (behind_ns.size() * 100 < silences * kBehindPercent) return false;
    return SpreadOf(behind_ns) * 100 < SpreadOf(lengths_ns) * kSteadyPercent;
  }
};

}  // namespace

bool SaysWaits(const RankSilences& rank) {
  return std::any_of(rank.silences.begin(), rank.silences.end(),
                     [](const Silence& silence) { return silence.is_wait; });
}

std::set<Site> BlockingSites(std::span<const RankSilences> ranks, int64_t total_ns, bool all_said,
                             std::set<Site>* small) {
  std::map<Site, AtSite> of_all;
  std::set<Site> shown;  // by one rank
  std::set<Site> sites;
  for (const RankSilences& rank : ranks) {
    std::map<Site, AtSite> of_rank;
    for (const Silence& silence : rank.silences) {
      if (silence.is_wait) {
        sites.insert(silence.site);
      } else if (!silence.pending.empty()) {
        const bool by_chance = all_said && silence.pending.size() >= kManyUnderWay;
        of_rank[silence.site].Add(silence, rank.collectives, by_chance);
      }
    }
    for (const auto& [site, at] : of_rank) {
      of_all[site].Add(at);
      if (at.ShowsWaits()) shown.insert(site);
    }
  }
  for (const auto& [site, at] : of_all) {
    if (!at.weights.Waits() && !at.ShowsWaits() && !shown.contains(site)) continue;
    if (at.weights.pending_ns * 1000 >= total_ns * kShareMinPerMille) {
      sites.insert(site);
    } else if (small != nullptr) {
      small->insert(site);
    }
  }
  return sites;
}

int64_t PendingNs(const RankSilences& rank, const std::set<Site>& sites) {
  int64_t sum_ns = 0;
  for (const Silence& silence : rank.silences) {
    if (silence.pending.empty() || !sites.contains(silence.site)) continue;
    const int64_t entered_ns = rank.collectives[silence.pending.front()].entered_ns;
    sum_ns += silence.end_ns - std::max(silence.begin_ns, entered_ns);
  }
  return sum_ns;
}

namespace {

// Which collective a silence waited for: whose leave lies nearest to its end, before it or, as far
// as it may have been told late, behind it.
void SetAwaited(const RankSilences& rank, const Silence& silence, Wait* wait) {
  const auto distance = [&](uint32_t index) {
    const int64_t after_ns = *rank.collectives[index].left_ns - silence.end_ns;
    return after_ns > kLateLeaveNs ? INT64_MAX : std::abs(after_ns);
  };
  int64_t nearest_ns = INT64_MAX;
  for (const uint32_t index : silence.pending) {
    if (distance(index) >= nearest_ns) continue;
    nearest_ns = distance(index);
    wait->awaited = index;
  }
  // Of two that one call entered, like DistributedDataParallel's of its buffers, it is the same
  // which.
  const CollectiveEntry& awaited = rank.collectives[wait->awaited];
  const auto is_another = [&](uint32_t index) {
    const CollectiveEntry& entry = rank.collectives[index];
    return entry.group != awaited.group || entry.name != awaited.name ||
           std::abs(entry.entered_ns - awaited.entered_ns) >= kTogetherNs;
  };
  wait->ambiguous =
      nearest_ns != INT64_MAX &&
      std::any_of(silence.pending.begin(), silence.pending.end(), [&](uint32_t index) {
        return index != wait->awaited && is_another(index) && distance(index) != INT64_MAX &&
               distance(index) - nearest_ns < kReleaseNs;
      });
}

// Of a thread, by begin; none is empty, and none overlaps the next.
std::vector<Wait> TransferWaits(std::span<const CollectiveEntry> entries, int32_t tid) {
  std::vector<Wait> waits;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const CollectiveEntry& entry = entries[i];
    if (!entry.transfer || entry.waited_tid != tid || entry.waited_ns <= 0) continue;
    if (!entry.left_ns.has_value()) continue;
    waits.push_back({{*entry.left_ns - entry.waited_ns, *entry.left_ns}, i});
  }
  std::sort(waits.begin(), waits.end(),
            [](const Wait& a, const Wait& b) { return a.interval.end_ns < b.interval.end_ns; });
  int64_t until_ns = INT64_MIN;
  for (Wait& wait : waits) {
    wait.interval.begin_ns = std::max(wait.interval.begin_ns, until_ns);
    until_ns = wait.interval.end_ns;
  }
  std::erase_if(waits, [](const Wait& wait) { return wait.interval.length_ns() <= 0; });
  return waits;
}

// What of `waits` lies beside `others`, and these; both in order.
std::vector<Wait> Merged(std::vector<Wait> waits, const std::vector<Wait>& others) {
  std::vector<Wait> merged = others;
  auto other = others.begin();
  for (Wait& wait : waits) {
    OwnInterval& left = wait.interval;
    while (other != others.end() && other->interval.end_ns <= left.begin_ns) ++other;
    for (auto at = other; at != others.end() && at->interval.begin_ns < left.end_ns; ++at) {
      if (at->interval.end_ns < left.end_ns) {
        left.begin_ns = at->interval.end_ns;
      } else {
        left.end_ns = at->interval.begin_ns;
      }
    }
    if (left.begin_ns < left.end_ns) merged.push_back(wait);
  }
  std::sort(merged.begin(), merged.end(),
            [](const Wait& a, const Wait& b) { return a.interval.begin_ns < b.interval.begin_ns; });
  return merged;
}

}  // namespace

std::vector<Wait> WaitsOf(const RankSilences& rank, const std::set<Site>& sites, int32_t tid) {
  std::vector<Wait> waits;
  for (const Silence& silence : rank.silences) {
    if (silence.pending.empty() || !sites.contains(silence.site)) continue;
    const CollectiveEntry* left = nullptr;  // the last to leave within the silence
    const CollectiveEntry* open = nullptr;  // the first entered of those that leave behind it
    bool told_late = false;                 // one of these left with the silence's end
    for (const uint32_t index : silence.pending) {
      const CollectiveEntry& entry = rank.collectives[index];
      if (*entry.left_ns > silence.end_ns) {
        if (open == nullptr) open = &entry;
        told_late |= *entry.left_ns - silence.end_ns <= kLateLeaveNs;
      } else if (left == nullptr || *entry.left_ns > *left->left_ns) {
        left = &entry;
      }
    }
    const int64_t near_ns = std::max(kReleaseNs, (silence.end_ns - silence.begin_ns) / 5);
    const bool released =
        left != nullptr && (!told_late || silence.end_ns - *left->left_ns < near_ns);
    const CollectiveEntry& awaited = released ? *left : *open;
    const int64_t until_ns = released ? *left->left_ns + kReleaseNs : silence.end_ns;
    waits.push_back(
        {{std::max(silence.begin_ns, awaited.entered_ns), std::min(silence.end_ns, until_ns)},
         static_cast<uint32_t>(&awaited - rank.collectives.data())});
    SetAwaited(rank, silence, &waits.back());
  }
  return Merged(std::move(waits), TransferWaits(rank.collectives, tid));
}

}  // namespace syncline::analysis::why
