// SPDX-License-Identifier: Apache-2.0
// The cursor behind which every reader of a trace format stands (CTF today; XSpace, Kineto, perf
// later).
//
// A reader opens some bytes and offers *streams*. Each stream is walked by one cursor that yields
// event records in time order, in batches. A record is two words and a pointer into the mapped
// bytes: nothing is decoded until somebody asks. Ordering between streams is not a cursor's
// business.
//
//   EventClass    what an event of one kind looks like: its name, its fields in preorder
//   EventRecord   one event: time, class, where its bytes are
//   EventCursor   NextBatch() until it returns an empty span; Decode(record) for the fields
//
// Two ways to a field. Decode() gives all of them as a list, whatever the layout. Where the reader
// knows at load that a field lies at one place in every event of its class, FieldClass::place says
// where: look the field up once per class, then read it with one load per event (field_place.h).
//
// Lifetime: records and the strings in decoded values stay valid until the next NextBatch() or
// NextBefore() of the same cursor. Classes live as long as the reader. A cursor is used by one
// thread at a time; different cursors of one reader may be used by different threads.
#ifndef SYNCLINE_COMMON_EVENT_CURSOR_H_
#define SYNCLINE_COMMON_EVENT_CURSOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/loss.h"
#include "common/time.h"

namespace syncline {

enum class FieldType : uint8_t {
  kUnsigned,
  kSigned,
  kReal,
  kString,
  kEnum,
  kStruct,
  kArray,
  kVariant,
  kBlob,
};

// Which part of an event a field belongs to, in CTF's words.
enum class FieldScope : uint8_t {
  kPacketContext,
  kEventHeader,
  kStreamContext,
  kEventContext,
  kPayload
};

// Where a field lies in every event of its class, when that is known at load.
struct FieldPlace {
  enum class Kind : uint8_t {
    kNone,  // it varies: Decode() finds it
    kUnsigned,
    kSigned,
    kReal,
    kText,  // up to a NUL, which the reader has seen
  };
  Kind kind = Kind::kNone;
  uint8_t width = 0;  // bytes of a number: 1, 2, 4 or 8
  bool big = false;
  uint32_t offset = 0;  // bytes from EventRecord::bytes

  explicit operator bool() const { return kind != Kind::kNone; }
};

// A node of the static field tree. `path` is dotted, without the leading "_" of CTF identifiers.
struct FieldClass {
  std::string name;
  std::string path;
  FieldType type = FieldType::kUnsigned;
  FieldScope scope = FieldScope::kPayload;
  int display_base = 10;
  bool is_signed = false;  // kSigned; kEnum: read FieldValue::s instead of u
  uint32_t size_bits = 0;  // kUnsigned, kSigned, kEnum, kReal
  FieldPlace place;
  std::vector<FieldClass> children;  // members, options, or the one element class of an array
};

// Of one event not many more values are given: then arrays end early, and say how long they are.
// Short ones are whole, up to twice as many values.
inline constexpr size_t kEventValuesMax = size_t{1} << 19;
inline constexpr size_t kShortArray = 64;

// One decoded value. Values of one event form a preorder list: a struct, array or variant is
// followed by its `count` children (each with its own descendants).
struct FieldValue {
  const FieldClass* field = nullptr;
  FieldType type = FieldType::kUnsigned;
  uint32_t count = 0;  // kStruct, kArray, kVariant: number of direct children
  union {
    uint64_t u = 0;  // kArray: how many elements were recorded, of which `count` follow
    int64_t s;
    double d;
  };
  std::string_view text;  // kString, kBlob; kEnum: the label, empty when there is none

  uint64_t elements_left_out() const {
    return type == FieldType::kArray && u > count ? u - count : 0;
  }
  uint64_t AsUnsigned() const { return type == FieldType::kSigned ? static_cast<uint64_t>(s) : u; }
};

struct EventClass {
  uint32_t index = 0;              // dense within the reader
  std::string name;                // e.g. "syncline_itt:task_begin"
  std::vector<FieldClass> fields;  // context and payload fields, in the order they are decoded
  std::map<std::string, std::string> attributes;  // loglevel, model_emf_uri, ...
};

struct EventRecord {
  int64_t time_ns = 0;  // in the cursor's clock, ns
  const EventClass* event_class = nullptr;
  const uint8_t* bytes = nullptr;  // what FieldPlace counts from
  uint64_t reader_word = 0;        // for the reader's own use
};

struct StreamInfo {
  uint32_t index = 0;  // dense within the reader
  std::string name;    // e.g. "channel0_1", for people
  ClockId clock;       // node is filled in by whoever knows it; default 0
  std::string device;  // of a device's queue: "GPU 0"; else empty
  std::optional<uint32_t> cpu;
  uint64_t packets = 0;
  int64_t begin_ns = 0;  // of its packets, or events where those do not tell; 0, 0 when empty
  int64_t end_ns = 0;
};

// Receives the fields of some events of one class, one field of all events at a time, in preorder.
// Structs are not mentioned, only their members. What is passed is valid during the call.
class ColumnSink {
 public:
  virtual ~ColumnSink() = default;
  // One number per event: FieldValue::u (of enums without the label).
  virtual void OnNumbers(const FieldClass& field, std::span<const uint64_t> numbers) = 0;
  virtual void OnTexts(const FieldClass& field, std::span<const std::string_view> texts) = 0;
  // `counts` has the number of elements of each event, `elements` all of them, as for OnNumbers.
  virtual void OnArrays(const FieldClass& field, std::span<const uint32_t> counts,
                        std::span<const uint64_t> elements) = 0;
  // A value that all the events share, because it is their packet's.
  virtual void OnShared(const FieldValue& value, size_t events) = 0;
};

class EventCursor {
 public:
  virtual ~EventCursor() = default;

