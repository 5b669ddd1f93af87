// SPDX-License-Identifier: Apache-2.0
// One process's profile by TensorFlow or JAX (XSpace), or by PyTorch's Kineto, as lanes on the
// timeline.
//
// Under the process a group "TensorFlow /job:worker/task:0", in it a lane per thread of the
// profile, named as TensorFlow names the thread, with nested spans: operators by name, their type
// as an argument; steps (RunGraph, with the step's id); what the executor does. Allocations make a
// counter per allocator. Marks of TensorFlow's own thread pools carry nothing to look at and stay
// out.
//
// Why not on the lanes of the ITT tasks: a line of a profile is numbered by a hash of TensorFlow's
// own, not by the kernel's thread id, so nothing says which ITT thread it is.
//
// Of a device there is a group ("GPU 0") with a lane per queue, and what else the profile has of
// it. JAX's are the same in a group "JAX"; its operators are instructions of XLA ("fusion.3").
//
// Kineto's are simpler: a group "PyTorch (Kineto)" with a lane per thread, and a group per device
// ("GPU 0") with a lane per queue; nested spans with what the file says as arguments. Their threads
// are the kernel's, but they stay beside the ITT tasks: both saw the same operators. What they mean
// beyond that is in kineto_observer.h.
//
// A span that the profiler saw in part does not exist in the profile: it has whole ones only. Spans
// that cross on one thread (made by hand) go to a second lane of that thread. No more than
// kOpenSpansMax are open on a lane, and a thread has no more than kThreadLanesMax: what is beyond
// is counted and left out, because both cost time and memory with every event, and profiles are
// files that anybody may have made.
//
// Sends and receives of tensors, and parts of collectives, are handed to their matchers on the way.
// Memory: open spans and one batch per thread of the profile. Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_PROFILE_LANES_H_
#define SYNCLINE_TIMELINE_PROFILE_LANES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "common/event_cursor.h"
#include "common/event_filter.h"
#include "timeline/device_work.h"
#include "timeline/emitter.h"
#include "timeline/kineto_observer.h"
#include "timeline/node_input.h"
#include "timeline/partitions.h"
#include "timeline/profile_collectives.h"

namespace syncline::timeline {

// Categories of spans.
inline constexpr char kOperatorCategory[] = "TensorFlow operators";
inline constexpr char kJaxOperatorCategory[] = "JAX operators";
inline constexpr char kTensorFlowName[] = "TensorFlow";  // these two begin all their categories
inline constexpr char kJaxName[] = "JAX";
inline constexpr char kTableName[] = "table of spans";
inline constexpr char kTableCategory[] = "span ";     // the row's kind follows
inline constexpr char kKinetoCategory[] = "Kineto ";  // Kineto's own follows
inline constexpr char kKinetoName[] = "PyTorch (Kineto)";

inline constexpr size_t kOpenSpansMax = 512;  // real ones: some tens, a hundred with Python's stack
inline constexpr size_t kThreadLanesMax = 64;  // real ones: one or two

// "/job:worker/task:0" from "/job:worker/replica:0/task:0": the replica is always 0.
std::string ShortTask(std::string_view task);

class ProfileLanes {
 public:
  struct Owner {
    Profiler profiler = Profiler::kTensorFlow;
    TrackId track = kNoTrack;  // of the process
    uint32_t node = 0;
    ProcessKey process;
    std::string task;
    uint32_t tensors = 0;  // its number in the matchers
    uint32_t collectives = 0;
    EventPatterns events;         // others are counted, as if there were nothing to see in them
    std::optional<Interval> cut;  // the partition is of what begins in it
  };
  // All outlive this. One per process: its profiles are added in order of time.
  ProfileLanes(const Owner& owner, WallPlacement* placement, Emitter* emitter,
               TensorMatcher* tensors, ProfileCollectives* collectives);

  // Pushes everything of one profile, and adds to `result` what it was.
  absl::Status Add(const ProfileInput& profile, ProfileResult* result);
  TrackId group();  // made at its first use
  // After the last profile: the graphs that ran.
  Partition TakePartition();
  // Likewise: what its devices did.
  ProcessDevices TakeDevices() { return kineto_.TakeDevices(); }

