// SPDX-License-Identifier: Apache-2.0
/* A program for tests of the tee, with static parts that come late or end early, objects from
 * before a collector was there, and several threads. It calls as the API's macros do: not in a
 * domain that is switched off. A line of stdin begins the calls. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "instrumentation/tests/static_part.h"

#define THREADS 4
#define TASKS 50
#define NAMES 500

static const struct itt_id none;
static struct static_part brief, first, second;

#define IN(domain, part, name, arguments)                             \
  do {                                                                \
    if ((domain) && (domain)->flags) ITT_CALL(part, name, arguments); \
  } while (0)

static void* Thread(void* argument) {
  struct static_part* part = argument;
  struct itt_domain* domain = static_part_domain(part, "threads");
  struct itt_string_handle* name = static_part_string(part, "task of a thread");
  for (int i = 0; i < TASKS; i++) {
    IN(domain, part, task_begin, (domain, none, none, name));
    IN(domain, part, task_end, (domain));
  }
  return NULL;
}

static void RunThreads(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&threads[i], NULL, Thread, i % 2 ? &first : &second);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void Tasks(struct static_part* part, struct itt_domain* domain,
                  struct itt_string_handle* name) {
  struct itt_id id = {1, 2, 3};
  IN(domain, part, task_begin, (domain, none, none, name));
  IN(domain, part, task_begin, (domain, id, none, name));
  IN(domain, part, metadata_str_add, (domain, id, name, "a text", 6));
  IN(domain, part, task_end, (domain));
  IN(domain, part, task_end, (domain));
  IN(domain, part, task_begin_overlapped, (domain, id, none, name));
  IN(domain, part, task_end_overlapped, (domain, id));
  IN(domain, part, marker, (domain, id, name, ITT_SCOPE_TASK));
  IN(domain, part, relation_add, (domain, id, 1, id));
}

/* A new name for each task, and the same ones once more. */
static void Names(struct static_part* part, struct itt_domain* domain) {
  for (int i = 0; i < 2 * NAMES; i++) {
    char text[32];
    snprintf(text, sizeof text, "name %d", i % NAMES);
    struct itt_string_handle* name = static_part_string(part, text);
    memset(text, 'x', sizeof text);
    IN(domain, part, task_begin, (domain, none, none, name));
    IN(domain, part, task_end, (domain));
  }
}

static void Formatted(struct static_part* part, struct itt_domain* domain) {
  struct itt_string_handle* few = static_part_string(part, "%d of %d");
  struct itt_string_handle* many =
      static_part_string(part, "%d %f %s %ld %d %d %f %s %f %f %f %f %f %f %f %f %c %Lf %d");
  IN(domain, part, formatted_metadata_add, (domain, few, 1, 2));
  IN(domain, part, formatted_metadata_add,
     (domain, many, 1, 2.5, "three", 4L, 5, 6, 7.5, "eight", 9.5, 10.5, 11.5, 12.5, 13.5, 14.5,
      15.5, 16.5, 'c', 17.5L, 18));
  struct itt_string_handle* long_one = static_part_string(
      part, "%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %s %Lf %s");
  IN(domain, part, formatted_metadata_add,
     (domain, long_one, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
      "twenty-one", 22.5L, "twenty-three"));
}

static void Times(struct static_part* part, struct itt_domain* domain) {
  const unsigned long long begin = part->get_timestamp();
  struct itt_id id = {9, 0, 0};
  IN(domain, part, frame_submit_v3, (domain, &id, begin, part->get_timestamp()));
  IN(domain, part, frame_begin_v3, (domain, NULL));
  IN(domain, part, frame_end_v3, (domain, NULL));
}

static void Numbers(struct static_part* part) {
  for (int i = 0; i < 2; i++) {
    const int event = part->event_create("an event", 8), other = part->event_create("other", 5);
    const int mark = part->mark_create("an event");
    ITT_CALL(part, event_start, (event));
    ITT_CALL(part, event_start, (other));
    ITT_CALL(part, event_end, (other));
    ITT_CALL(part, event_end, (event));
    ITT_CALL(part, mark, (mark, "parameter"));
    ITT_CALL(part, mark_global, (mark, NULL));
    void* frame = part->frame_create("old frame");
    ITT_CALL(part, frame_begin, (frame));
    ITT_CALL(part, frame_end, (frame));
  }
}

static void Histograms(struct static_part* part, const struct itt_domain* domain) {
  uint64_t value = 1;
  struct itt_histogram* histogram = NULL;
  if (part->histogram_create) {
    histogram = part->histogram_create(domain, "a histogram", ITT_METADATA_U64, ITT_METADATA_U64);
  }
  ITT_CALL(part, histogram_submit, (histogram, 1, &value, &value));
}

/* The first part that the collectors see. */
static void BeginAndEnd(struct static_part* part) {
  static_part_start(part);
  if (!static_part_load(part)) return;
  struct itt_domain* domain = static_part_domain(part, "brief");
  struct itt_string_handle* name = static_part_string(part, "brief name");
  IN(domain, part, task_begin, (domain, none, none, name));
  IN(domain, part, task_end, (domain));
  static_part_end(part);
}

int main(void) {
  BeginAndEnd(&brief);
  static_part_start(&first);
  struct itt_domain* domain = static_part_domain(&first, "early");
  struct itt_domain* off = static_part_domain(&first, "unwanted");
  struct itt_string_handle* name = static_part_string(&first, "early name");
  void* counter = static_part_counter(&first, "early counter", "early", ITT_METADATA_U64);
  if (!static_part_load(&first)) return 1;
  char line[16];
  ITT_CALL(&first, thread_set_name, ("main"));
  if (!fgets(line, sizeof line, stdin)) return 1;

  Tasks(&first, domain, name);
  Tasks(&first, off, name);
  ITT_CALL(&first, counter_inc_delta, (counter, 3));
  struct itt_domain* late_off = static_part_domain(&first, "unwanted");
  Tasks(&first, late_off, name);
  Names(&first, static_part_domain(&first, "late"));
  Formatted(&first, domain);
  Times(&first, domain);
  Numbers(&first);
  Histograms(&first, domain);
  Histograms(&first, off);

  static_part_start(&second);
  struct itt_domain* other = static_part_domain(&second, "early");
  struct itt_string_handle* other_name = static_part_string(&second, "early name");
  if (!static_part_load(&second)) return 1;
  Tasks(&second, other, other_name);
  Tasks(&second, domain, name); /* one part's objects in the other's hands */
  int object;
  ITT_CALL(&second, sync_create, (&object, "lock", "a", 0));
  ITT_CALL(&second, sync_acquired, (&object));
  uint64_t value = 7;
  void* late_counter = static_part_counter(&second, "late counter", "early", ITT_METADATA_U64);
  ITT_CALL(&second, counter_set_value, (late_counter, &value));
  RunThreads();

  ITT_CALL(&first, detach, ());
  ITT_CALL(&first, resume, ());
  Tasks(&first, domain, name);
  Tasks(&second, other, other_name);
  puts("done");
  return 0;
}
