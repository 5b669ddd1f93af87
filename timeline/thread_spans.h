// SPDX-License-Identifier: Apache-2.0
// The nested tasks of one thread, in the presence of loss.
//
// Begin and end events both carry name and depth, so the stack finds itself again after events were
// lost, and never invents a duration:
//   - what must have ended unseen is closed at the last instant it was surely open: where the loss
//     began, or, without a declared loss, where the thread was last seen inside it (clipped_end);
//   - a level whose begin was not seen is a *placeholder*: nothing is pushed until its end tells
//     the name; then it is pushed late, from the first instant it was known open (clipped_begin).
//     On a thread without loss that is the start of coverage: the task was open when the recording
//     began;
//   - a placeholder whose end is not seen either leaves nothing.
//
// Of a timeline of which only an interval is shown, tasks that do not meet it are followed, but not
// pushed. Those that are open where it begins are pushed when the first thing inside of them is.
//
// Worked example, the two events in brackets lost:
//   begin a 0 @10, loss from @15, [end a 0 @20], [begin b 0 @30],
//   begin c 1 @40, end c 1 @50, end b 0 @60
// gives
//   a [10, 15], end clipped: it stays open until its level is closed under another name;
//   c [40, 50];
//   b [60, 60], begin clipped: it is known from its end alone.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_THREAD_SPANS_H_
#define SYNCLINE_TIMELINE_THREAD_SPANS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "timeline/emitter.h"
#include "timeline/open_ids.h"
#include "timeline/schema.h"
#include "timeline/sink.h"

namespace syncline::timeline {

// An instant in both of its forms.
struct Moment {
  NodeTime node;
  TimelineTime timeline;
};

class ThreadSpans {
 public:
  struct Task {
    TextId name = kNoText;
    TextId category = kNoText;
    // What begin and end are compared by: ids in the process, because a task that is known by its
    // function or carries its name in the event has a name at its begin only.
    uint32_t name_id = 0;
    uint32_t domain_id = 0;
    uint16_t depth = 0;
    IttId id;
  };

  ThreadSpans(Emitter* emitter, TrackId track, const Interval& shown)
      : emitter_(emitter), track_(track), shown_(shown) {}

  // Coverage of the thread begins (again): tasks that turn out to be open were open since `moment`.
  void CoverageBegins(const Moment& moment);
  // Coverage ends: what is open is clipped at `moment`, or at an end of a task behind it.
  void CoverageEnds(const Moment& moment);
  // A loss from `begin` up to `end_ns` (trace clock) may have hit this thread.
  void Lost(const Moment& begin, int64_t end_ns);

  // Deeper nesting is damage, not a program: such events are ignored and counted as recovered.
  static constexpr uint16_t kDepthMax = 1024;

  // The new span, for its arguments; valid until the next call. nullptr beyond kDepthMax.
  Span* Begin(const Task& task, const Moment& moment);
  void End(const Task& task, const Moment& moment);

  // The open span that metadata belongs to: the one with `id`, or, for no id, the one at `depth`.
  // nullptr when it is not open (or its begin and thus its place was lost).
  Span* FindOpen(IttId id, uint16_t depth);
  // The innermost task that is open; nullptr: there is none whose begin was seen.
  const Span* Innermost() const;
  // The same, where it is certain that no other lies in it: nullptr too where losses leave that
  // open.
  const Span* SurelyInnermost() const;
  // Whether a task with this id is open in the domain, but for the one that began then.
  bool IsOpenBeside(uint32_t domain_id, IttId id, TimelineTime begin) const;
  // No task is open, and none that was open before it was recorded either.
  bool IsOutside() const { return size_ == 0 && min_depth_ == 0; }
  // From now on `ids`, which outlives this, has the ids of what is open, as this thread's.
  void ListOpenIds(OpenIds* ids, uint32_t thread);

  // Any event of the thread: it is alive and inside its open tasks.
  void Seen(const Moment& moment) {
    last_ = moment;
    seen_ = true;
  }

  // The trace is over: what is open is clipped at the last event seen.
  void Finish();

  TrackId track() const { return track_; }
  size_t open_count() const { return size_; }
  // How often the stack had to find itself again.
  uint64_t recovered_count() const { return recovered_count_; }

 private:
  struct Open {
    Span span;
    IttId id;
    uint32_t name_id = 0;
    uint32_t domain_id = 0;
    bool placeholder = false;
    std::optional<Moment> sure_until;  // a loss followed: open until here, then only perhaps
    int64_t children_ns = 0;

    // `inner` lies in it, up to `end`: so it was open that long, if it was when `inner` began.
    void Holds(const Span& inner, const Moment& end) {
      if (!sure_until.has_value() || inner.begin > sure_until->timeline) return;
      if (end.timeline > sure_until->timeline) sure_until = end;
    }
  };

  // A new level, on top.
  Open& Push();
  // Fills the levels from size_ up to `depth` with placeholders.
  void FillUpTo(uint16_t depth, const Moment& moment);
  // `moment`, or the latest end of a span where that is later.
  Moment NotInside(const Moment& moment) const;
  // Closes the top where a loss before `now` made it doubtful, `otherwise` when none did.
  void CloseTopUnseen(const Moment& otherwise, TimelineTime now);
  // Pushes the begins that wait for something to be shown.
  void PushBegins();
  // Pushes the end of the top, whose time is set.
  void PushTop(const Moment& end, bool clipped);
  // Removes the top and pushes its end, if it is shown.
  void CloseTop(const Moment& end, bool clipped);
  // The last event, or the top's begin when there was none.
  Moment LastSeen() const;

  Emitter* emitter_;
  OpenIds* open_ids_ = nullptr;
  uint32_t thread_ = 0;  // in open_ids_
  TrackId track_;
  Interval shown_;
  std::vector<Open> levels_;  // by depth; open are the first
  size_t size_ = 0;           // of them
  size_t pushed_ = 0;         // levels whose begins were pushed; placeholders never are
  Moment last_;               // last event seen
  bool seen_ = false;
  Moment last_closed_{{}, {kUnknownLo}};  // the latest end of a span
  // Where placeholders begin while no event showed a lower depth since coverage began.
  std::optional<Moment> coverage_begin_;
  uint16_t min_depth_ = 0xffff;  // least depth shown since coverage began
  int64_t lost_until_ns_ = kUnknownLo;
  uint64_t recovered_count_ = 0;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_THREAD_SPANS_H_
