// SPDX-License-Identifier: Apache-2.0
// Collectives of process groups, matched across ranks.
//
// What a process shows of them (docs/event-schema.md, PyTorch):
//   group       how many collectives of a group it has begun so far: at the recording's begin, and
//               now and then
//   call        the program calls a collective of a group, whose number it knows
//   launch      PyTorch launches a collective (a `c10d::` task). Behind a call: that one. Without
//               one PyTorch calls itself (DistributedDataParallel), and says not for which group
//   root        what a thread broadcasts in a group until it says otherwise comes from this rank
//   work        a backend's thread works at it, from begin to end (a `gloo:` task)
//
// Numbers. Between two announcements of all groups the launches without a call belong to the group
// whose number grew by as many as there are; where several grew, nobody can tell, and they are left
// out and counted. Where some groups are made anew, they belong to the one group that ever grew so.
// Numbers are believed as long as all names agree, and the sizes of kinds that have one, and no
// rank leaves before another has entered where everybody waits for everybody (collective_kinds.h).
// Else the rank is off by some (its group was used for transfers between some ranks only, which
// PyTorch counts too) and is shifted by the one number with which that is so; when there is no such
// number, or several, it is left out. Sizes only help to choose: a program may be wrong in them.
//
// Lives. A program may destroy its groups and make them anew, in the same processes or in new ones,
// and the names and the numbers begin again. In a process a group lives anew where its number falls
// back, or is called with twice, unless the first call was refused (a wrong argument): then no work
// came of it. Across ranks, a life has every rank once; ranks belong together
// that meet in time, or of which one first enters what the other's last launch waits in (without an
// end it may wait as long as its process is recorded, or until the group's next life), rather those
// that can have taken part in the same collectives: no collective of a later life begins before all
// ranks have left the earlier one. Not noticed: a life whose first announced number is above the
// last one of the life before, without a call in between.
//
// Works belong to launches of their kind in order: a group's threads take them from its queue.
// Whose a thread is, its works tell: mostly only one group has a launch that waits. A launch that
// waits while the threads are idle for 20 ms has lost its work; until then those behind it get the
// next one's. Where works and launches do not go together
// (other counts than are known), the ends are not known. Two threads of one group may begin, as
// recorded, in another order than that in which they took their works: ends of works that overlap
// are exchanged where else a rank would leave before another has entered.
//
// Memory: one entry per launch. Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_COLLECTIVES_H_
#define SYNCLINE_TIMELINE_COLLECTIVES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/time.h"
#include "timeline/sink.h"

namespace syncline::timeline {

struct CollectiveGroup {
  std::string job;
  std::string incarnation;
  std::string name;         // "0"
  std::string ranks;        // "0-3,8": global ranks of its members
  std::string description;  // "default_pg"; "default_pg (2)" of its second life
  uint32_t size = 0;
};

// A rank's part of a collective: from its launch to the end of its work.
struct CollectiveMember {
  uint32_t node = 0;
  int32_t rank = 0;  // in the group
  NodeTime entered;
  TimelineTime entered_at;
  std::optional<NodeTime> left;  // nullopt: the end of its work was not recorded
  std::optional<TimelineTime> left_at;
};

struct Collective {
  uint32_t group = 0;   // index into Collectives::groups
  uint64_t number = 0;  // as the group's first rank counts
  std::string name;     // "allreduce"
  std::optional<uint64_t> bytes;
  bool may_be_empty = false;              // the program called it without a size that is known
  std::optional<int32_t> root;            // whose it is that a broadcast sends; rank in the group
  std::vector<CollectiveMember> members;  // by rank
};

struct Collectives {
  std::vector<CollectiveGroup> groups;
  std::vector<Collective> collectives;  // by group and number
  // Launches of which it is not known which they are: when they entered.
  std::vector<TimelineTime> undecided;
};

// Leaves what ended in `cut`: where no end was recorded, with the last entry.
void KeepEndedIn(const Interval& cut, Collectives* found);

// Leaves what a rank entered before `end`.
void KeepEnteredBefore(TimelineTime end, Collectives* found);

class CollectiveMatcher {
 public:
  struct Place {  // of an instant
    NodeTime node;
    TimelineTime timeline;
    int64_t bound_ns = 0;  // of the node's clock there
  };
  struct GroupState {
    CollectiveGroup group;
    int32_t rank = 0;
    uint64_t sequence = 0;
  };

  uint32_t AddProcess(uint32_t node);

  // All in the process's order of time. `group` is its name.
  void OnGroup(uint32_t process, uint32_t thread, GroupState state);
  void OnCall(uint32_t process, uint32_t thread, std::string_view group, std::string_view name,
              uint64_t sequence, uint64_t bytes, const Place& place);
  void OnRoot(uint32_t process, uint32_t thread, std::string_view group, int32_t root);
  void OnTransfer(uint32_t process, std::string_view group);
  // The thread's operators begin or end to be recorded: what was called before has no launch.
  void OnOperators(uint32_t process, uint32_t thread);
  void OnLaunch(uint32_t process, uint32_t thread, std::string_view name, const Place& place);
  void OnWorkBegin(uint32_t process, uint32_t thread, std::string_view name);
  void OnWorkEnd(uint32_t process, uint32_t thread, const Place& place);
  // The process was recorded until then: what has not ended may last as long.
  void OnRecordedUntil(uint32_t process, TimelineTime end) { processes_[process].until = end; }

