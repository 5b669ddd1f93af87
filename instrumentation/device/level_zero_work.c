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

/* ---- lists and commands */

struct level_zero_command {
  struct level_zero_command* next;    /* of its list, which is not immediate */
  struct level_zero_command* earlier; /* these two: of those that wait for the same events' end */
  struct level_zero_command** place;  /* NULL: it is not under way */
  struct list* list;                  /* NULL: of an immediate one */
  struct level_zero_device* device;
  ze_context_handle_t context;
  ze_event_handle_t event;
  struct level_zero_own_event* own;
  enum syncline_device_kind kind;
  uint32_t queue;
  uint64_t bytes;
  uint64_t launch;
  uint64_t called_ns;
  uint64_t open_ns; /* it was not over then */
  int returned;     /* the call that asked for it is over; before, who puts it there lets it go */
  int overtaken;    /* its list was executed again before it was over: which of them signals? */
  char name[];
};

struct list {
  struct list* next;
  ze_command_list_handle_t handle;
  ze_context_handle_t context;
  struct level_zero_device* device;
  uint32_t number; /* of an immediate one */
  int immediate;
  uint64_t missed; /* commands that are not kept: each execution loses so many */
  struct level_zero_command* first;
  struct level_zero_command** last;
};
static struct list* lists[LEVEL_ZERO_BUCKETS];
static uint32_t last_queue;

static struct queue {
  struct queue* next;
  ze_command_queue_handle_t handle;
  uint32_t number;
} * queues[LEVEL_ZERO_BUCKETS];

static struct level_zero_command* under_way[LEVEL_ZERO_BUCKETS]; /* by their events */
static uint32_t pending;

static void Begins(struct level_zero_command* command) {
  struct level_zero_command** place = &under_way[LevelZeroBucket(command->event)];
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
                                 .immediate = !command->list,
                                 .bytes = command->bytes,
                                 .launch = command->launch,
                                 .name = command->name};
  const uint64_t now_ns = syncline_clock_ns();
  const double turn_ns = command->device->turn_ns;
  const struct level_zero_span* span = &done.span;
  /* What did not run between its call and now, or was not over when it was looked at, has other
   * stamps than these; and of turns of the device's clock there may be one too many. */
  if ((double)(now_ns - command->open_ns) >= turn_ns / 2 ||
      LevelZeroPlace(command->device, command->event, &done.span) != 0 ||
      span->begin_ns + span->bound_ns < command->called_ns ||
      span->end_ns + span->bound_ns < command->open_ns ||
      (double)span->end_ns - (double)command->called_ns >= turn_ns ||
      span->end_ns > now_ns + span->bound_ns || LevelZeroIsDone(&done) != 0) {
    device_lost(command->device->name, 1);
  }
}

/* Of one under way. 1: it is over, and, of an immediate list, gone. */
static int TryRead(struct level_zero_command* command) {
  if (!command->returned) return 0;
  const uint64_t before_ns = syncline_clock_ns();
  const ze_result_t status = level_zero.event_status(command->event);
  if (status == ZE_RESULT_NOT_READY) {
    command->open_ns = before_ns;
    return 0;
  }
  if (status == ZE_RESULT_SUCCESS) {
    Done(command);
  } else {
    device_refused(command->launch);
  }
  IsOver(command);
  if (!command->list) Forget(command);
  return 1;
}

/* It is not waited for any longer, though it may yet signal its event. */
static void Lose(struct level_zero_command* command) {
  device_lost(command->device->name, 1);
  IsOver(command);
  if (command->list) {
    command->overtaken = 1;
  } else {
    command->own = NULL; /* not used again */
    if (command->returned) free(command);
  }
}

static struct list** FindList(ze_command_list_handle_t handle) {
  struct list** place = &lists[LevelZeroBucket(handle)];
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
  list->missed = 0;
}

