// SPDX-License-Identifier: Apache-2.0
// What a merged timeline consists of, and who receives it.
//
// The timeline is a stream: the builder pushes tracks, spans, instants, counters, flows and holes
// into sinks as it goes and never holds all events. Exports and the analysis are sinks.
//
// Order: OnTrack before anything on that track; per track, begins and ends in time order, with one
// exception: a span whose begin was not recorded (it was open when coverage began, or its begin was
// lost), and a frame that the program reports afterwards, are pushed late: `late` is set,
// OnSpanBegin and OnSpanEnd follow each other at once, and both may lie before what was pushed
// already. On a kThread track such a span encloses every deeper span that begins at the same
// instant. And the end of a span that was found to have ended unseen (clipped_end) may lie before
// what was pushed meanwhile, but not inside of a span that lies in it. Between tracks there is no
// order.
#ifndef SYNCLINE_TIMELINE_SINK_H_
#define SYNCLINE_TIMELINE_SINK_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/identity.h"
#include "common/loss.h"
#include "common/time.h"

namespace syncline::timeline {

using TrackId = uint32_t;
using TextId = uint32_t;  // index of an interned string; see TimelineSink::OnText
inline constexpr TrackId kNoTrack = 0xffffffff;
inline constexpr TextId kNoText = 0;  // the empty string

enum class TrackKind : uint8_t {
  kFleet,  // what concerns all nodes; no parent
  kNode,   // one per node; parent of its processes
  kProcess,
  kThread,  // nested spans
  kAsync,   // overlapped tasks, frames: spans that do not nest
  kCounter,
  kGroup,  // lanes and counters of a process that belong together
  kLane,   // of a group: nested spans, samples of code, or states of a thread
};

// For people: "worker-0 · rank 1 · python train.py".
struct Track {
  TrackId id = 0;
  TrackId parent = kNoTrack;
  TrackKind kind = TrackKind::kThread;
  std::string name;
  uint32_t node = 0;
  ProcessKey process;  // kProcess and below
  int32_t tid = 0;     // kThread, and kLane of a thread's samples or states
  std::string unit;    // kCounter
  std::vector<std::pair<std::string, std::string>>
      facts;  // kNode, kProcess: real pid, job, rank, ...; kCounter: device, maximum, ...
};

// [begin, end)
struct Interval {
  TimelineTime begin;
  TimelineTime end;

  bool Contains(TimelineTime time) const { return begin <= time && time < end; }
};

struct Argument {
  TextId key = kNoText;
  enum class Kind : uint8_t { kInt, kUint, kReal, kText } kind = Kind::kInt;
  union {
    int64_t i = 0;
    uint64_t u;
    double d;
    TextId text;
  };
};

// Without its arguments.
struct SpanFacts {
  TrackId track = 0;
  TextId name = kNoText;
  TextId category = kNoText;  // ITT domain
  uint16_t depth = 0;
  bool clipped_begin =
      false;  // its begin was not recorded: `begin` is the first instant it was open
  bool clipped_end =
      false;             // its end was not recorded: `end` is the last instant it was known open
  bool suspect = false;  // overlaps a loss that may have hit its thread (OnSpanEnd only)
  bool late = false;     // pushed out of order; see the head of this file
  TimelineTime begin;
  TimelineTime end;     // valid in OnSpanEnd only
  NodeTime node_begin;  // as recorded, for Difference and Order
  NodeTime node_end;
  int64_t self_ns = 0;  // duration less its children's, ns (OnSpanEnd of kThread and kLane only)
  // Arrows of Flow::between_begins: those with one number, from the first begin to each other.
  uint64_t arrow = 0;  // 0: none begins or ends with it
};

struct Span : SpanFacts {
  std::vector<Argument> arguments;  // complete in OnSpanEnd
};

struct Instant {
  TrackId track = 0;
  TextId name = kNoText;
  TextId category = kNoText;
  TimelineTime time;
  NodeTime node_time;
  std::vector<Argument> arguments;
};

// A place in a program.
struct CodeFrame {
  TextId function = kNoText;  // without a symbol: its library, in brackets
  TextId library = kNoText;   // its path; in brackets what is no file
  TextId file = kNoText;      // of the source; kNoText: not known
  int32_t line = 0;           // 0: not known

