// SPDX-License-Identifier: Apache-2.0
#include "timeline/look_back.h"

#include <algorithm>
#include <unordered_map>

#include "common/status.h"
#include "timeline/schema.h"

namespace syncline::timeline {
namespace {

// The first step back. What is announced again while it is used (connections, process groups) is
// so once a second.
constexpr int64_t kFirstChunkNs = 2'000'000'000;
constexpr int64_t kGrowth = 4;  // of what is read, from one step to the next
// Behind the cut: ends of what it shows the begin of (collectives, transfers).
constexpr int64_t kBehindNs = 1'000'000'000;

class Finder {
 public:
  Finder(const NodeInput& node, const NodeTables& tables) : node_(node), tables_(tables) {}

  // False when a thread is met that only its announcement can name.
  absl::StatusOr<bool> WalkCut(int64_t begin_ns, int64_t end_ns) {
    return Walk(begin_ns, end_ns, [&](uint64_t thread, bool begins, uint32_t depth, int64_t ns) {
      const auto [entry, is_new] = threads_.try_emplace(thread);
      if (!is_new && entry->second.heard_ns <= ns) return;
      entry->second = {ns, begins ? depth : depth + 1};
    });
  }

  // What lies directly before what was walked so far. A level is open from its last begin on, and
  // at that the depth is the level's.
  absl::StatusOr<bool> WalkChunk(int64_t begin_ns, int64_t end_ns) {
    return Walk(begin_ns, end_ns, [&](uint64_t thread, bool, uint32_t depth, int64_t ns) {
      Thread& entry = threads_.try_emplace(thread, Thread{ns, depth}).first->second;
      entry.open = std::min(entry.open, depth);
    });
  }

  struct Found {
    uint64_t threads = 0;     // that were heard
    uint64_t unresolved = 0;  // of those
    uint64_t levels = 0;      // whose begin was not met
    bool operator==(const Found&) const = default;
  };
  Found found() const {
    Found result{.threads = threads_.size()};
    for (const auto& [key, thread] : threads_) {
      result.unresolved += thread.open > 0 ? 1 : 0;
      result.levels += thread.open;
    }
    return result;
  }

 private:
  struct Thread {
    int64_t heard_ns = 0;  // its first task in the cut
    uint32_t open = 0;     // levels whose begin was not met yet
  };

  template <class OnTask>
  absl::StatusOr<bool> Walk(int64_t begin_ns, int64_t end_ns, OnTask on_task) {
    for (size_t i = 0; i < node_.readers.size(); ++i) {
      const uint32_t owner = tables_.owner_of_reader(i);
      for (const StreamInfo& stream : node_.readers[i]->streams()) {
        SYNCLINE_ASSIGN_OR_RETURN(const std::unique_ptr<EventCursor> cursor,
                                  node_.readers[i]->Open(stream.index, begin_ns, end_ns));
        SYNCLINE_ASSIGN_OR_RETURN(const bool known, WalkStream(cursor.get(), owner, on_task));
        if (!known) return false;
      }
    }
    return true;
  }

  template <class OnTask>
  absl::StatusOr<bool> WalkStream(EventCursor* cursor, uint32_t owner, OnTask on_task) {
    for (;;) {
      SYNCLINE_ASSIGN_OR_RETURN(const std::span<const EventRecord> batch, cursor->NextBatch());
      if (batch.empty()) return true;
      for (const EventRecord& record : batch) {
        const EventKind kind = event_.Kind(record);
        if (!HasThread(kind) || !event_.Decode(cursor, record)) continue;
        const uint64_t thread = uint64_t{owner} << 32 | event_.U32(Field::kThread);
        if (thread != known_thread_) {
          if (!tables_.Knows(owner, event_.U32(Field::kThread))) return false;
          known_thread_ = thread;
        }
        if (kind != EventKind::kTaskBegin && kind != EventKind::kTaskEnd) continue;
        on_task(thread, kind == EventKind::kTaskBegin, event_.U32(Field::kDepth), record.time_ns);
      }
    }
  }

  const NodeInput& node_;
  const NodeTables& tables_;
  EventReader event_;
  std::unordered_map<uint64_t, Thread> threads_;  // by owner and key
  uint64_t known_thread_ = ~uint64_t{0};          // the last that was looked up
};

// Where the streams begin, as their packets' headers have it; kUnknownLo where they do not.
int64_t FirstNs(const NodeInput& node) {
  int64_t first_ns = kUnknownHi;
  for (const TraceReader* reader : node.readers) {
    for (const StreamInfo& stream : reader->streams()) {
      if (stream.begin_ns != 0) first_ns = std::min(first_ns, stream.begin_ns);
    }
  }
  return first_ns == kUnknownHi ? kUnknownLo : first_ns;
}

}  // namespace

absl::StatusOr<PartRead> ChoosePart(const NodeInput& node, const NodeTables& tables,
                                    const Interval& cut, int64_t most_ns) {
  const int64_t begin_ns = node.placement->ClockNs(cut.begin);
  const int64_t end_ns = node.placement->ClockNs(cut.end);
  Finder finder(node, tables);
  SYNCLINE_ASSIGN_OR_RETURN(bool known, finder.WalkCut(begin_ns, end_ns));
  const int64_t first_ns = FirstNs(node);
  most_ns = std::max(most_ns, kFirstChunkNs);
  PartRead result;
  int64_t walked_ns = 0;
  Finder::Found before;
  for (int64_t step_ns = kFirstChunkNs; known; step_ns *= kGrowth) {
    step_ns = std::min(step_ns, most_ns);
    if (begin_ns - step_ns <= first_ns) return PartRead{{kUnknownLo, end_ns + kBehindNs}, 0};
    SYNCLINE_ASSIGN_OR_RETURN(known, finder.WalkChunk(begin_ns - step_ns, begin_ns - walked_ns));
    if (!known) break;
    const Finder::Found found = finder.found();
    // What was walked in vain need not be read.
    if (walked_ns == 0 || found != before) {
      result = {{begin_ns - step_ns, end_ns + kBehindNs}, found.unresolved};
    }
    walked_ns = step_ns;
    before = found;
    if (found.levels == 0 || step_ns >= most_ns) return result;
  }
  return PartRead{};
}

}  // namespace syncline::timeline
