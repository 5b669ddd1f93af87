// SPDX-License-Identifier: Apache-2.0
/* Scenarios of itt_traps about the life of processes and libraries: fork, exec, exit, dlclose,
 * signals. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "instrumentation/tests/traps.h"

static const struct itt_id none;
static struct TrapPart trap;
static int working = 1;

/* ---- fork without exec, with other threads inside ITT calls ---- */

#define CHILDREN 60

static void* Worker(void* argument) {
  char text[48];
  for (unsigned i = 0; __atomic_load_n(&working, __ATOMIC_RELAXED); i++) {
    snprintf(text, sizeof text, "new name %u of %d", i % 20000, (int)(intptr_t)argument);
    struct itt_string_handle* name = static_part_string(&trap.part, text);
    ITT_CALL(&trap.part, task_begin, (trap.domain, none, none, name));
    ITT_CALL(&trap.part, task_end, (trap.domain));
  }
  return NULL;
}

/* Threads whose first call this is: LTTng-UST takes a lock for each, which a fork takes too. */
static void* Mayfly(void* argument) {
  TrapTask(&trap);
  return argument;
}
static void* Hatchery(void* argument) {
  while (__atomic_load_n(&working, __ATOMIC_RELAXED)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, Mayfly, NULL) == 0) pthread_join(thread, NULL);
  }
  return argument;
}

static void Child(int number) {
  errno = 7;
  TrapTask(&trap); /* makes the child's files */
  if (errno != 7) _exit(9);
  for (int i = 0; i < 20; i++) TrapTask(&trap);
  struct itt_string_handle* name = static_part_string(&trap.part, "a child's own");
  ITT_CALL(&trap.part, task_begin, (trap.domain, none, none, name));
  if (number % 2) _exit(0);
  exit(0);
}

int TrapFork(void) {
  pthread_t threads[3];
  TrapStart(&trap, "fork", "task");
  static_part_load(&trap.part);
  pthread_create(&threads[0], NULL, Worker, (void*)1);
  pthread_create(&threads[1], NULL, Hatchery, NULL);
  pthread_create(&threads[2], NULL, Worker, (void*)2);
  TrapSync("ready");
  for (int i = 0; i < CHILDREN; i++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      Child(i);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      TrapSay("child %d ended with %d\n", i, status);
      _exit(5);
    }
  }
  TrapSync("forked");
  __atomic_store_n(&working, 0, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  return 0;
}

/* ---- exec ---- */

int TrapExec(void) {
  TrapStart(&trap, "exec", "before");
  static_part_load(&trap.part);
  TrapSync("ready");
  TrapTask(&trap);
  execl("/proc/self/exe", "itt_traps", "executed", (char*)NULL);
  return 1;
}

int TrapExecuted(void) {
  TrapStart(&trap, "exec", "after");
  static_part_load(&trap.part);
  TrapSync("executed");
  TrapTask(&trap);
  TrapSync("done");
  return 0;
}

/* ---- a library with a static part is unloaded, and its memory with it ---- */

static void* Load(const char* plugin, struct TrapPart** part) {
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  *part = library ? dlsym(library, "plugin_part") : NULL;
  if (!*part) {
    fprintf(stderr, "itt_traps: %s\n", dlerror());
    exit(1);
  }
  return library;
}

int TrapUnload(const char* plugin) {
  struct TrapPart* part;
  TrapStart(&trap, "main", "end");
  static_part_load(&trap.part);
  void* library = Load(plugin, &part);
  void (*start)(int) = (void (*)(int))dlsym(library, "plugin_start");
  start(100);
  ITT_CALL(&part->part, task_begin, (part->domain, none, none, part->name));
  dlclose(library);
  if (dlopen(plugin, RTLD_NOW | RTLD_NOLOAD)) return 6; /* it is really gone */
  TrapSync("ready");
  ITT_CALL(&trap.part, task_end, (trap.domain)); /* of the task whose names are unmapped */
  for (int i = 0; i < 20; i++) {
    library = Load(plugin, &part);
    start = (void (*)(int))dlsym(library, "plugin_start");
    start(i);
    TrapTask(part);
    dlclose(library);
  }
  TrapSync("done");
  return 0;
}