  auto operator<=>(const CodeFrame&) const = default;
};

// Where a thread was when it had used one more period of processor time.
struct CodeSample {
  TrackId track = 0;
  TimelineTime time;
  NodeTime node_time;
  int64_t period_ns = 0;
  std::vector<CodeFrame> stack;  // the outermost first; never empty
  size_t self = 0;               // the innermost of the program's own: behind it is the kernel
};

// What a thread did by its node's scheduler, on a lane of its own: a span, called as it is drawn
// ("CPU 3", "ready"), and the same by fields. Those of a lane come in order, and do not overlap.
struct ThreadState : Span {
  enum class State : uint8_t { kRunning, kReady, kUninterruptible, kStopped, kAsleep };
  // Who had the CPU meanwhile, and how long.
  struct Taker {
    TextId who = kNoText;
    int64_t ns = 0;
  };
  State state = State::kRunning;
  int32_t cpu = -1;            // kRunning, kReady
  TextId waker = kNoText;      // kRunning: who ended the pause before; kNoText: not known, or none
  std::vector<Taker> had_cpu;  // kReady
};

struct CounterValue {
  TrackId track = 0;
  TimelineTime time;
  double value = 0;
};

// An arrow from the span that sent to the one that received.
struct Flow {
  uint64_t id = 0;
  TrackId from = 0;
  TrackId to = 0;
  TimelineTime sent;
  TimelineTime received;
  TextId name = kNoText;
  // It leads from the begin of a span to that of another, and both have a SpanFacts::arrow. It is
  // pushed before the second.
  bool between_begins = false;
};

// Coverage ends, or loss: [begin, end] of `track` (a node, process or thread) is not, or not
// wholly, known.
struct Hole {
  TrackId track = 0;
  TimelineTime begin;
  TimelineTime end;
  Loss loss;  // reason, count, source, detail
};

// The clock bound of a node around an instant: distance to the ends of its interval, ns.
struct ClockBound {
  uint32_t node = 0;
  TimelineTime time;
  std::optional<int64_t> bound_ns;  // nullopt: unknown
};

// Something that happened to a node's clock: a step, a sleep, a change of rate, a time without
// samples. The node's intervals allow for it; the event says why they are as they are.
struct ClockEvent {
  uint32_t node = 0;
  TimelineTime begin;  // by estimate
  TimelineTime end;
  std::string name;  // "step", "suspend", "gap", ...
  std::string text;  // for people
};

class TimelineSink {
 public:
  virtual ~TimelineSink() = default;
  // Before the first use of `id`; ids are dense from 1.
  virtual void OnText(TextId id, std::string_view text) = 0;
  virtual void OnTrack(const Track& track) = 0;
  virtual void OnSpanBegin(const Span& span) = 0;
  virtual void OnSpanEnd(const Span& span) = 0;
  virtual void OnInstant(const Instant& instant) = 0;
  virtual void OnCounter(const CounterValue& value) = 0;
  // Few sinks show them.
  virtual void OnCodeSample(const CodeSample&) {}
  virtual void OnThreadState(const ThreadState&) {}
  virtual void OnFlow(const Flow& flow) = 0;
  virtual void OnHole(const Hole& hole) = 0;
  virtual void OnClockBound(const ClockBound& bound) = 0;
  virtual void OnClockEvent(const ClockEvent& event) = 0;
  // Everything was pushed. Errors of writing surface here.
  virtual absl::Status Finish() = 0;
};

// One that reads spans alone, and what it overrides beside.
class SpanSink : public TimelineSink {
 public:
  void OnSpanBegin(const Span&) override {}
  void OnInstant(const Instant&) override {}
  void OnCounter(const CounterValue&) override {}
  void OnFlow(const Flow&) override {}
  void OnHole(const Hole&) override {}
  void OnClockBound(const ClockBound&) override {}
  void OnClockEvent(const ClockEvent&) override {}
  absl::Status Finish() override { return absl::OkStatus(); }
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_SINK_H_
