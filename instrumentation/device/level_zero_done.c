// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "instrumentation/device/level_zero_done.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 64
#define QUEUES 1024 /* whose ends are kept */

static struct kept {
  struct kept* next;
  struct level_zero_done done;
  char name[];
} * all;
static size_t all_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of these two */

int LevelZeroIsDone(const struct level_zero_done* done) {
  const size_t name_bytes = strlen(done->name) + 1;
  struct kept* kept = malloc(sizeof *kept + name_bytes);
  if (!kept) return -1;
  kept->done = *done;
  memcpy(kept->name, done->name, name_bytes);
  kept->done.name = kept->name;
  pthread_mutex_lock(&mutex);
  kept->next = all;
  all = kept;
  all_count++;
  pthread_mutex_unlock(&mutex);
  return 0;
}

static int Order(const void* a, const void* b) {
  const struct level_zero_done* const one = &(*(const struct kept* const*)a)->done;
  const struct level_zero_done* const other = &(*(const struct kept* const*)b)->done;
  if (one->queue != other->queue) return one->queue < other->queue ? -1 : 1;
  const int64_t ticks =
      LevelZeroTicksFrom(one->device, other->span.begin_ticks, one->span.begin_ticks);
  return ticks < 0 ? -1 : ticks > 0;
}

static void KeepApart(struct level_zero_done* done) {
  static struct end {
    uint32_t queue;
    uint64_t ticks;
    uint64_t ns;
  } ends[QUEUES];
  struct end* const before = &ends[done->queue % QUEUES];
  struct level_zero_span* const span = &done->span;
  if (before->queue == done->queue && before->ns > span->begin_ns &&
      LevelZeroTicksFrom(done->device, before->ticks, span->begin_ticks) >= 0) {
    const uint64_t by_ns = before->ns - span->begin_ns;
    span->bound_ns += by_ns;
    span->begin_ns += by_ns;
    span->end_ns += by_ns;
  }
  *before = (struct end){done->queue, span->end_ticks, span->end_ns};
}

/* What is kept of before, which is nobody else's from here on. NULL: nothing. */
static struct kept** Take(uint64_t before_ns, size_t* count) {
  pthread_mutex_lock(&mutex);
  struct kept** const taken = all_count ? malloc(all_count * sizeof(struct kept*)) : NULL;
  struct kept** place = &all;
  while (taken && *place) { /* or the next time */
    struct kept* const kept = *place;
    if (kept->done.span.end_ns + kept->done.span.bound_ns < before_ns) {
      taken[(*count)++] = kept;
      *place = kept->next;
    } else {
      place = &kept->next;
    }
  }
  all_count -= *count;
  pthread_mutex_unlock(&mutex);
  return taken;
}

size_t LevelZeroTell(uint64_t before_ns) {
  static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&telling);
  size_t count = 0;
  struct kept** const taken = Take(before_ns, &count);
  if (count > 1) qsort(taken, count, sizeof *taken, Order);
  for (size_t i = 0; i < count; i++) {
    struct level_zero_done* const done = &taken[i]->done;
    KeepApart(done);
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, done->immediate ? "immediate list %u" : "queue %u", done->queue);
    device_work(&(struct device_work){.device = done->device->name,
                                      .queue = text,
                                      .name = done->name,
                                      .kind = done->kind,
                                      .launch = done->launch,
                                      .begin_ns = done->span.begin_ns,
                                      .end_ns = done->span.end_ns,
                                      .bound_ns = done->span.bound_ns,
                                      .bytes = done->bytes});
    free(taken[i]);
  }
  free(taken);
  pthread_mutex_unlock(&telling);
  pthread_mutex_lock(&mutex);
  const size_t left = all_count;
  pthread_mutex_unlock(&mutex);
  return left;
}
