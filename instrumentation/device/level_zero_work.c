// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "instrumentation/device/level_zero.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "instrumentation/block/block.h"
#include "instrumentation/device/level_zero_done.h"
#include "instrumentation/device/level_zero_events.h"

#define BUCKETS 1024
#define PENDING_MAX 65536
#define LAUNCHES_OF_LEVEL_ZERO (1ull << 40) /* beyond CUDA's and OpenCL's */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static __thread int inside;                               /* our own calls come back to us */
static int ended;
static volatile uint32_t served; /* the gate's value of the recording; 0: nothing is recorded */

static int Lock(void) {
  if (inside) return 0;
  pthread_mutex_lock(&mutex);
  inside = 1;
  if (!ended) return 1;
  inside = 0;
  pthread_mutex_unlock(&mutex);
  return 0;
}

static void Unlock(void) {
  inside = 0;
  pthread_mutex_unlock(&mutex);
}

void LevelZeroUses(const struct level_zero_calls* calls) { level_zero = *calls; }

void LevelZeroRecords(int on) { served = on ? *syncline_gate : 0; }

static size_t BucketOf(const void* handle) {
  return ((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15ull >> 54;
}

/* ---- lists and commands */

struct level_zero_command {
  struct level_zero_command* next;    /* of its list, which is not immediate */
  struct level_zero_command* earlier; /* these two: of those that wait for the same events' end */
  struct level_zero_command** place;  /* NULL: it is not under way */
  struct list* list;                  /* NULL: of an immediate one, or its list is gone */
  struct level_zero_device* device;
  ze_event_handle_t event;
  struct level_zero_own_event* own;
  enum syncline_device_kind kind;
  uint32_t queue;
  int immediate;
  uint64_t bytes;
  uint64_t launch;
  uint64_t called_ns;
  int returned; /* the call that asked for it is over; before, who puts it there lets it go */
  char name[];
};

struct list {
  struct list* next;
  ze_command_list_handle_t handle;
  ze_context_handle_t context;
  struct level_zero_device* device;
  uint32_t number; /* of an immediate one */
  int immediate;
  uint64_t unheard; /* commands that were not recorded as they were put into it */
  struct level_zero_command* first;
  struct level_zero_command** last;
};
static struct list* lists[BUCKETS];
static uint32_t last_queue;

static struct queue {
  struct queue* next;
  ze_command_queue_handle_t handle;
  uint32_t number;
} * queues;

static struct level_zero_command* under_way[BUCKETS]; /* by their events */
static uint32_t pending;

static void Begins(struct level_zero_command* command) {
  struct level_zero_command** place = &under_way[BucketOf(command->event)];
  command->earlier = *place;
  if (command->earlier) command->earlier->place = &command->earlier;
  command->place = place;
  *place = command;
  pending++;
}

static void IsOver(struct level_zero_command* command) {
  *command->place = command->earlier;
  if (command->earlier) command->earlier->place = command->place;
  command->place = NULL;
  pending--;
}

/* It is over, or was never asked for, and is in no list. */
static void Forget(struct level_zero_command* command) {
  if (command->own) LevelZeroGiveBack(command->own);
  free(command);
}

static void Done(const struct level_zero_command* command) {
  if (command->launch == 0) return; /* the recording had just ended */
  struct level_zero_done done = {.device = command->device,
                                 .kind = command->kind,
                                 .queue = command->queue,
                                 .immediate = command->immediate,
                                 .bytes = command->bytes,
                                 .launch = command->launch,
                                 .name = command->name};
  /* What did not run between its call and now has other stamps than these. */
  if (LevelZeroPlace(command->device, command->event, &done.span) != 0 ||
      done.span.begin_ns + done.span.bound_ns < command->called_ns ||
      done.span.end_ns > syncline_clock_ns() + done.span.bound_ns || LevelZeroIsDone(&done) != 0) {
    device_lost(command->device->name, 1);
  }
}

/* Of one under way. 1: it is over, and, of an immediate list, gone. */
static int TryRead(struct level_zero_command* command) {
  if (!command->returned) return 0;
  const ze_result_t status = level_zero.event_status(command->event);
  if (status == ZE_RESULT_NOT_READY) return 0;
  if (status == ZE_RESULT_SUCCESS) {
    Done(command);
  } else {
    device_refused(command->launch);
  }
  IsOver(command);
  if (!command->list) Forget(command);
  return 1;
}

/* It is not waited for any longer; an event of our own, which may yet be signalled, is not used
 * again. */
static void Lose(struct level_zero_command* command) {
  device_lost(command->device->name, 1);
  IsOver(command);
  command->own = NULL;
  if (!command->list && command->returned) free(command);
}

static struct list** FindList(ze_command_list_handle_t handle) {
  struct list** place = &lists[BucketOf(handle)];
  while (*place && (*place)->handle != handle) place = &(*place)->next;
  return place;
}

static void Empty(struct list* list) {
  while (list->first) {
    struct level_zero_command* command = list->first;
    list->first = command->next;
    if (command->place && !TryRead(command)) Lose(command);
    Forget(command);
  }
  list->last = &list->first;
  list->unheard = 0;
}

void LevelZeroQueueIsMade(ze_command_queue_handle_t handle) {
  if (!Lock()) return;
  struct queue* queue = queues;
  while (queue && queue->handle != handle) queue = queue->next;
  if (!queue && (queue = calloc(1, sizeof *queue))) {
    queue->handle = handle;
    queue->next = queues;
    queues = queue;
  }
  if (queue) queue->number = ++last_queue; /* one before it may have had its address */
  Unlock();
}

void LevelZeroListIsMade(ze_command_list_handle_t handle, ze_context_handle_t context,
                         ze_device_handle_t device, int immediate) {
  if (!Lock()) return;
  struct list** const place = FindList(handle);
  if (!*place) *place = calloc(1, sizeof **place);
  struct list* list = *place;
  if (list) {
    list->last = list->last ? list->last : &list->first;
    Empty(list);
    list->handle = handle;
    list->context = context;
    list->device = LevelZeroDeviceOf(device);
    list->immediate = immediate;
    list->number = immediate ? ++last_queue : 0;
  }
  Unlock();
}

void LevelZeroListIsEmptied(ze_command_list_handle_t handle, int gone) {
  if (!Lock()) return;
  struct list** const place = FindList(handle);
  struct list* const list = *place;
  if (list) Empty(list);
  if (list && gone) {
    *place = list->next;
    free(list);
  }
  Unlock();
}

/* Pools that other processes open, or have made, and their events: few, or none. */
struct left {
  struct left* next;
  const void* handle;
};
static struct left* left_pools;
static struct left* left_events;

static struct left** FindLeft(struct left** all, const void* handle) {
  while (*all && (*all)->handle != handle) all = &(*all)->next;
  return all;
}

static void SetLeft(struct left** all, const void* handle, int is_left) {
  struct left** const place = FindLeft(all, handle);
  struct left* const known = *place;
  if (known && !is_left) {
    *place = known->next;
    free(known);
  } else if (!known && is_left && (*place = calloc(1, sizeof **place))) {
    (*place)->handle = handle;
  }
}

static int IsRecorded(void) { return served != 0 && served == *syncline_gate; }

static struct level_zero_command* Make(struct list* list, const char* name,
                                       ze_kernel_handle_t kernel) {
  size_t bytes = name ? strlen(name) + 1 : 1;
  if (kernel && (level_zero.kernel_name(kernel, &bytes, NULL) != ZE_RESULT_SUCCESS || bytes == 0)) {
    bytes = 1;
  }
  struct level_zero_command* command = calloc(1, sizeof *command + bytes);
  if (!command) return NULL;
  if (name) memcpy(command->name, name, bytes);
  if (kernel && bytes > 1) level_zero.kernel_name(kernel, &bytes, command->name);
  command->device = list->device;
  command->immediate = list->immediate;
  command->list = list->immediate ? NULL : list;
  command->queue = list->number;
  return command;
}

/* Who signals an event anew has taken back what it said before. */
static void EventEnds(ze_event_handle_t event) {
  struct level_zero_command* next;
  for (struct level_zero_command* command = under_way[BucketOf(event)]; command; command = next) {
    next = command->earlier;
    if (command->event == event && !TryRead(command)) Lose(command);
  }
}

static void Ask(struct level_zero_command* command) {
  static uint64_t last_launch = LAUNCHES_OF_LEVEL_ZERO;
  command->launch = ++last_launch;
  command->called_ns = syncline_clock_ns();
  if (!device_launch(command->launch, command->name)) command->launch = 0;
}

struct level_zero_command* LevelZeroAppends(ze_command_list_handle_t handle,
                                            enum syncline_device_kind kind, const char* name,
                                            ze_kernel_handle_t kernel, uint64_t bytes,
                                            ze_event_handle_t* event) {
  if (!Lock()) return NULL;
  const uint64_t entered = syncline_cost_ticks();
  struct list* const list = *FindList(handle);
  struct level_zero_command* command = NULL;
  if (list && !IsRecorded()) {
    list->unheard++;
  } else if (!list || !list->device || pending >= PENDING_MAX || *FindLeft(&left_events, *event)) {
    device_lost(list && list->device ? list->device->name : LEVEL_ZERO, 1);
  } else if ((command = Make(list, name, kernel))) {
    if (!*event && (command->own = LevelZeroTakeEvent(list->context, list->device->handle))) {
      *event = command->own->handle;
    }
    command->event = *event;
    command->kind = kind;
    command->bytes = bytes;
    if (!command->event) {
      device_lost(list->device->name, 1);
      free(command);
      command = NULL;
    } else if (list->immediate) {
      EventEnds(command->event);
      Begins(command); /* another thread may see the event, and end it, before the call returns */
      device_spent(syncline_cost_ticks() - entered);
      Ask(command);
    }
  }
  Unlock();
  return command;
}

void LevelZeroAppended(struct level_zero_command* command, int well) {
  if (!Lock()) return;
  struct list* const list = command->list;
  command->returned = 1;
  if (well && list) {
    *list->last = command;
    list->last = &command->next;
  } else if (!well || !command->place) {
    if (!well && command->launch) device_refused(command->launch); /* the program is told */
    if (command->place) IsOver(command);
    Forget(command);
  }
  Unlock();
}

void LevelZeroExecutes(ze_command_queue_handle_t handle, uint32_t count,
                       const ze_command_list_handle_t* executed) {
  if (!Lock()) return;
  const struct queue* queue = queues;
  while (queue && queue->handle != handle) queue = queue->next;
  const int is_recorded = IsRecorded();
  for (uint32_t i = 0; executed && i < count; i++) {
    struct list* const list = *FindList(executed[i]);
    if (!list) continue;
    if (is_recorded) device_lost(list->device ? list->device->name : LEVEL_ZERO, list->unheard);
    for (struct level_zero_command* command = list->first; command; command = command->next) {
      EventEnds(command->event); /* of the execution before */
      if (command->own) level_zero.event_reset(command->own->handle);
      command->queue = queue ? queue->number : 0;
      command->launch = 0;
      if (!is_recorded) continue;
      command->returned = 0;
      Begins(command);
      Ask(command);
    }
  }
  Unlock();
}

void LevelZeroExecuted(uint32_t count, const ze_command_list_handle_t* executed, int well) {
  if (!Lock()) return;
  for (uint32_t i = 0; executed && i < count; i++) {
    struct list* const list = *FindList(executed[i]);
    for (struct level_zero_command* command = list ? list->first : NULL; command;
         command = command->next) {
      if (command->returned) continue;
      command->returned = 1;
      if (well) continue;
      if (command->launch) device_refused(command->launch);
      if (command->place) IsOver(command);
    }
  }
  Unlock();
}

void LevelZeroLeavesPool(ze_event_pool_handle_t pool, int is_left) {
  if (!Lock()) return;
  SetLeft(&left_pools, pool, is_left);
  Unlock();
}

void LevelZeroEventIsMade(ze_event_pool_handle_t pool, ze_event_handle_t event) {
  if (!Lock()) return;
  if (*FindLeft(&left_pools, pool)) SetLeft(&left_events, event, 1);
  Unlock();
}

void LevelZeroEventEnds(ze_event_handle_t event, int gone) {
  if (!Lock()) return;
  EventEnds(event);
  if (gone) SetLeft(&left_events, event, 0);
  Unlock();
}

void LevelZeroContextEnds(ze_context_handle_t context) {
  if (!Lock()) return;
  for (size_t i = 0; i < BUCKETS; i++) {
    struct level_zero_command* next;
    for (struct level_zero_command* command = under_way[i]; command; command = next) {
      next = command->earlier;
      const int is_of_it = command->own && LevelZeroIsOf(command->own, context);
      if (is_of_it && !TryRead(command)) Lose(command);
    }
    for (struct list* list = lists[i]; list; list = list->next) {
      if (list->context == context) Empty(list);
    }
  }
  LevelZeroEndPools(context);
  Unlock();
}

static void ReadBucket(size_t bucket) {
  struct level_zero_command* next;
  for (struct level_zero_command* command = under_way[bucket]; command; command = next) {
    next = command->earlier;
    TryRead(command);
  }
}

uint32_t LevelZeroRead(void) {
  uint32_t left = 1;
  for (size_t i = 0; left > 0 && i < BUCKETS; i++) {
    if (!Lock()) return 0; /* between them the program's threads go on */
    ReadBucket(i);
    left = pending;
    Unlock();
  }
  LevelZeroTell();
  return left;
}

void LevelZeroEnds(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  if (inside || pthread_mutex_timedlock(&mutex, &until) != 0) return;
  inside = 1;
  const int is_first = !ended;
  for (size_t i = 0; is_first && i < BUCKETS; i++) ReadBucket(i);
  ended = 1;
  Unlock();
  if (is_first) LevelZeroTell();
}

void LevelZeroIsForked(void) {
  ended = 1;
  inside = 0;
  pthread_mutex_init(&mutex, NULL);
}