  // Once, after everything was given.
  Collectives Match();

 private:
  struct Root {
    std::string group;
    int32_t rank = 0;
  };
  struct Launch {
    std::string name;
    Place entered;
    std::optional<Place> left;
    std::optional<uint64_t> bytes;
    bool may_be_empty = false;
    std::optional<Root> root;     // of a broadcast
    std::optional<size_t> group;  // index into Process::groups
    std::optional<uint64_t> sequence;
    bool launched = false;  // a call without a launch has no work either: nothing observes it
    bool refused = false;   // by PyTorch or the backend: it took no number, and nothing came of it
    std::vector<const Launch*> exchangeable;  // whose works this one's may be, and the reverse
  };
  struct Work {
    uint32_t thread = 0;
    std::string name;     // "all_reduce"
    size_t position = 0;  // launches before it
    std::optional<Place> end;
    size_t begun_by_end = 0;  // works
  };
  struct Snapshot {
    size_t position = 0;   // launches before it
    size_t transfers = 0;  // of the group, before it
    uint64_t sequence = 0;
  };
  struct Group {            // in one of its lives
    CollectiveGroup facts;  // only a name and no size until it is announced
    bool guessed = false;   // they are the life's before
    int32_t rank = 0;
    std::vector<size_t> transfers;  // for each, how many launches were before it
    std::vector<Snapshot> snapshots;
    uint64_t highest = 0;  // of its numbers
    struct Said {
      uint64_t sequence = 0;
      std::optional<size_t> call;  // the launch, where a call said it
    };
    std::map<uint32_t, Said> said;  // by thread: the last
  };
  struct Process {
    uint32_t node = 0;
    std::vector<Group> groups;  // of one name the last one lives
    std::vector<Launch> launches;
    std::vector<Work> works;             // in the order of their begins
    std::map<uint32_t, size_t> called;   // by thread: the launch that its call announced
    std::map<uint32_t, Root> roots;      // by thread
    std::map<uint32_t, size_t> working;  // by thread: its work that has not ended
    TimelineTime until{kUnknownLo};      // recorded so long
  };
  struct Rank {  // in one life of its group
    const Process* process = nullptr;
    int32_t rank = 0;
    std::map<uint64_t, const Launch*> launches;  // by number; not empty
    TimelineTime begin;                          // the first entry
    TimelineTime end;                            // when it is known to be over
    TimelineTime open_until;                     // no earlier; its last launch may last as long

    bool Meets(const Rank& other) const { return begin <= other.end && other.begin <= end; }
    // Whether `later` first enters what this one's last launch may still wait in.
    bool Awaits(const Rank& later) const {
      const auto& [number, launch] = *launches.rbegin();
      const auto& [first, entered] = *later.launches.begin();
      return later.begin <= open_until && number == first && launch->name == entered->name;
    }
    void AddTo(std::vector<TimelineTime>* entries) const {
      for (const auto& [number, launch] : launches) entries->push_back(launch->entered.timeline);
    }
  };
  using Life = std::vector<Rank>;

  static Group* FindGroup(Process* process, std::string_view name);
  static Group* GroupOf(Process* process, std::string_view name);
  static bool LivesAnew(const Group& group, uint32_t thread, uint64_t sequence, bool used);
  static bool IsRefused(const Process& process, uint32_t thread, size_t launch);
  static void Announce(Process* process, Group* group, uint32_t thread, uint64_t sequence,
                       std::optional<size_t> call);
  static void AttributeLaunches(Process* process);
  static bool GrowsByItself(const Process& process, size_t group, const Snapshot& from,
                            const Snapshot& to);
  static void GiveAll(Process* process, std::string_view name);
  static void GiveByGrowth(Process* process, const std::vector<size_t>& groups);
  static void Number(Process* process, size_t group);
  class Queues;
  using Workers = std::map<uint32_t, size_t>;  // threads, with the group they work for
  static Workers GuessWorkers(const Process& process);
  static size_t MisfitsOf(const Process& process, const Workers& workers);
  static Workers WorkersOf(const Process& process);
  static void GiveWorks(Process* process);
  static bool GiveWorks(Process* process, const Workers& workers, bool some_lost);
  using Given = std::vector<std::pair<size_t, size_t>>;  // launches with their works, by work
  static void FindExchangeable(Process* process, const Given& given);
  static Rank RankOf(const Process& process, size_t group, Collectives* result);
  static bool Shares(const Life& life, int32_t rank);
  static std::vector<Life> LivesOf(std::vector<Rank> ranks, Collectives* result);
  static bool IsBefore(const Place& a, const Place& b);  // surely
  static bool Fits(const Rank& first, const Rank& other, int64_t shift, bool by_size);
  static bool IsOfMost(const Rank& first, const Rank& other, int64_t shift);
  static std::optional<int64_t> MeetingShift(const Rank& first, const Rank& other);
  static std::optional<int64_t> ShiftOf(const Rank& first, const Rank& other);
  // With by how much their numbers are off.
  using Numbered = std::vector<std::pair<const Rank*, int64_t>>;
  using Exits = std::map<const Launch*, Place>;
  static Exits ExchangedExits(const Numbered& ranks);
  static std::optional<int32_t> RootOf(const Process& process, const Launch& launch);
  static void Join(std::vector<Rank> ranks, uint32_t group, Collectives* result);

  std::vector<Process> processes_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_COLLECTIVES_H_
