// SPDX-License-Identifier: Apache-2.0
// Which two tasks a relation of ITT's (`__itt_relation_add`) means, and the arrow between them:
// from the begin of the one that began first to that of the other.
//
// Ids may be used again: one means the newest task that began with it before the call, in its
// process and domain, ended or not. No id for a head means the thread's innermost task. There is no
// arrow where that is not certain:
//   - no such task is known. It began before the recording or before a pause, or a begin behind it
//     may be missing: something was lost since, or a task has begun whose id was not recorded;
//   - another task of that id is open as well. This is counted.
//
// Viewers nest what lies at one instant, so the ends of a task's arrows stand 1 ns apart. Behind
// its begin there is room for kArrowsMax of them before anything else of its thread; of more it is
// counted that they are left out.
//
// Memory: nothing where no task is related to another; else, of each process, the tasks of the ids
// that were used last, some 100 bytes each: at least kIdsLeast, and at most twice as many. Older
// ones are forgotten, and are then not known. So are, of the tasks that have arrows, all but
// kIdsLeast: they may then have more arrows.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_RELATION_ARROWS_H_
#define SYNCLINE_TIMELINE_RELATION_ARROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/sink.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

// ITT's own words for its numbers: "A is child of B".
const char* RelationName(uint64_t kind);

// The tasks of one process that began last, by their ids.
class NewestTasks {
 public:
  static constexpr size_t kIdsLeast = size_t{1} << 16;  // guessed

  struct Task {
    TrackId track = kNoTrack;
    TimelineTime begin;
    int64_t begin_ns = 0;  // trace clock

    bool operator==(const Task&) const = default;
  };
  void Began(uint32_t domain, IttId id, const Task& task);
  // nullopt: it is not known, or not for certain.
  std::optional<Task> Find(uint32_t domain, IttId id) const;
  // Up to then begins may be missing.
  void DoubtUntil(int64_t clock_ns) { doubted_until_ns_ = std::max(doubted_until_ns_, clock_ns); }

 private:
  struct Key {
    uint32_t domain = 0;
    IttId id;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  using Tasks = std::unordered_map<Key, Task, Hash>;

  Tasks newer_;
  Tasks older_;  // than those; what is in both counts there
  int64_t doubted_until_ns_ = kUnknownLo;
};

class RelationArrows {
 public:
  // All of it outlives this.
  RelationArrows(const NodeContext& context, const NodeTables& tables, TrackTable* tracks)
      : context_(context), tables_(tables), tracks_(tracks) {}

  // A task has begun, overlapped or not, with an id or without.
  void Began(uint32_t process, uint32_t domain, IttId id, const Span& span) {
    if (id && tables_.has_relations()) BeganWithId(process, domain, id, span);
  }
  // Begins up to then may be missing: of the process, or of all of this owner.
  void Doubt(uint32_t process, int64_t until_ns) { Of(process).DoubtUntil(until_ns); }
  void DoubtOwner(uint32_t owner, int64_t until_ns);
  // A relation: its arrow, if there is to be one.
  void On(const NodeEvent& event);

  // Relations without an arrow, because several open tasks have an id of theirs,
  uint64_t ambiguous() const { return ambiguous_; }
  // or a task of theirs has kArrowsMax already.
  uint64_t crowded() const { return crowded_; }

  // Writing the event of a begin alone takes more ns.
  static constexpr uint32_t kArrowsMax = 32;

 private:
  struct End {
    std::optional<NewestTasks::Task> task;
    bool ambiguous = false;
  };

  NewestTasks& Of(uint32_t process) {
    if (process >= newest_.size()) newest_.resize(process + 1);
    return newest_[process];
  }
  void BeganWithId(uint32_t process, uint32_t domain, IttId id, const Span& span);
  End Named(uint32_t process, uint32_t domain, IttId id);
  End Current(uint32_t thread) const;
  void Draw(const NewestTasks::Task& from, const NewestTasks::Task& to, TextId name);

  const NodeContext& context_;
  const NodeTables& tables_;
  TrackTable* tracks_;
  std::vector<NewestTasks> newest_;                              // by process
  std::vector<int64_t> owners_doubted_until_ns_;                 // by owner
  std::map<std::pair<TrackId, TimelineTime>, uint32_t> arrows_;  // of tasks, by track and begin
  uint64_t ambiguous_ = 0;
  uint64_t crowded_ = 0;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_RELATION_ARROWS_H_