/* ---- calls at the end: of a thread, of the program ---- */

static pthread_key_t first_key, last_key;
static void AtThreadsEnd(void* value) {
  (void)value;
  TrapTask(&trap);
}
static void* Ending(void* argument) {
  pthread_setspecific(first_key, &trap);
  pthread_setspecific(last_key, &trap);
  TrapTask(&trap);
  return argument;
}
static void AtEnd(void) {
  struct itt_string_handle* name = static_part_string(&trap.part, "made at the end");
  ITT_CALL(&trap.part, task_begin, (trap.domain, none, none, name));
  ITT_CALL(&trap.part, task_end, (trap.domain));
}
__attribute__((destructor)) static void AtVeryEnd(void) {
  if (trap.part.task_begin) AtEnd();
}

int TrapExit(void) {
  pthread_t thread;
  TrapStart(&trap, "exit", "task");
  atexit(AtEnd); /* runs after the collector's own */
  pthread_key_create(&first_key, AtThreadsEnd);
  static_part_load(&trap.part);
  pthread_key_create(&last_key, AtThreadsEnd);
  atexit(AtEnd); /* runs before it */
  TrapSync("ready");
  for (int i = 0; i < 10; i++) {
    pthread_create(&thread, NULL, Ending, NULL);
    pthread_join(thread, NULL);
  }
  return 0;
}

/* Leaves more tasks open than a thread has room for at first, so that memory is given back as it
 * ends; and calls again after the collector has taken leave of it. */
static void AtThreadsEndTwice(void* value) {
  TrapTask(&trap);
  if (value == &trap) pthread_setspecific(first_key, &first_key);
}
static void* EndingDeep(void* argument) {
  pthread_setspecific(first_key, &trap);
  for (int i = 0; i < 400; i++) {
    ITT_CALL(&trap.part, task_begin, (trap.domain, none, none, trap.name));
  }
  return argument;
}

int TrapDeepExit(void) {
  pthread_t thread;
  TrapStart(&trap, "deep exit", "task");
  pthread_key_create(&first_key, AtThreadsEndTwice);
  static_part_load(&trap.part);
  TrapSync("ready");
  for (int i = 0; i < 10; i++) {
    pthread_create(&thread, NULL, EndingDeep, NULL);
    pthread_join(thread, NULL);
  }
  return 0;
}

/* ---- signal handlers that call ITT, inside ITT calls of every kind ---- */

static volatile int handled;
static int lock_object;

static void Storm(const char* who, unsigned number) {
  struct static_part* part = &trap.part;
  char text[48];
  snprintf(text, sizeof text, "%s %u", who, number % 5000);
  struct itt_string_handle* name = part->string_handle_create(text);
  if (!name || !part->domain_create(text)) abort();
  part->task_begin(trap.domain, none, none, name);
  ITT_CALL(part, metadata_str_add, (trap.domain, none, trap.name, text, 0));
  ITT_CALL(part, formatted_metadata_add, (trap.domain, trap.name, "x"));
  ITT_CALL(part, sync_create, (&lock_object + number % 64, "lock", text, 1));
  ITT_CALL(part, thread_set_name, (who));
  if (number % 64 == 0) part->counter_create_typed(text, "signals", ITT_METADATA_U64);
  part->task_end(trap.domain);
}

static void OnSignal(int number) {
  (void)number;
  const int next = handled + 1;
  handled = next;
  Storm("handler", (unsigned)next);
}

static void* Stormy(void* argument) {
  for (unsigned i = 0; __atomic_load_n(&working, __ATOMIC_RELAXED); i++) {
    Storm("thread", i);
    usleep(500);
  }
  return argument;
}

int TrapSignals(void) {
  pthread_t threads[2];
  TrapStart(&trap, "signals", "%s");
  static_part_load(&trap.part);
  struct sigaction action = {.sa_handler = OnSignal, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, Stormy, NULL);
  TrapSync("ready");
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (unsigned i = 0; handled < 250; i++) Storm("main", i);
  setitimer(ITIMER_REAL, &never, NULL);
  __atomic_store_n(&working, 0, __ATOMIC_RELAXED);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  TrapSync("done");
  return 0;
}
