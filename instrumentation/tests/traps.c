// SPDX-License-Identifier: Apache-2.0
/* itt_traps SCENARIO: small programs that do with ITT what breaks collectors. Each says where it is
 * on stdout and waits on stdin, so that the test can switch recording in between; what it did is
 * known or said, and itt_traps_test.py compares.
 */
#define _GNU_SOURCE
#include "instrumentation/tests/traps.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static const struct itt_id none;

void TrapSay(const char* form, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, form);
  const int n = vsnprintf(line, sizeof line, form, arguments);
  va_end(arguments);
  if (n <= 0 || write(1, line, (size_t)n) != n) _exit(3);
}

void TrapSync(const char* text) {
  char c = 0;
  TrapSay("%s\n", text);
  while (c != '\n') {
    if (read(0, &c, 1) != 1) _exit(4);
  }
}

void TrapStart(struct TrapPart* trap, const char* domain, const char* name) {
  static_part_start(&trap->part);
  trap->domain = static_part_domain(&trap->part, domain);
  trap->name = static_part_string(&trap->part, name);
}

void TrapTask(struct TrapPart* trap) {
  ITT_CALL(&trap->part, task_begin, (trap->domain, none, none, trap->name));
  ITT_CALL(&trap->part, task_end, (trap->domain));
}

/* ---- the old half of the API ---- */

static int Legacy(void) {
  static struct TrapPart trap;
  struct static_part* part = &trap.part;
  TrapStart(&trap, "legacy", "task");
  static_part_load(part);
  void* frame = part->frame_create("old frame");
  const int mark = part->mark_create("old mark");
  char text[] = "first event, and what is beyond its length";
  const int first = part->event_create(text, 11);
  memset(text, '?', sizeof text - 1);
  const int second = part->event_create("second event", 0);
  TrapSync("ready");
  ITT_CALL(part, event_start, (first));
  ITT_CALL(part, event_start, (second));
  ITT_CALL(part, event_end, (first));
  ITT_CALL(part, event_end, (second));
  ITT_CALL(part, event_start, (0));         /* what a failed create returned */
  ITT_CALL(part, event_start, (123456789)); /* nobody's */
  for (int i = 0; i < 3; i++) {
    ITT_CALL(part, frame_begin, (frame));
    ITT_CALL(part, frame_end, (frame));
  }
  ITT_CALL(part, frame_begin, (NULL));
  ITT_CALL(part, mark, (mark, "parameter"));
  ITT_CALL(part, mark_global, (mark, NULL));
  ITT_CALL(part, task_begin_fn, (trap.domain, none, none, (void*)0x1234));
  ITT_CALL(part, task_end, (trap.domain));
  ITT_CALL(part, counter_inc_delta, (NULL, 5)); /* what a failed create returned */
  ITT_CALL(part, sync_create, (&trap, "mutex", "big lock", 2));
  ITT_CALL(part, sync_acquired, (&trap));
  TrapSync("done");
  return 0;
}

/* ---- several static parts, some of which arrive while recording, with other threads at work ----
 */

#define PARTS 48
#define HAMMERS 3
static struct TrapPart parts[PARTS];
static unsigned pairs[PARTS];
static int hammering = 1;

/* What the inline functions of ittnotify.h do: call through a pointer as soon as it is there. */
static void* Hammer(void* argument) {
  (void)argument;
  while (__atomic_load_n(&hammering, __ATOMIC_RELAXED)) {
    for (int i = 0; i < PARTS; i++) {
      struct static_part* part = &parts[i].part;
      __typeof__(part->task_begin) begin = __atomic_load_n(&part->task_begin, __ATOMIC_ACQUIRE);
      __typeof__(part->task_end) end = __atomic_load_n(&part->task_end, __ATOMIC_ACQUIRE);
      __typeof__(part->string_handle_create) create =
          __atomic_load_n(&part->string_handle_create, __ATOMIC_ACQUIRE);
      if (create && !create("made in the storm")) abort();
      if (!begin || !end || __atomic_load_n(&pairs[i], __ATOMIC_RELAXED) >= 200) continue;
      begin(parts[i].domain, none, none, parts[i].name);
      end(parts[i].domain);
      __atomic_fetch_add(&pairs[i], 1, __ATOMIC_RELAXED);
    }
  }
  return NULL;
}

