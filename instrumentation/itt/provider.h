// SPDX-License-Identifier: Apache-2.0
/* The table through which libsyncline_itt.so writes its events; see block/provider.h for why. */
#ifndef SYNCLINE_INSTRUMENTATION_ITT_PROVIDER_H_
#define SYNCLINE_INSTRUMENTATION_ITT_PROVIDER_H_

#include <stddef.h>
#include <stdint.h>

#include "instrumentation/itt/itt_abi.h"

#define SYNCLINE_ITT_PROVIDER_FILE "libsyncline_itt_provider.so"
/* The table's symbol: `const struct syncline_itt_emit`. */
#define SYNCLINE_ITT_PROVIDER_SYMBOL "syncline_itt_emit"

/* Thread, domain, name, depth: what nearly every event begins with. */
struct syncline_itt_where {
  uint32_t thread;
  uint32_t domain;
  uint32_t name; /* of metadata: the key */
  uint16_t depth;
  uint16_t number; /* of a task's begin or end: how many the thread had before */
};

/* Each returns 1 when a session takes the event, 0 when none does. docs/event-schema.md. */
struct syncline_itt_emit {
  /* The two that come by the million take their fields in registers. */
  int (*task_begin)(uint32_t thread, uint32_t domain, uint32_t name, uint16_t depth,
                    uint16_t number);
  int (*task_end)(uint32_t thread, uint32_t domain, uint32_t name, uint16_t depth, uint16_t number);
  int (*task_begin_id)(const struct syncline_itt_where* at, const struct itt_id* id,
                       const struct itt_id* parent);
  int (*task_begin_fn)(const struct syncline_itt_where* at, uint64_t function,
                       const struct itt_id* id, const struct itt_id* parent);
  int (*task_begin_text)(const struct syncline_itt_where* at, const char* name);
  int (*task_begin_overlapped)(const struct syncline_itt_where* at, const struct itt_id* id,
                               const struct itt_id* parent);
  int (*task_end_overlapped)(const struct syncline_itt_where* at, const struct itt_id* id);
  int (*metadata_i64)(const struct syncline_itt_where* at, const struct itt_id* id,
                      const int64_t* values, size_t count);
  int (*metadata_u64)(const struct syncline_itt_where* at, const struct itt_id* id,
                      const uint64_t* values, size_t count);
  /* LTTng-UST has no sequences of floating-point numbers: the bits travel. */
  int (*metadata_f64)(const struct syncline_itt_where* at, const struct itt_id* id,
                      const uint64_t* bits, size_t count);
  int (*metadata_text)(const struct syncline_itt_where* at, const struct itt_id* id,
                       const char* text);
  int (*metadata_name)(const struct syncline_itt_where* at, const struct itt_id* id, uint32_t text);
  int (*marker)(const struct syncline_itt_where* at, uint8_t scope, const struct itt_id* id);
  int (*frame_begin)(const struct syncline_itt_where* at, const struct itt_id* id);
  int (*frame_end)(const struct syncline_itt_where* at, const struct itt_id* id);
  int (*frame_submit)(const struct syncline_itt_where* at, const struct itt_id* id, uint64_t begin,
                      uint64_t end);
  int (*counter_i64)(const struct syncline_itt_where* at, int64_t value);
  int (*counter_u64)(const struct syncline_itt_where* at, uint64_t value);
  int (*counter_f64)(const struct syncline_itt_where* at, double value);
  /* `text`: a name; 0: the value counts. */
  int (*counter_metadata)(const struct syncline_itt_where* at, uint8_t kind, uint32_t text,
                          uint64_t value);
  int (*event_start)(const struct syncline_itt_where* at);
  int (*event_end)(const struct syncline_itt_where* at);
  int (*relation)(const struct syncline_itt_where* at, uint8_t kind, const struct itt_id* d,
                  const struct itt_id* e);
  int (*sync)(const struct syncline_itt_where* at, uint8_t kind, uint64_t object);
};

#endif /* SYNCLINE_INSTRUMENTATION_ITT_PROVIDER_H_ */
