// SPDX-License-Identifier: Apache-2.0
#include "timeline/transfers.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

namespace syncline::timeline {
namespace {

// How far ranks' orders are searched for: a guess at how many one of them can have recorded before
// the other was attached.
constexpr int64_t kShiftMax = 256;

// The sends i for which both i and i + shift exist: [first, last).
std::pair<int64_t, int64_t> Overlap(size_t sends, size_t receives, int64_t shift) {
  return {std::max<int64_t>(0, -shift),
          std::min(static_cast<int64_t>(sends), static_cast<int64_t>(receives) - shift)};
}

bool ReceivedBefore(const CollectiveMatcher::Place& received,
                    const CollectiveMatcher::Place& sent) {
  return received.timeline.ns + received.bound_ns < sent.timeline.ns - sent.bound_ns;
}

}  // namespace

// The group's next number is known: before it is announced, so are those of what was begun so far.
void TransferMatcher::Renumber(uint64_t next, Group* group) {
  if (group->facts.size == 0) {
    group->from_first &= next == group->next;
    for (End& end : group->ends) end.number += next - group->next;
  }
  group->next = next;
}

void TransferMatcher::OnGroup(uint32_t process, uint32_t node, const CollectiveGroup& group,
                              int32_t rank, uint64_t sequence) {
  Process& at = processes_[process];
  at.node = node;
  Group& found = at.groups[group.name];
  Renumber(sequence, &found);
  if (found.facts.size > 0) return;
  found.facts = group;
  found.rank = rank;
}

void TransferMatcher::OnSequence(uint32_t process, std::string_view group, uint64_t sequence) {
  Group& found = processes_[process].groups[std::string(group)];
  Renumber(sequence, &found);
  found.next = sequence + 1;
}

void TransferMatcher::OnBegin(uint32_t process, const Begin& begin, const Place& place) {
  Process& at = processes_[process];
  Group& group = at.groups[std::string(begin.group)];
  End end;
  end.bytes = begin.bytes;
  end.begin = place;
  end.number = group.next++;
  end.track = begin.track;
  end.peer = begin.peer;
  end.tag = begin.tag;
  end.send = begin.send;
  end.threads.tid = begin.tid;
  at.open[begin.id] = {&group, group.ends.size()};
  group.ends.push_back(end);
}

void TransferMatcher::OnEnd(uint32_t process, uint64_t id, int32_t peer, int32_t tid,
                            std::optional<int64_t> waited_ns, const Place& place) {
  Process& at = processes_[process];
  const auto open = at.open.find(id);
  if (open == at.open.end()) return;
  End& end = open->second.first->ends[open->second.second];
  end.end = place;
  end.threads.waited_tid = tid;
  end.threads.waited_ns = waited_ns;
  if (end.peer < 0) end.peer = peer;
  at.open.erase(open);
}

bool TransferMatcher::Fits(const Sides& sides, int64_t shift) {
  const auto& sends = sides.sends.ends;
  const auto& receives = sides.receives.ends;
  const auto [first, last] = Overlap(sends.size(), receives.size(), shift);
  for (int64_t i = first; i < last; ++i) {
    const End& send = *sends[static_cast<size_t>(i)];
    const End& receive = *receives[static_cast<size_t>(i + shift)];
    if (send.bytes != receive.bytes) return false;
    if (receive.end.has_value() && ReceivedBefore(*receive.end, send.begin)) return false;
  }
  return first < last;
}

std::optional<int64_t> TransferMatcher::ByNumber(const Sides& sides,
                                                 const std::vector<int64_t>& shifts) {
  std::optional<int64_t> best;
  double least = 0;
  bool tie = false;
  for (const int64_t shift : shifts) {
    const auto [first, last] = Overlap(sides.sends.ends.size(), sides.receives.ends.size(), shift);
    double apart = 0;
    for (int64_t i = first; i < last; ++i) {
      const auto a = static_cast<int64_t>(sides.sends.ends[static_cast<size_t>(i)]->number);
      const auto b =
          static_cast<int64_t>(sides.receives.ends[static_cast<size_t>(i + shift)]->number);
      apart += static_cast<double>(std::abs(a - b));
    }
    apart /= static_cast<double>(last - first);
    tie = best.has_value() && (apart == least || (tie && apart > least));
    if (best.has_value() && apart >= least) continue;
    best = shift;
    least = apart;
  }
  return tie ? std::nullopt : best;
}

std::optional<int64_t> TransferMatcher::ShiftOf(const Sides& sides, uint32_t group_size) {
  if (sides.sends.from_first && sides.receives.from_first) return 0;
  // With fewer in common the ranks would have been attached very far apart.
  const int64_t enough =
      static_cast<int64_t>(std::min(sides.sends.ends.size(), sides.receives.ends.size()) + 1) / 2;
  std::vector<int64_t> fitting;
  for (int64_t shift = -kShiftMax; shift <= kShiftMax; ++shift) {
    const auto [first, last] = Overlap(sides.sends.ends.size(), sides.receives.ends.size(), shift);
    if (last - first >= enough && Fits(sides, shift)) fitting.push_back(shift);
  }
  if (fitting.empty()) return std::nullopt;
  return group_size <= 2 ? ByNumber(sides, fitting) : fitting.front();
}

uint64_t TransferMatcher::Counted(std::span<const End* const> ends) const {
  return static_cast<uint64_t>(
      std::count_if(ends.begin(), ends.end(), [this](const End* end) { return Counts(*end); }));
}

void TransferMatcher::Pair(const Sides& sides, int64_t shift, Transfers* result) const {
  const auto [first, last] = Overlap(sides.sends.ends.size(), sides.receives.ends.size(), shift);
  for (int64_t i = first; i < last; ++i) {
    const End& send = *sides.sends.ends[static_cast<size_t>(i)];
    const End& receive = *sides.receives.ends[static_cast<size_t>(i + shift)];
    result->unmatched_sends -= Counts(send) ? 1 : 0;
    result->unmatched_receives -= Counts(receive) ? 1 : 0;
    send.paired = receive.paired = Counts(receive);
    if (!Counts(receive)) continue;
    Transfer transfer;
    transfer.channel = static_cast<uint32_t>(result->channels.size() - 1);
    transfer.send_node = sides.sends.node;
    transfer.receive_node = sides.receives.node;
    transfer.bytes = send.bytes;
    transfer.send_begin = send.begin.node;
    transfer.sent_at = send.begin.timeline;
    if (send.end.has_value()) transfer.sent = send.end->node;
    transfer.send_threads = send.threads;
    transfer.receive_threads = receive.threads;
    transfer.posted = receive.begin.node;
    transfer.posted_at = receive.begin.timeline;
    if (receive.end.has_value()) {
      transfer.received = receive.end->node;
      transfer.received_at = receive.end->timeline;
    }
    transfer.from = send.track;
    transfer.to = receive.track;
    result->transfers.push_back(transfer);
  }
}

// Which process of the one rank belongs to which of the other: those that were there together
// longest, or with the shortest time between them; each belongs to one. Takes them out of `ends`.
std::vector<TransferMatcher::Sides> TransferMatcher::LivesOf(Ends* ends) {
  struct Meeting {
    int64_t together_ns;  // negative: between them
    Side* sends;
    Side* receives;
  };
  std::vector<Meeting> meetings;
  for (Side& sends : ends->sends) {
    for (Side& receives : ends->receives) {
      const int64_t together_ns = std::min(sends.end_ns(), receives.end_ns()) -
                                  std::max(sends.begin_ns(), receives.begin_ns());
      meetings.push_back({together_ns, &sends, &receives});
    }
  }
  std::stable_sort(meetings.begin(), meetings.end(), [](const Meeting& a, const Meeting& b) {
    return a.together_ns > b.together_ns;
  });
  std::set<const Side*> taken;
  std::vector<Sides> lives;
  for (const Meeting& meeting : meetings) {
    if (taken.contains(meeting.sends) || taken.contains(meeting.receives)) continue;
    taken.insert({meeting.sends, meeting.receives});
    lives.push_back({std::move(*meeting.sends), std::move(*meeting.receives)});
  }
  std::stable_sort(lives.begin(), lives.end(), [](const Sides& a, const Sides& b) {
    return a.sends.begin_ns() < b.sends.begin_ns();
  });
  return lives;
}

void TransferMatcher::AddLoose(Transfers* result) const {
  for (const auto& [number, process] : processes_) {
    for (const auto& [name, group] : process.groups) {
      if (group.facts.size == 0) continue;
      for (const End& end : group.ends) {
        if (end.paired || !Counts(end)) continue;
        LooseEnd& loose = result->loose.emplace_back();
        loose.group = group.facts;
        loose.rank = group.rank;
        loose.send = end.send;
        loose.begin = end.begin.node;
        loose.begin_at = end.begin.timeline;
        if (end.end.has_value()) loose.end = end.end->node;
        loose.threads = end.threads;
      }
    }
  }
}

Transfers TransferMatcher::Match(const std::optional<Interval>& cut) {
  cut_ = cut;
  std::map<Key, Ends> channels;
  Transfers result;
  for (auto& [number, process] : processes_) {
    for (auto& [name, group] : process.groups) {
      if (group.facts.size == 0) {
        result.undecided += static_cast<uint64_t>(std::count_if(
            group.ends.begin(), group.ends.end(), [this](const End& end) { return Counts(end); }));
        continue;
      }
      for (const End& end : group.ends) {
        if (end.peer < 0) {  // from anybody, and never waited for
          result.unmatched_receives += Counts(end) ? 1 : 0;
          continue;
        }
        const int32_t source = end.send ? group.rank : end.peer;
        const int32_t destination = end.send ? end.peer : group.rank;
        const CollectiveGroup& facts = group.facts;
        Ends& ends = channels[{facts.job, facts.incarnation, facts.name, facts.ranks, source,
                               destination, end.tag}];
        ends.channel = {facts, source, destination, end.tag};
        std::vector<Side>& sides = end.send ? ends.sends : ends.receives;
        if (sides.empty() || sides.back().process != number) {
          sides.push_back({number, process.node, group.from_first, {}});
        }
        sides.back().ends.push_back(&end);
      }
    }
  }
  for (auto& [key, ends] : channels) {
    for (const Side& side : ends.sends) result.unmatched_sends += Counted(side.ends);
    for (const Side& side : ends.receives) result.unmatched_receives += Counted(side.ends);
    bool shown = false;
    for (const Sides& sides : LivesOf(&ends)) {
      const uint64_t sends = Counted(sides.sends.ends);
      const uint64_t receives = Counted(sides.receives.ends);
      const std::optional<int64_t> shift = ShiftOf(sides, ends.channel.group.size);
      if (!shift.has_value()) {
        result.undecided += sends + receives;
        result.unmatched_sends -= sends;
        result.unmatched_receives -= receives;
        continue;
      }
      if (!std::exchange(shown, true)) result.channels.push_back(ends.channel);
      Pair(sides, *shift, &result);
    }
  }
  AddLoose(&result);
  return result;
}

}  // namespace syncline::timeline
