// SPDX-License-Identifier: Apache-2.0
// The tracks of one node, its processes and its threads, made as the walk over its events meets
// them; and the names of a process, as texts of the timeline.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_TRACK_TABLE_H_
#define SYNCLINE_TIMELINE_TRACK_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "timeline/async_spans.h"
#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/open_ids.h"
#include "timeline/task_numbers.h"
#include "timeline/thread_spans.h"

namespace syncline::timeline {

class TrackTable {
 public:
  struct Process {
    TrackId track = kNoTrack;
    std::string name;
    std::unique_ptr<AsyncSpans> async;
    std::unique_ptr<OpenIds> open_ids;  // of its threads' tasks; made when it is asked for
    std::vector<TextId> texts;          // by name id, of the small ones
    std::unordered_map<uint32_t, TextId> other_texts;  // by name id
    std::optional<Moment> covered_since;  // Coverage sets it, and its threads begin with it
    std::optional<Moment> last;
    uint64_t found_events = 0;
    uint64_t counted_here = 0;      // of those, in options.cut
    std::vector<uint32_t> threads;  // that have a track; ThreadsOf() sorts them
  };
  struct Thread {
    uint32_t process = 0;
    std::unique_ptr<ThreadSpans> spans;  // made with its track, at the first event
    std::optional<int64_t> last_ns;      // its last event, in whatever stream,
    uint32_t last_source = 0;            // and which stream that was
    TaskNumbers numbers;
  };

  // `tables` may grow meanwhile.
  TrackTable(const NodeContext& context, const NodeTables* tables, SharedTracks* shared)
      : context_(context), tables_(tables), shared_(shared) {}

  // Before anything else.
  void AddNode();
  TrackId node_track() const { return node_track_; }
  // As its track is called.
  std::string NameOfProcess(const ProcessEntry& process) const;
  // As it is announced; nobody has added it yet.
  Track TrackOf(const ProcessEntry& process) const;

  // By their numbers in the tables. Valid until one is made that is new.
  Process& ProcessAt(uint32_t index) {
    const bool known = index < processes_.size() && processes_[index].track != kNoTrack;
    return known ? processes_[index] : AddProcess(index);
  }
  Thread& ThreadAt(uint32_t index) {
    const bool known = index < threads_.size() && threads_[index].spans != nullptr;
    return known ? threads_[index] : AddThread(index);
  }
  // Those up to the last that was met; of those that were not, there is no track and no spans.
  std::vector<Process>& processes() { return processes_; }
  std::vector<Thread>& threads() { return threads_; }
  // In the order of their numbers.
  const std::vector<uint32_t>& ThreadsOf(Process* process);

  // The open task with this id of a thread of the process; nullptr: there is none. Where nobody
  // asks for another thread's tasks, ids are not kept.
  Span* FindOpenTask(uint32_t process, IttId id);
  // Whether a task with this id is open in the domain, overlapped or not, but for the one that
  // began then on this track.
  bool IsOpenBeside(uint32_t process, uint32_t domain, IttId id, TrackId track, TimelineTime begin);

  TextId NameText(uint32_t process, uint32_t id);

 private:
  Process& AddProcess(uint32_t index);
  Thread& AddThread(uint32_t index);
  // Made now, if nobody has asked before.
  const OpenIds& OpenIdsOf(Process* process);

  const NodeContext& context_;
  const NodeTables* tables_;
  SharedTracks* shared_;
  TrackId node_track_ = kNoTrack;
  std::vector<Process> processes_;  // beside tables_->processes()
  std::vector<Thread> threads_;     // beside tables_->threads()
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_TRACK_TABLE_H_