static struct queue** FindQueue(ze_command_queue_handle_t handle) {
  struct queue** place = &queues[LevelZeroBucket(handle)];
  while (*place && (*place)->handle != handle) place = &(*place)->next;
  return place;
}

void LevelZeroQueueIsMade(ze_command_queue_handle_t handle) {
  if (!Lock()) return;
  struct queue** const place = FindQueue(handle);
  if (!*place) *place = calloc(1, sizeof **place);
  if (*place) {
    (*place)->handle = handle;
    (*place)->number = ++last_queue; /* one before it may have had its address */
  }
  Unlock();
}

void LevelZeroQueueEnds(ze_command_queue_handle_t handle) {
  if (!Lock()) return;
  struct queue** const place = FindQueue(handle);
  struct queue* const queue = *place;
  if (queue) *place = queue->next;
  free(queue);
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

/* Pools that other processes open, or have made, or whose events are of another kind. And events
 * that are not read: of these, and those that something else signals, too, than the one command
 * that is kept. */
static struct level_zero_set left_pools;
static struct level_zero_set left_events;

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
  command->context = list->context;
  command->list = list->immediate ? NULL : list;
  command->queue = list->number;
  return command;
}

/* What it said before is taken back. Who may yet signal it, though it is reset or used anew, makes
 * it useless. */
static void EventEnds(ze_event_handle_t event) {
  struct level_zero_command* next;
  for (struct level_zero_command* command = under_way[LevelZeroBucket(event)]; command;
       command = next) {
    next = command->earlier;
    if (command->event != event || TryRead(command)) continue;
    if (!command->own) LevelZeroPut(&left_events, event, 1);
    Lose(command);
  }
}

static void Ask(struct level_zero_command* command) {
  static uint64_t last_launch = LAUNCHES_OF_LEVEL_ZERO;
  command->launch = ++last_launch;
  command->called_ns = command->open_ns = syncline_clock_ns();
  if (!device_launch(command->launch, command->name)) command->launch = 0;
}

/* In the place of a command that is not kept. */
static struct level_zero_command missed;

/* NULL: it cannot be kept. */
static struct level_zero_command* Keep(struct list* list, const char* name,
                                       ze_kernel_handle_t kernel, ze_event_handle_t* event) {
  if (!list || !list->device || pending >= PENDING_MAX || LevelZeroHas(&left_events, *event))
    return NULL;
  struct level_zero_command* command = Make(list, name, kernel);
  if (!command) return NULL;
  if (!*event && (command->own = LevelZeroTakeEvent(list->context, list->device->handle))) {
    *event = command->own->handle;
  }
  command->event = *event;
  if (command->event && !command->own) EventEnds(command->event);
  if (!command->event || LevelZeroHas(&left_events, command->event)) {
    free(command);
    return NULL;
  }
  return command;
}

struct level_zero_command* LevelZeroAppends(ze_command_list_handle_t handle,
                                            enum syncline_device_kind kind, const char* name,
                                            ze_kernel_handle_t kernel, uint64_t bytes,
                                            ze_event_handle_t* event) {
  if (!IsRecorded() || !Lock()) return NULL;
  const uint64_t entered = syncline_cost_ticks();
  struct list* const list = *FindList(handle);
  struct level_zero_command* const command = Keep(list, name, kernel, event);
  if (command) {
    command->kind = kind;
    command->bytes = bytes;
    if (list->immediate) {
      Begins(command); /* another thread may see the event, and end it, before the call returns */
      device_spent(syncline_cost_ticks() - entered);
      Ask(command);
    }
  }
  Unlock();
  return command ? command : &missed;
}

/* `list`: NULL of one that is not known. */
static void Missed(struct list* list, int is_recorded) {
  if (list && !list->immediate) {
    list->missed++;
  } else if (is_recorded) {
    device_lost(list && list->device ? list->device->name : LEVEL_ZERO, 1);
  }
}

