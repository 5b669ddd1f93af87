// SPDX-License-Identifier: Apache-2.0
/* Events that are handed to the tracer whole.
 *
 * The probe that LTTng-UST's macros generate calls the tracer for each field, 6 ns each. The fields
 * of an event without texts and arrays lie one behind the other as the members of a struct do: one
 * call writes them all. The trace is the same, byte for byte, and so is what it says of the event
 * (docs/decisions/0010-events-are-handed-over-whole.md).
 *
 * A provider includes this, then its tracepoints, then says for each such event which struct it is
 * (SYNCLINE_WHOLE_PROBE), and lists them (SYNCLINE_WHOLE_EVENTS). What the macros generate
 * registers itself through syncline_register, which puts our probes in the place of theirs. What is
 * filtered, or not recorded but notified of, goes to the generated one all the same.
 *
 * Everything used here is the interface between the tracer and generated probes
 * (<lttng/ust-events.h>, "part of the ABI between the probe and UST").
 */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_WHOLE_EVENTS_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_WHOLE_EVENTS_H_

#include <lttng/tracepoint.h>
#include <lttng/ust-events.h>
#include <lttng/ust-ringbuffer-context.h>
#include <lttng/ust-tracer.h>
#include <stddef.h>
#include <string.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/read_lock.h"

typedef void (*syncline_probe)(void);

struct syncline_whole_event {
  const char* name;          /* without the provider's */
  syncline_probe probe;      /* arguments as the generated one's */
  syncline_probe* generated; /* where that one is put */
};

/* 1: `event` may be written whole. */
static inline int syncline_is_whole(const struct lttng_ust_event_common* event) {
  return __builtin_expect(event->type == LTTNG_UST_EVENT_TYPE_RECORDER && !event->eval_filter, 1);
}

/* `fields`: a struct of them with LTTNG_UST_RING_BUFFER_ALIGN_ATTR; `alignment` that of its
 * strictest, by lttng_ust_rb_alignof. */
static inline __attribute__((always_inline)) void syncline_write_whole(
    const struct lttng_ust_event_common* event, const void* fields, size_t bytes,
    size_t alignment) {
  struct lttng_ust_event_recorder* recorder = event->child;
  struct lttng_ust_channel_buffer* channel = recorder->chan;
  const struct lttng_ust_channel_common* common = channel->parent;
  if (!CMM_LOAD_SHARED(common->session->active) || !CMM_LOAD_SHARED(common->enabled) ||
      !CMM_LOAD_SHARED(event->enabled)) {
    return;
  }
  struct lttng_ust_probe_ctx probe;
  probe.struct_size = sizeof probe;
  probe.ip = __builtin_return_address(0);
  struct lttng_ust_ring_buffer_ctx at;
  lttng_ust_ring_buffer_ctx_init(&at, recorder, bytes, (int)alignment, &probe);
  if (channel->ops->event_reserve(&at) < 0) return;
  channel->ops->event_write(&at, fields, bytes, alignment);
  channel->ops->event_commit(&at);
}

/* The probe of the event `name`, which is a struct `type` that ends with the field `last`.
 * `arguments`: `void* event` and those of its tracepoint; `passed`: their names; then, what the
 * fields are. */
#define SYNCLINE_WHOLE_PROBE(name, type, last, strictest, arguments, passed, ...)        \
  static syncline_probe generated_##name;                                                \
  static SYNCLINE_HOT void Whole_##name arguments {                                      \
    if (!syncline_is_whole(event)) {                                                     \
      ((void(*) arguments)generated_##name) passed;                                      \
      return;                                                                            \
    }                                                                                    \
    const struct type whole = {__VA_ARGS__};                                             \
    syncline_write_whole(event, &whole, offsetof(struct type, last) + sizeof whole.last, \
                         lttng_ust_rb_alignof(strictest));                               \
  }
#define SYNCLINE_WHOLE(name) \
  { #name, (syncline_probe)Whole_##name, &generated_##name }
/* The provider's: SYNCLINE_WHOLE of each. */
#define SYNCLINE_WHOLE_EVENTS(...)                                                         \
  static struct lttng_ust_registered_probe* syncline_register(                             \
      const struct lttng_ust_probe_desc* generated) {                                      \
    static const struct syncline_whole_event whole[] = {__VA_ARGS__};                      \
    static struct syncline_whole_room room;                                                \
    return syncline_register_whole(generated, whole, sizeof whole / sizeof *whole, &room); \
  }

/* As many as a provider has. */
#define SYNCLINE_EVENTS_MAX 64

/* Registers what the macros generated, with the probes of `whole` in place of theirs. Called once
 * for each provider: what is registered lies in `room`. */
struct syncline_whole_room {
  struct lttng_ust_probe_desc provider;
  const struct lttng_ust_event_desc* events[SYNCLINE_EVENTS_MAX];
  struct lttng_ust_event_desc copies[SYNCLINE_EVENTS_MAX];
  struct lttng_ust_tracepoint_class classes[SYNCLINE_EVENTS_MAX];
};
static inline struct lttng_ust_registered_probe* syncline_register_whole(
    const struct lttng_ust_probe_desc* generated, const struct syncline_whole_event* whole,
    size_t count, struct syncline_whole_room* room) {
  if (generated->nr_events > SYNCLINE_EVENTS_MAX) return lttng_ust_probe_register(generated);
  room->provider = *generated;
  room->provider.event_desc = room->events;
  for (unsigned int i = 0; i < generated->nr_events; i++) {
    /* Everything says whose it is, and that is looked at. */
    struct lttng_ust_event_desc* event = &room->copies[i];
    struct lttng_ust_tracepoint_class* class = &room->classes[i];
    *event = *generated->event_desc[i];
    *class = *event->tp_class;
    event->probe_desc = class->probe_desc = &room->provider;
    event->tp_class = class;
    room->events[i] = event;
    for (size_t k = 0; k < count; k++) {
      if (strcmp(event->event_name, whole[k].name) != 0) continue;
      *whole[k].generated = class->probe_callback;
      class->probe_callback = whole[k].probe;
    }
  }
  struct lttng_ust_registered_probe* registered = lttng_ust_probe_register(&room->provider);
  /* Of a tracer that wants to know more than that; without either the program would be ended. */
  return registered ? registered : lttng_ust_probe_register(generated);
}

/* From here on: for the constructor that the macros generate. */
static struct lttng_ust_registered_probe* syncline_register(
    const struct lttng_ust_probe_desc* generated);
#define lttng_ust_probe_register syncline_register

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_WHOLE_EVENTS_H_ */
