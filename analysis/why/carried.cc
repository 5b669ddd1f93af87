// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/carried.h"

#include <algorithm>

namespace syncline::analysis::why {

std::vector<Carried> CarriedOf(const RankInput& rank, const TaskNames& names) {
  std::vector<Carried> carried;
  std::map<int64_t, uint32_t> by_left;
  for (const CollectiveEntry& entry : rank.collectives) {
    if (entry.left_ns.has_value()) {
      by_left.emplace(*entry.left_ns, static_cast<uint32_t>(carried.size()));
    }
    carried.push_back({entry.entered_ns, false, std::nullopt});
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
      carried[found->second] = {span.begin_ns, true, before};
      before = found->second;
    }
  }
  return carried;
}

int64_t RankClock::TimelineNs(int64_t own_ns) const {
  const auto shift = [](const CollectiveEntry& entry) {
    return *entry.timeline_ns - entry.entered_ns;
  };
  const auto next = std::upper_bound(
      entries_.begin(), entries_.end(), own_ns,
      [](int64_t at_ns, const CollectiveEntry& entry) { return at_ns < entry.entered_ns; });
  if (next == entries_.begin()) return own_ns + shift(entries_.front());
  const CollectiveEntry& last = *(next - 1);
  if (next == entries_.end()) return own_ns + shift(last);
  const double part = static_cast<double>(own_ns - last.entered_ns) /
                      static_cast<double>(next->entered_ns - last.entered_ns);
  const auto grown_ns = static_cast<double>(shift(*next) - shift(last));
  return own_ns + shift(last) + static_cast<int64_t>(part * grown_ns);
}

bool ArePlaced(const JobInput& input) {
  return !input.arrivals.empty() &&
         std::all_of(input.ranks.begin(), input.ranks.end(), [](const RankInput& rank) {
           return !rank.collectives.empty() &&
                  std::all_of(
                      rank.collectives.begin(), rank.collectives.end(),
                      [](const CollectiveEntry& one) { return one.timeline_ns.has_value(); });
         });
}

Meetings MeetingsOf(const JobInput& input) {
  Meetings meetings;
  for (const Arrival& arrival : input.arrivals) {
    if (arrival.everybody_waits) meetings[{arrival.group, arrival.number}] = {};
  }
  for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
    const std::vector<CollectiveEntry>& entries = input.ranks[rank].collectives;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const auto found = meetings.find({entries[i].group, entries[i].number});
      if (found != meetings.end()) found->second.push_back({rank, i});
    }
  }
  return meetings;
}

}  // namespace syncline::analysis::why