void LevelZeroAppended(ze_command_list_handle_t handle, struct level_zero_command* command,
                       int well) {
  if (!Lock()) return;
  if (!command || command == &missed) {
    if (well) Missed(*FindList(handle), command != NULL);
  } else {
    command->returned = 1;
    if (well && command->list) {
      *command->list->last = command;
      command->list->last = &command->next;
    } else if (!well || !command->place) {
      if (!well && command->launch) device_refused(command->launch); /* the program is told */
      if (command->place) IsOver(command);
      Forget(command);
    }
  }
  Unlock();
}

/* Of a list that is about to be executed. */
static void Execute(struct level_zero_command* command, uint32_t queue, int is_recorded) {
  if (command->place && !TryRead(command)) Lose(command);
  if (!command->own) EventEnds(command->event);
  command->launch = 0;
  if (command->overtaken || LevelZeroHas(&left_events, command->event)) {
    if (is_recorded) device_lost(command->device->name, 1);
    return;
  }
  if (!is_recorded) {
    command->overtaken = 1; /* it is not known when that is over */
    return;
  }
  if (command->own) level_zero.event_reset(command->own->handle);
  command->queue = queue;
  command->returned = 0;
  Begins(command);
  Ask(command);
}

void LevelZeroExecutes(ze_command_queue_handle_t handle, uint32_t count,
                       const ze_command_list_handle_t* executed) {
  if (!Lock()) return;
  const struct queue* const queue = *FindQueue(handle);
  const int is_recorded = IsRecorded();
  for (uint32_t i = 0; executed && i < count; i++) {
    struct list* const list = *FindList(executed[i]);
    if (!list) continue;
    if (is_recorded) device_lost(list->device ? list->device->name : LEVEL_ZERO, list->missed);
    for (struct level_zero_command* command = list->first; command; command = command->next) {
      Execute(command, queue ? queue->number : 0, is_recorded);
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
  LevelZeroPut(&left_pools, pool, is_left);
  Unlock();
}

void LevelZeroEventIsMade(ze_event_pool_handle_t pool, ze_event_handle_t event) {
  if (!Lock()) return;
  if (LevelZeroHas(&left_pools, pool)) LevelZeroPut(&left_events, event, 1);
  Unlock();
}

void LevelZeroEventEnds(ze_event_handle_t event, int gone) {
  if (!Lock()) return;
  EventEnds(event);
  if (gone) LevelZeroPut(&left_events, event, 0);
  Unlock();
}

void LevelZeroSignalsToo(ze_event_handle_t event) {
  if (!event || !Lock()) return;
  EventEnds(event);
  LevelZeroPut(&left_events, event, 1);
  Unlock();
}

void LevelZeroContextEnds(ze_context_handle_t context) {
  if (!Lock()) return;
  for (size_t i = 0; i < LEVEL_ZERO_BUCKETS; i++) {
    struct level_zero_command* next;
    for (struct level_zero_command* command = under_way[i]; command; command = next) {
      next = command->earlier;
      if (command->context == context && !TryRead(command)) Lose(command);
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
  const uint64_t begin_ns = syncline_clock_ns();
  uint32_t left = 1;
  for (size_t i = 0; left > 0 && i < LEVEL_ZERO_BUCKETS; i++) {
    if (!Lock()) return 0; /* between them the program's threads go on */
    ReadBucket(i);
    left = pending;
    Unlock();
  }
  return left + (uint32_t)LevelZeroTell(begin_ns);
}

void LevelZeroEnds(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  if (inside || pthread_mutex_timedlock(&mutex, &until) != 0) return;
  inside = 1;
  const int is_first = !ended;
  for (size_t i = 0; is_first && i < LEVEL_ZERO_BUCKETS; i++) ReadBucket(i);
  ended = 1;
  Unlock();
  if (is_first) LevelZeroTell(UINT64_MAX);
}

void LevelZeroIsForked(void) {
  ended = 1;
  inside = 0;
  pthread_mutex_init(&mutex, NULL);
}