 private:
  enum class Kind : uint8_t {
    kOperator,
    kSend,
    kReceiveKey,
    kStep,
    kProcess,  // the executor works on ready nodes of one step
    kPosted,
    kReceived,
    kExecuted,  // a node has run
    kDone,      // all nodes of an executor have
    kExecutor,
    kAllocation,
    kRegion,  // a thread takes up work
    kPoolMark,
    kCollectiveGroup,  // a worker says of how many a group of collectives is
    kMark,             // the program marks a step
    kInstruction,      // of XLA, by a thread
    kDevice,           // work of a device, or a call that launches it
    kOther,
  };
  struct Class {
    Kind kind = Kind::kOther;
    TextId name = kNoText;
    TextId type = kNoText;  // of an operator
    std::string type_name;
    std::string node;        // of an operator: its name
    std::string collective;  // "allreduce"; empty for other operators
    TextId category = kNoText;
    const EventClass* event_class = nullptr;
    bool shown = true;
  };
  struct Open {
    Span span;
    Kind kind = Kind::kOther;
    int64_t step_id = 0;  // kProcess
    int64_t end_ns = 0;   // wall clock
    int64_t children_ns = 0;
  };
  struct Lane {
    TrackId track = kNoTrack;
    std::vector<Open> stack;
    TimelineTime pushed_until{kUnknownLo};
  };
  struct Thread {
    std::string name;       // in the profile; from its first lane on, that lane's
    std::string device;     // of a device's queue
    bool of_steps = false;  // of the device's
    std::vector<Lane> lanes;
  };
  struct Line {  // a thread of one profile
    std::unique_ptr<EventCursor> cursor;
    std::span<const EventRecord> batch;
    size_t next = 0;
    Thread* thread = nullptr;
    std::optional<uint64_t> allocated_bytes;  // by the work at hand
  };
  struct Event {  // the one at hand, decoded
    const Class* event_class = nullptr;
    NodeTime begin;
    NodeTime end;
    std::optional<TimelineTime> begin_at;
    std::optional<TimelineTime> end_at;
  };

  absl::Status OpenLines(TraceReader* reader);
  // False when the line is over.
  absl::StatusOr<bool> Refill(Line* line);
  void OnEvent(Line* line, const EventRecord& record, ProfileResult* result);
  // Of TensorFlow's.
  void OnOperator(const Event& event, Line* line, TrackId track);
  void OnTensor(const Event& event, Line* line, TrackId track);
  void OnPartition(const Event& event);
  void OnCollective(const Event& event, const Line& line);
  void OnCollectiveWork(const Event& event, const Line& line);
  void OnAllocation(const Event& event, Line* line);
  bool IsOfKineto() const { return owner_.profiler == Profiler::kKineto; }
  bool IsOfXSpace() const { return IsOfTensorFlow() || IsOfJax(); }
  bool IsOfTable() const { return owner_.profiler == Profiler::kTable; }
  bool IsOfTensorFlow() const { return owner_.profiler == Profiler::kTensorFlow; }
  bool IsOfJax() const { return owner_.profiler == Profiler::kJax; }
  const Class& ClassOf(const EventClass* event_class);
  // With a category, which all of Kineto's have, or a kind, which all of a table's have.
  Class ClassWith(const char* attribute, const char* prefix, const EventClass& event_class);
  Class Classify(const EventClass& event_class);
  static Kind KindOf(std::string_view name);
  // Of spans that have no category of their own; "TensorFlow steps".
  std::string CategoryOf(Kind kind) const;
  void OnDevice(const Event& event, const Thread& thread);
  // The lane on which the event nests, everything closed that ended before it; nullptr: too many.
  Lane* LaneFor(Thread* thread, const Event& event);
  void Begin(Lane* lane, const Event& event, uint64_t arrow);
  void CloseTop(Lane* lane);
  std::vector<Argument> ArgumentsOf(const Event& event);
  // The innermost open span of the kind at the event.
  static const Open* Enclosing(const Thread& thread, Kind kind, const Event& event);
  const FieldValue* Find(std::string_view field) const;
  int64_t Integer(std::string_view field) const;
  std::string_view Text(std::string_view field) const;
  void PushBounds(const ClockInterval& covered);
  std::string LaneName(const std::string& thread);
  TrackId AddTrack(TrackKind kind, std::string name, std::string unit = "");
  TrackId AddBelow(TrackId parent, TrackKind kind, std::string name, std::string unit = "");
  TrackId AddLane(const Thread& thread, std::string name);
  static KinetoObserver::Event OfDevice(const Event& event, const Thread& thread,
                                        std::span<const FieldValue> values);

  Owner owner_;
  WallPlacement* placement_;
  Emitter* emitter_;
  TensorMatcher* tensors_;
  ProfileCollectives* collectives_;
  PartitionBuilder partition_;
  KinetoObserver kineto_;
  TrackId group_ = kNoTrack;
  TrackId bound_track_ = kNoTrack;
  std::vector<Line> lines_;                  // of the profile at hand
  std::map<std::string, Thread> threads_;    // by name in the profile, which has a number in it
  std::map<std::string, int> name_uses_;     // of names without the number
  std::map<std::string, TrackId> counters_;  // by allocator
  std::map<std::string, TrackId> devices_;   // their groups
  std::unordered_map<const EventClass*, Class> classes_;
  std::vector<FieldValue> values_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_PROFILE_LANES_H_