static int GoingLive(void) {
  pthread_t threads[HAMMERS];
  for (int i = 0; i < PARTS; i++) {
    char text[32];
    snprintf(text, sizeof text, "task of part %d", i);
    TrapStart(&parts[i], "part", text);
  }
  for (int i = 0; i < HAMMERS; i++) pthread_create(&threads[i], NULL, Hammer, NULL);
  static_part_load(&parts[0].part); /* the collector itself starts in the storm */
  TrapSync("ready");
  for (int i = 1; i < PARTS; i++) static_part_load(&parts[i].part);
  for (int i = 1; i < PARTS; i++) {
    while (__atomic_load_n(&pairs[i], __ATOMIC_RELAXED) < 200) sched_yield();
  }
  __atomic_store_n(&hammering, 0, __ATOMIC_RELAXED);
  for (int i = 0; i < HAMMERS; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < PARTS; i++) TrapSay("pairs %d %u\n", i, pairs[i]);
  TrapSync("done");
  return 0;
}

/* ---- pause, resume, detach ---- */

static int Pausing(void) {
  static struct TrapPart names[4];
  for (int i = 0; i < 4; i++) {
    char text[16];
    snprintf(text, sizeof text, "task %d", i);
    TrapStart(&names[i], "pause", text);
    static_part_load(&names[i].part);
  }
  struct static_part* part = &names[0].part;
  ITT_CALL(part, pause, ()); /* before any recording */
  TrapSync("ready");
  TrapTask(&names[0]);
  ITT_CALL(part, task_begin, (names[1].domain, none, none, names[1].name));
  ITT_CALL(part, resume, ());
  TrapTask(&names[2]);
  ITT_CALL(part, task_end, (names[1].domain)); /* begun in the pause, and known */
  ITT_CALL(part, detach, ());
  TrapTask(&names[3]);
  ITT_CALL(part, resume, ());
  ITT_CALL(part, resume, ()); /* twice: said once */
  TrapSync("done");
  return 0;
}

/* ---- many threads, which end while recording ---- */

#define THREADS 500
static struct TrapPart crowd;
static pthread_barrier_t together;
static pthread_key_t late_key;

static void Late(void* value) {
  (void)value;
  TrapTask(&crowd); /* after the collector may have said good-bye to the thread */
}

static void* OfCrowd(void* argument) {
  char name[32];
  const int index = (int)(intptr_t)argument;
  snprintf(name, sizeof name, "member %d", index);
  pthread_setspecific(late_key, &crowd);
  ITT_CALL(&crowd.part, thread_set_name, (name));
  ITT_CALL(&crowd.part, task_begin, (crowd.domain, none, none, crowd.name));
  pthread_barrier_wait(&together);
  if (index % 2) ITT_CALL(&crowd.part, task_end, (crowd.domain)); /* others leave it open */
  return NULL;
}

static int Crowd(void) {
  static pthread_t threads[THREADS];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  pthread_key_create(&late_key, Late); /* before the collector's own key */
  TrapStart(&crowd, "crowd", "member");
  static_part_load(&crowd.part);
  pthread_barrier_init(&together, NULL, THREADS);
  TrapSync("ready");
  for (int i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], &attributes, OfCrowd, (void*)(intptr_t)i) != 0) abort();
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  TrapSync("done");
  return 0;
}

/* ---- what is said of a counter, before it is recorded and meanwhile, and of the current task ----
 */

