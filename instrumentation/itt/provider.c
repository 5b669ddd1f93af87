// SPDX-License-Identifier: Apache-2.0
/* libsyncline_itt_provider.so: the events of the provider `syncline_itt`. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "instrumentation/itt/provider.h"

/* Before the tracepoints. */
#include "instrumentation/block/whole_events.h"

#include "instrumentation/itt/tracepoints.h"

/* The two events that come by the million. */
struct Task {
  uint32_t thread;
  uint32_t domain;
  uint32_t name;
  uint16_t depth;
  uint16_t number;
} LTTNG_UST_RING_BUFFER_ALIGN_ATTR;

#define TASK_PROBE(name_of_event)                                                                 \
  SYNCLINE_WHOLE_PROBE(name_of_event, Task, number, uint32_t,                                     \
                       (void* event, uint32_t thread, uint32_t domain, uint32_t name,             \
                        uint16_t depth, uint16_t number),                                         \
                       (event, thread, domain, name, depth, number), thread, domain, name, depth, \
                       number)
TASK_PROBE(task_begin)
TASK_PROBE(task_end)

/* What oneDNN says of each of its primitives. */
struct MetadataName {
  uint32_t thread;
  uint32_t domain;
  uint32_t key;
  uint16_t depth;
  uint64_t d1;
  uint64_t d2;
  uint64_t d3;
  uint32_t text;
} LTTNG_UST_RING_BUFFER_ALIGN_ATTR;

SYNCLINE_WHOLE_PROBE(metadata_name, MetadataName, text, uint64_t,
                     (void* event, const struct syncline_itt_where* at, const struct itt_id* id,
                      uint32_t text),
                     (event, at, id, text), at->thread, at->domain, at->name, at->depth, id->d1,
                     id->d2, id->d3, text)

SYNCLINE_WHOLE_EVENTS(SYNCLINE_WHOLE(task_begin), SYNCLINE_WHOLE(task_end),
                      SYNCLINE_WHOLE(metadata_name))

#define EMIT(event, ...)                                              \
  do {                                                                \
    if (!lttng_ust_tracepoint_enabled(syncline_itt, event)) return 0; \
    lttng_ust_do_tracepoint(syncline_itt, event, __VA_ARGS__);        \
    return 1;                                                         \
  } while (0)

typedef const struct syncline_itt_where* At;
typedef const struct itt_id* Id;

static SYNCLINE_HOT int TaskBegin(uint32_t thread, uint32_t domain, uint32_t name, uint16_t depth,
                                  uint16_t number) {
  EMIT(task_begin, thread, domain, name, depth, number);
}
static SYNCLINE_HOT int TaskEnd(uint32_t thread, uint32_t domain, uint32_t name, uint16_t depth,
                                uint16_t number) {
  EMIT(task_end, thread, domain, name, depth, number);
}
static int TaskBeginId(At at, Id id, Id parent) { EMIT(task_begin_id, at, id, parent); }
static int TaskBeginFn(At at, uint64_t function, Id id, Id parent) {
  EMIT(task_begin_fn, at, function, id, parent);
}
static int TaskBeginText(At at, const char* name) { EMIT(task_begin_text, at, name); }
static int TaskBeginOverlapped(At at, Id id, Id parent) {
  EMIT(task_begin_overlapped, at, id, parent);
}
static int TaskEndOverlapped(At at, Id id) { EMIT(task_end_overlapped, at, id); }
static int MetadataI64(At at, Id id, const int64_t* values, size_t count) {
  EMIT(metadata_i64, at, id, values, count);
}
static int MetadataU64(At at, Id id, const uint64_t* values, size_t count) {
  EMIT(metadata_u64, at, id, values, count);
}
static int MetadataF64(At at, Id id, const uint64_t* bits, size_t count) {
  EMIT(metadata_f64, at, id, bits, count);
}
static int MetadataText(At at, Id id, const char* text) { EMIT(metadata_text, at, id, text); }
static int MetadataName(At at, Id id, uint32_t text) { EMIT(metadata_name, at, id, text); }
static int Marker(At at, uint8_t scope, Id id) { EMIT(marker, at, scope, id); }
static int FrameBegin(At at, Id id) { EMIT(frame_begin, at, id); }
static int FrameEnd(At at, Id id) { EMIT(frame_end, at, id); }
static int FrameSubmit(At at, Id id, uint64_t begin, uint64_t end) {
  EMIT(frame_submit, at, id, begin, end);
}
static int CounterI64(At at, int64_t value) { EMIT(counter_i64, at, value); }
static int CounterU64(At at, uint64_t value) { EMIT(counter_u64, at, value); }
static int CounterF64(At at, double value) { EMIT(counter_f64, at, value); }
static int CounterMetadata(At at, uint8_t kind, uint32_t text, uint64_t value) {
  EMIT(counter_metadata, at, kind, text, value);
}
static int EventStart(At at) { EMIT(event_start, at); }
static int EventEnd(At at) { EMIT(event_end, at); }
static int Relation(At at, uint8_t kind, Id d, Id e) { EMIT(relation, at, kind, d, e); }
static int Sync(At at, uint8_t kind, uint64_t object) { EMIT(sync, at, kind, object); }

__attribute__((visibility("default"))) const struct syncline_itt_emit syncline_itt_emit = {
    .task_begin = TaskBegin,
    .task_begin_id = TaskBeginId,
    .task_begin_fn = TaskBeginFn,
    .task_begin_text = TaskBeginText,
    .task_end = TaskEnd,
    .task_begin_overlapped = TaskBeginOverlapped,
    .task_end_overlapped = TaskEndOverlapped,
    .metadata_i64 = MetadataI64,
    .metadata_u64 = MetadataU64,
    .metadata_f64 = MetadataF64,
    .metadata_text = MetadataText,
    .metadata_name = MetadataName,
    .marker = Marker,
    .frame_begin = FrameBegin,
    .frame_end = FrameEnd,
    .frame_submit = FrameSubmit,
    .counter_i64 = CounterI64,
    .counter_u64 = CounterU64,
    .counter_f64 = CounterF64,
    .counter_metadata = CounterMetadata,
    .event_start = EventStart,
    .event_end = EventEnd,
    .relation = Relation,
    .sync = Sync,
};
