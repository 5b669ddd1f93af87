// SPDX-License-Identifier: Apache-2.0
// A profile that PyTorch's Kineto has written (Chrome's JSON, in its own dialect), behind the
// cursor of common/event_cursor.h.
//
//   {"baseTimeNanoseconds": N, "traceEvents": [
//     {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 12.345,
//      "dur": 3.210, "args": {"Input Dims": [[256, 64], [64, 64]], ...}}, ...]}
//
// A stream is a thread, or a queue of a device ("GPU 0 stream 7"), named as the file labels the
// device. What else lies on a queue has a stream of its own beside it: marks of the program that
// Kineto lays around its kernels ("annotations"), waits ("synchronisation"), and what else there is
// under the name of its category. An event class is a name with a category (EventClass::attributes,
// "category") and the arguments that its events have; the fields of an event are its duration
// ("duration_ps", as in XSpaces) and these arguments, as texts. A kernel, a copy or a fill may have
// two more (launches.h): "operator", inside of which it was launched, and "_launched_ns", when a
// call in the file launched it.
//
//   event time = baseTimeNanoseconds + ts x 1000, in CLOCK_REALTIME
//
// Dialects: files of PyTorch before 2.4 have no baseTimeNanoseconds, and `ts` counts from 1970;
// those of 2021 have other categories ("Kernel", "Memcpy", "Operator") and queues ("stream 7"). The
// list of events may be the whole file. A file may be packed with gzip or zstd.
//
// `ts` is microseconds with three digits behind the point, read as an integer of ns: a double at
// this scale is off by hundreds of ns.
//
// Salvage: text that ends early, or is no JSON from some point on, gives the events before; the
// rest is in losses(). Quotes in names, which Kineto does not escape, are no damage. Events without
// a time that can be are counted as lost: all of them where nothing says when they were, and those
// of devices that are far from what the program did (CUPTI writes some that are a day off). Of an
// argument that an event has twice the first is kept, of a text the first 512 bytes.
//
// Memory: every event and every different text once. Thread-safety: as common/event_cursor.h says.
#ifndef SYNCLINE_KINETO_TRACE_H_
#define SYNCLINE_KINETO_TRACE_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_cursor.h"
#include "kineto/collectives.h"

namespace syncline::kineto {

// An event as it stands in the text.
struct TextEvent {
  std::string ph, category, name, pid, tid;
  std::optional<int64_t> ts_ns, duration_ns;                   // nullopt: none, or not a time
  std::vector<std::pair<std::string, std::string>> arguments;  // those worth having
};

// Microseconds as decimal text: ns; nullopt: no such number, or one that does not fit.
std::optional<int64_t> NanosecondsOf(std::string_view microseconds);

class TextReader;

class Trace final : public TraceReader {
 public:
  // NotFound, PermissionDenied, ResourceExhausted (unpacked it is too large); damage is no error.
  static absl::StatusOr<std::unique_ptr<Trace>> Open(const std::filesystem::path& path);
  // `source` names the text in losses.
  static std::unique_ptr<Trace> Of(std::string_view text, std::string source);

  std::span<const StreamInfo> streams() const override { return streams_; }
  std::vector<const EventClass*> classes() override;
  const std::map<std::string, std::string>& environment() const override { return environment_; }
  std::optional<int64_t> wall_clock_offset_ns() const override { return std::nullopt; }
  std::span<const Loss> losses() const override { return losses_; }
  absl::StatusOr<std::unique_ptr<EventCursor>> Open(uint32_t stream_index,
                                                    int64_t begin_ns = kUnknownLo,
                                                    int64_t end_ns = kUnknownHi) override;

  // CLOCK_REALTIME, ns, as the profiler itself says.
  std::optional<int64_t> profile_begin_ns() const { return profile_begin_ns_; }
  std::optional<int64_t> profile_end_ns() const { return profile_end_ns_; }
  uint64_t events() const { return events_.size() - left_out_; }  // without those at wrong times

  // Of the job, as the program knew it; nullopt: the file does not say.
  std::optional<int32_t> rank() const { return rank_; }
  std::optional<int32_t> world_size() const { return world_size_; }
  // Of the process whose threads are here; 0: none is.
  int32_t pid() const { return pid_; }
  const std::string& process_name() const { return process_name_; }
  // Kernels that say of which collective they are, by queue and time.
  std::vector<CollectiveKernel> collective_kernels() const;

 private:
  friend class Cursor;
  friend class TextReader;
  enum class Kind : uint8_t { kOther, kOperator, kCall, kWork, kMark };
  struct Class {
    EventClass event_class;
    Kind kind = Kind::kOther;
    uint32_t arguments = 0;               // fields that the file gives
    std::optional<uint32_t> correlation;  // which of the arguments
  };
  struct Event {
    int64_t begin_ns = 0;
    int64_t duration_ns = 0;
    const Class* of = nullptr;
    uint32_t first_argument = 0;  // in arguments_: as many as its class has
    uint32_t call = 0xffffffff;   // of a device's work: its launch, in events_
    uint32_t operator_event = 0xffffffff;
  };
  struct Stream {
    std::string pid, tid;
    Kind kind = Kind::kOther;      // kWork and kMark are a device's
    std::vector<uint32_t> events;  // in order of time
  };

  Trace() = default;
  static std::unique_ptr<Trace> Read(std::string_view text, std::string source, bool* damaged);
  static Kind KindOf(std::string_view category);
  void Add(TextEvent event);
  void Describe(const TextEvent& event);
  void Finish(const TextReader& reader);
  void Place(int64_t base_ns);
  // How many it left out.
  uint64_t LeaveOut(const std::function<bool(const Stream&, const Event&)>& is_wrong);
  void LeaveOutImpossible();
  bool IsOfDevice(const Stream& stream) const;
  void NameStream(const Stream& stream, StreamInfo* info) const;
  void FindProcess();
  void FindLaunches();
  std::string_view CorrelationOf(const Event& event) const;
  std::string_view ArgumentOf(const Event& event, std::string_view name) const;
  uint32_t StreamOf(const TextEvent& event, Kind kind);
  const Class* ClassOf(const TextEvent& event);
  std::string_view Intern(std::string_view text);
  void Lose(LossReason reason, std::optional<uint64_t> count, std::string detail);

  std::string source_;
  std::vector<Event> events_;
  std::vector<std::string_view> arguments_;
  std::unordered_map<std::string, std::unique_ptr<Class>> classes_;  // by all that they are
  std::unordered_map<std::string_view, std::string_view> interned_;
  std::deque<std::string> texts_;
  std::map<std::pair<std::string, std::string>, std::string> thread_names_;  // by pid and tid
  std::map<std::string, std::string> labels_, process_names_;                // by pid
  std::map<std::string, uint32_t> stream_numbers_;
  std::vector<Stream> stream_events_;
  std::vector<StreamInfo> streams_;  // beside them
  std::map<std::string, std::string> environment_;
  std::vector<Loss> losses_;
  uint64_t untimed_ = 0;
  uint64_t left_out_ = 0;
  std::optional<int64_t> profile_begin_ns_;
  std::optional<int64_t> profile_end_ns_;
  std::optional<int32_t> rank_, world_size_;
  int32_t pid_ = 0;
  std::string process_name_;
};

}  // namespace syncline::kineto

#endif  // SYNCLINE_KINETO_TRACE_H_