static int Said(void) {
  static struct TrapPart trap;
  static char long_text[300];
  static wchar_t wide[] = L"wide";
  static const struct itt_id id = {1, 2, 3}, other_id = {4, 5, 6};
  struct static_part* part = &trap.part;
  uint64_t most = 4096, yes = 1;
  struct itt_context_metadata before[] = {{ITT_CONTEXT_UNITS, (void*)"B"},
                                          {ITT_CONTEXT_DEVICE, long_text},
                                          {ITT_CONTEXT_NAME, NULL},
                                          {ITT_CONTEXT_NAME_WIDE, wide},
                                          {ITT_CONTEXT_MAXIMUM, &most},
                                          {ITT_CONTEXT_TYPES, &yes},
                                          {ITT_CONTEXT_PCI_ADDRESS, (void*)""},
                                          {-1, &yes}};
  struct itt_context_metadata late[] = {{ITT_CONTEXT_IS_ABSOLUTE, &yes}};
  memset(long_text, 'x', sizeof long_text - 1);
  TrapStart(&trap, "said", "task");
  static_part_load(part);
  struct itt_domain* other = part->domain_create("other");
  void* counter = part->counter_create_typed("bytes", "said", ITT_METADATA_U64);
  ITT_CALL(part, bind_context_metadata_to_counter,
           (counter, sizeof before / sizeof *before, before));
  ITT_CALL(part, bind_context_metadata_to_counter, (NULL, 1, late));
  ITT_CALL(part, bind_context_metadata_to_counter, (counter, 1, NULL));
  ITT_CALL(part, bind_context_metadata_to_counter, (counter, 0, late));
  TrapSync("ready");
  for (int i = 0; i < 2; i++) ITT_CALL(part, counter_inc_delta, (counter, 5));
  ITT_CALL(part, bind_context_metadata_to_counter, (counter, 1, late));
  /* Made again it is the same counter; of another type it is another. */
  void* again = part->counter_create_typed("bytes", "said", ITT_METADATA_U64);
  part->counter_create_typed("bytes", "said", ITT_METADATA_S64);
  ITT_CALL(part, counter_inc_delta, (again, 5));
  ITT_CALL(part, task_begin, (trap.domain, id, none, trap.name));
  ITT_CALL(part, relation_add_to_current, (trap.domain, 5, other_id));
  ITT_CALL(part, relation_add_to_current, (other, 5, other_id)); /* it has no id in this one */
  ITT_CALL(part, task_end, (trap.domain));
  ITT_CALL(part, relation_add_to_current, (trap.domain, 5, other_id));
  TrapSync("done");
  return 0;
}

/* ---- a task that one recording sees begin is not the current one of the next ---- */

static int Across(void) {
  static struct TrapPart trap;
  static const struct itt_id id = {1, 2, 3}, other_id = {4, 5, 6};
  struct static_part* part = &trap.part;
  TrapStart(&trap, "across", "task");
  static_part_load(part);
  TrapSync("ready");
  ITT_CALL(part, task_begin, (trap.domain, id, none, trap.name));
  ITT_CALL(part, relation_add_to_current, (trap.domain, 5, other_id));
  TrapSync("between");
  ITT_CALL(part, relation_add_to_current, (trap.domain, 5, other_id));
  ITT_CALL(part, task_end, (trap.domain));
  TrapSync("done");
  return 0;
}

/* ---- begun, and recorded at once ---- */

static int Early(void) {
  static struct TrapPart early;
  TrapStart(&early, "early", "task");
  static_part_load(&early.part);
  TrapSync("ready");
  for (int i = 0; i < 200; i++) {
    TrapTask(&early);
    usleep(1000);
  }
  TrapSync("done");
  return 0;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int (*run)(void);
  } kScenarios[] = {{"legacy", Legacy},
                    {"going-live", GoingLive},
                    {"pause", Pausing},
                    {"crowd", Crowd},
                    {"said", Said},
                    {"across", Across},
                    {"early", Early},
                    {"fork", TrapFork},
                    {"exec", TrapExec},
                    {"executed", TrapExecuted},
                    {"exit", TrapExit},
                    {"signals", TrapSignals},
                    {"deep-exit", TrapDeepExit},
                    {"handler", TrapHandler}};
  for (size_t i = 0; argc == 2 && i < sizeof kScenarios / sizeof *kScenarios; i++) {
    if (strcmp(argv[1], kScenarios[i].name) == 0) return kScenarios[i].run();
  }
  if (argc == 3 && strcmp(argv[1], "unload") == 0) return TrapUnload(argv[2]);
  fprintf(stderr, "usage: itt_traps SCENARIO | itt_traps unload PLUGIN\n");
  return 2;
}
