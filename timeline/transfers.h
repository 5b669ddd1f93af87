// SPDX-License-Identifier: Apache-2.0
// Sends and receives of process groups (PyTorch's isend, irecv, send, recv), matched.
//
// Concepts. A *channel* is all transfers of one group from one rank to another with one tag. On a
// channel the k-th send is the k-th receive, whatever else is in flight.
//
// Which receive is the first that belongs to a recorded send? Ranks are attached milliseconds
// apart, in the middle of their work. Of the shifts with which no transfer is received before it
// was sent and all bytes agree,
//   - no shift, when both ranks were recorded from the group's first operation on;
//   - in a group of two, where both take part in everything, the one with which the numbers that
//     PyTorch gives to operations of the group agree best; when two agree as well, none;
//   - else the one with the earliest receives. It is wrong of a rank that lags behind its sender by
//     so much that every one of its receives, the next sends' too, is after the send.
//
// Example: sends at 10, 20, 30; received at 21, 31. Unshifted all is possible (10 > 21, 20 > 31),
// but the receives one earlier are possible, too: 20 > 21, 30 > 31. The send at 10 is alone.
//
// A rank that was started again is another process: of the processes of both ranks those belong
// together that were there at the same time, and each pair has a shift of its own.
//
// Memory: one entry per transfer. Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_TRANSFERS_H_
#define SYNCLINE_TIMELINE_TRANSFERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/time.h"
#include "timeline/collectives.h"
#include "timeline/sink.h"

namespace syncline::timeline {

struct Channel {
  CollectiveGroup group;
  int32_t source = 0;  // ranks in the group
  int32_t destination = 0;
  int32_t tag = 0;
};

// Of one side: who called for it, and who waited for it how long. Tids as the process sees them.
struct TransferThreads {
  int32_t tid = 0;
  int32_t waited_tid = 0;
  std::optional<int64_t> waited_ns;  // nullopt: nobody waited, or not recorded
};

// One side of which the other is not known.
struct LooseEnd {
  CollectiveGroup group;
  int32_t rank = 0;  // in the group
  bool send = false;
  NodeTime begin;
  TimelineTime begin_at;
  std::optional<NodeTime> end;
  TransferThreads threads;
};

struct Transfer {
  uint32_t channel = 0;  // index into Transfers::channels
  uint32_t send_node = 0;
  uint32_t receive_node = 0;
  uint64_t bytes = 0;
  NodeTime send_begin;  // the program called it
  TimelineTime sent_at;
  std::optional<NodeTime> sent;  // the sender has waited for it; nullopt: as of `received`
  TransferThreads send_threads;
  TransferThreads receive_threads;
  NodeTime posted;  // the receiver called for it
  TimelineTime posted_at;
  std::optional<NodeTime> received;  // it has waited for it; nullopt: it did not, or not recorded
  std::optional<TimelineTime> received_at;
  TrackId from = kNoTrack;
  TrackId to = kNoTrack;
};

struct Transfers {
  std::vector<Channel> channels;
  std::vector<Transfer> transfers;  // by channel, in order
  std::vector<LooseEnd> loose;      // of groups that were announced
  uint64_t unmatched_sends = 0;     // begun or ended outside what is recorded of the other rank
  uint64_t unmatched_receives = 0;
  uint64_t undecided = 0;  // of both, on channels whose shift is not known, of unknown groups
};

class TransferMatcher {
 public:
  using Place = CollectiveMatcher::Place;
  struct Begin {
    uint64_t id = 0;  // within the process
    std::string_view group;
    bool send = false;
    int32_t peer = -1;  // rank in the group; -1: any
    int32_t tag = 0;
    uint64_t bytes = 0;
    TrackId track = kNoTrack;
    int32_t tid = 0;  // who called for it, as the process sees it
  };

  // All in the process's order of time. The group's next operation has the number `sequence`.
  void OnGroup(uint32_t process, uint32_t node, const CollectiveGroup& group, int32_t rank,
               uint64_t sequence);
  void OnSequence(uint32_t process, std::string_view group, uint64_t sequence);
  void OnBegin(uint32_t process, const Begin& begin, const Place& place);
  // `peer`: from whom it came, where the begin did not know; -1: unknown still.
  // `tid`: who has waited for it, and how long; nullopt: not recorded.
  void OnEnd(uint32_t process, uint64_t id, int32_t peer, int32_t tid,
             std::optional<int64_t> waited_ns, const Place& place);

  // Once, after everything was given. With a cut: transfers received in it (where that was not
  // recorded: called for in it), and ends of others that ended in it.
  Transfers Match(const std::optional<Interval>& cut = std::nullopt);

 private:
  struct End {  // of a channel
    uint64_t bytes = 0;
    Place begin;
    std::optional<Place> end;
    TransferThreads threads;
    mutable bool paired = false;
    uint64_t number = 0;  // PyTorch's of the operation, at this rank
    TrackId track = kNoTrack;
    int32_t peer = -1;
    int32_t tag = 0;
    bool send = false;

    TimelineTime ended() const { return end.value_or(begin).timeline; }
  };
  struct Group {
    CollectiveGroup facts;  // of size 0 until it is announced
    int32_t rank = 0;
    uint64_t next = 0;       // number of the next operation
    bool from_first = true;  // recorded from its first operation on
    std::vector<End> ends;
  };
  struct Process {
    uint32_t node = 0;
    std::map<std::string, Group, std::less<>> groups;
    std::map<uint64_t, std::pair<Group*, size_t>> open;  // by id
  };
  struct Side {  // of a channel, in one process
    uint32_t process = 0;
    uint32_t node = 0;
    bool from_first = false;
    std::vector<const End*> ends;  // not empty

    int64_t begin_ns() const { return ends.front()->begin.timeline.ns; }
    int64_t end_ns() const { return ends.back()->ended().ns; }
  };
  struct Sides {
    Side sends;
    Side receives;
  };
  // Several processes of a rank have been there one after the other: it was started again.
  struct Ends {
    Channel channel;
    std::vector<Side> sends;
    std::vector<Side> receives;
  };
  using Key = std::tuple<std::string, std::string, std::string, std::string, int32_t, int32_t,
                         int32_t>;  // job, incarnation, group, its ranks, source, destination, tag

  static void Renumber(uint64_t next, Group* group);
  static std::vector<Sides> LivesOf(Ends* ends);
  static bool Fits(const Sides& sides, int64_t shift);
  static std::optional<int64_t> ByNumber(const Sides& sides, const std::vector<int64_t>& shifts);
  static std::optional<int64_t> ShiftOf(const Sides& sides, uint32_t group_size);
  void Pair(const Sides& sides, int64_t shift, Transfers* result) const;
  void AddLoose(Transfers* result) const;
  bool Counts(const End& end) const { return !cut_ || cut_->Contains(end.ended()); }
  uint64_t Counted(std::span<const End* const> ends) const;

  std::optional<Interval> cut_;
  std::map<uint32_t, Process> processes_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_TRANSFERS_H_
