// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/carried.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

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

uint64_t TransfersOf(const JobInput& input) {
  uint64_t count = 0;
  for (const RankInput& rank : input.ranks) {
    for (const CollectiveEntry& entry : rank.collectives) count += entry.transfer ? 1 : 0;
  }
  return count;
}

Circles::Circles(const JobInput& input) {
  using Meeting = std::pair<const Arrival*, std::vector<Member>>;
  std::map<std::pair<uint32_t, uint64_t>, Meeting> meetings;
  for (const Arrival& arrival : input.arrivals) {
    if (arrival.everybody_waits || arrival.root.has_value()) {
      meetings[{arrival.group, arrival.number}].first = &arrival;
    }
  }
  for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
    const std::vector<CollectiveEntry>& entries = input.ranks[rank].collectives;
    of_.emplace_back(entries.size(), kNone);
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const auto found = meetings.find({entries[i].group, entries[i].number});
      if (found != meetings.end()) found->second.second.push_back({rank, i});
    }
  }
  for (const auto& [key, meeting] : meetings) {
    const auto& [arrival, members] = meeting;
    if (arrival->everybody_waits) {
      Add({members, members});
      continue;
    }
    const auto root = std::find_if(members.begin(), members.end(), [&](const Member& member) {
      return member.rank == *arrival->root;
    });
    if (root != members.end()) AddTree(members, static_cast<size_t>(root - members.begin()));
  }
}

void Circles::Add(Circle circle) {
  for (const Member& one : circle.waiting) {
    of_[one.rank][one.entry] = static_cast<uint32_t>(all_.size());
  }
  all_.push_back(std::move(circle));
}

// Places are counted from the root: i has from i without its highest bit what it sends to i with a
// higher one.
void Circles::AddTree(const std::vector<Member>& members, size_t root) {
  const auto at = [&](size_t place) { return members[(place + root) % members.size()]; };
  for (size_t place = 0; place < members.size(); ++place) {
    Circle circle{{at(place)}, {at(place)}};
    for (size_t from = place; from > 0;) {
      from -= std::bit_floor(from);
      circle.awaited.push_back(at(from));
    }
    for (size_t bit = place == 0 ? 1 : std::bit_floor(place) * 2; place + bit < members.size();
         bit *= 2) {
      circle.awaited.push_back(at(place + bit));
    }
    Add(std::move(circle));
  }
}

}  // namespace syncline::analysis::why