  virtual const StreamInfo& stream() const = 0;

  // The next records in time order; empty at the end. Damage never makes it fail: what cannot be
  // read is skipped and reported by losses(). An error means that the file itself went away (I/O).
  virtual absl::StatusOr<std::span<const EventRecord>> NextBatch() = 0;

  // The same for those who put streams in order, and want of all of them what there is up to an
  // instant: stops in front of the first record at or behind `until_ns` where the reader can.
  struct Stretch {
    std::span<const EventRecord> records;
    int64_t next_ns = kUnknownHi;  // no record to come is earlier; kUnknownHi: none is to come
  };
  virtual absl::StatusOr<Stretch> NextBefore(int64_t until_ns);
  // Asks memory for what that will read first. Pays where it is called a little before.
  virtual void Prefetch() const {}

  // Decodes every field of `record` (a record of the current batch) into `values`, which is cleared
  // first; reuse the vector to avoid allocation. False when the bytes do not decode.
  virtual bool Decode(const EventRecord& record, std::vector<FieldValue>* values) = 0;

  // The same for many records of one class, as Scan() gives them, field by field: several times as
  // fast where the reader can do it; very large events a few at a time. False, and nothing was
  // given to `sink`, where it cannot.
  virtual bool DecodeColumns(std::span<const EventRecord>, ColumnSink*) { return false; }

  // Changes from batch to batch whenever the values may that events share with their packet
  // (FieldScope::kPacketContext); 0: it may be any event's own.
  virtual uint64_t packet() const { return 0; }

  // What was found lost so far; complete after the end. Times are in the stream's clock.
  virtual std::span<const Loss> losses() const = 0;
};

// A trace: some streams with one set of event classes.
class TraceReader {
 public:
  virtual ~TraceReader() = default;
  virtual std::span<const StreamInfo> streams() const = 0;
  // Of all the events that may come, in the order of their indexes.
  virtual std::vector<const EventClass*> classes() = 0;
  // Key/value facts of the trace (hostname, tracer, buffering scheme, vpid, ...).
  virtual const std::map<std::string, std::string>& environment() const = 0;
  // REALTIME - trace clock in ns as the tracer sampled it, where it says so. For display and for
  // showing what a merge by wall clock would do; it never enters a clock model.
  virtual std::optional<int64_t> wall_clock_offset_ns() const = 0;
  // Names the clock that the trace's times are in (LTTng: the host's boot); "" where it has no
  // name. Two names are two clocks; the same name proves nothing (cloned machines, containers).
  virtual std::string clock_uuid() const { return {}; }
  // Losses known before any event was read: unreadable streams, missing files.
  virtual std::span<const Loss> losses() const = 0;
  // Events with time in [begin_ns, end_ns) only; packets outside are never read.
  virtual absl::StatusOr<std::unique_ptr<EventCursor>> Open(uint32_t stream_index,
                                                            int64_t begin_ns = kUnknownLo,
                                                            int64_t end_ns = kUnknownHi) = 0;

  // Gives every event of the trace to `visit`: some events of one class and one stream at a time,
  // in no particular order. For what needs no order this is the fastest way through a trace. The
  // cursor is the events' own, for Decode(); they are valid during the call. Returns what was found
  // lost; stops at the first error of `visit` or of reading.
  using Visit = absl::FunctionRef<absl::Status(EventCursor&, std::span<const EventRecord>)>;
  absl::StatusOr<std::vector<Loss>> Scan(Visit visit) { return ScanShared({&visit, 1}); }
  // The same by several threads: each of `visits` is called by one of them only, and every event
  // is given to one of them. Readers that cannot share it out give all to the first. What is lost
  // comes in the same order for any number of threads.
  virtual absl::StatusOr<std::vector<Loss>> ScanShared(std::span<const Visit> visits);
};

// For implementations of TraceReader::ScanShared: one call of `visit` per class in `batch`.
absl::Status VisitByClass(EventCursor& cursor, std::span<const EventRecord> batch,
                          TraceReader::Visit visit);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_EVENT_CURSOR_H_
