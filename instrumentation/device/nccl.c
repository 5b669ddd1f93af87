// SPDX-License-Identifier: Apache-2.0
/* libsyncline_nccl.so: a profiler plugin of NCCL and RCCL (NCCL_PROFILER_PLUGIN). While a recording
 * runs, NCCL tells it which collectives the program asks for, and when the GPU worked at them.
 *
 * A collective (or a send, or a receive) takes one of the pool's places until the program is done
 * with asking for it and its kernel with all of its channels: then it is recorded, by the thread
 * that told so last, which is NCCL's. What NCCL holds of it, and of a channel, is a number that
 * names the place, never an address.
 *
 * The GPU's stamps are of a clock of its own. What is known of it comes with each collective: a
 * time of the host before which the GPU did not begin with it; and by how much the host's clock is
 * ahead at most, because a stamp is read after it was made.
 */
#define _GNU_SOURCE
#include "instrumentation/device/nccl.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "instrumentation/block/block.h"
#include "instrumentation/block/watch_thread.h"
#include "instrumentation/device/device.h"
#include "instrumentation/device/nccl_places.h"

#define SOURCE "NCCL"
/* Asked for all the time: these cost a call of ours each, and tell in time what forbids the rest.
 */
#define CALLS ((int)(NCCL_COLLECTIVE_CALL | NCCL_TRANSFER_CALL))
#define ALL ((int)(CALLS | NCCL_COLLECTIVE | NCCL_TRANSFER | NCCL_CHANNEL))
#define AGAIN_NS 50000000u /* NCCL writes the mask itself when a communicator begins */
#define COPIES 4           /* of NCCL in the process */
#define NONE UINT64_MAX
#define NOBODY UINT32_MAX

/* ---- communicators. Their memory is not given back: what is under way may name them. */

struct communicator {
  uint64_t id;
  uint32_t ranks;
  uint32_t rank;
  uint64_t enqueued_ns; /* the last collective of it whose enqueuing was over */
  uint32_t copy;        /* of NCCL */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards these four */
static struct nccl {
  int* mask; /* NULL: it has no communicator */
  uint32_t communicators;
} copies[COPIES];
static int watched;
static const char* refused; /* why an NCCL of this process is not asked at all */
static int forked;          /* this is a child of the process that the rest is about */

/* NCCL (2.28 to 2.30) counts what its kernels do, and waits for what it counts:
 *
 *   - A kernel writes what a receive and a send that belong together take by the receive's mask;
 *     NCCL waits for each by its own. Where the mask changes between the two calls, it waits for
 *     ever. So nothing is begun to be asked of a process that has sent, and of one that sends
 *     while it is asked, NCCL goes on being asked.
 *   - What is captured into a CUDA graph while nothing is asked is counted once, and done never or
 *     often. So nothing is asked of a process that has captured.
 *
 * Else the mask goes back where NCCL launches what was asked for: nothing is amid a group then in
 * that thread. What NCCL tells while nothing is recorded is dropped. */
static int transfers; /* any send or receive was asked for */
static int captures;  /* anything was captured into a graph */

static void SetMask(const struct communicator* of, int value) {
  int* const its = __atomic_load_n(&copies[of->copy].mask, __ATOMIC_RELAXED);
  if (its) __atomic_store_n(its, value, __ATOMIC_RELAXED);
}

/* ---- what is under way */

static void Record(const struct place* place) {
  if (place->gate != *syncline_gate) return; /* the recording that it began in is over */
  /* Channels of one kernel work together: else their stamps are of several. */
  if (place->stamps == 0 || place->end < place->begin || place->last_begin > place->first_end) {
    return device_lost(SOURCE, 1);
  }
  device_collective(&(struct device_collective){.call = place->call,
                                                .communicator = place->communicator->id,
                                                .ranks = place->communicator->ranks,
                                                .rank = place->communicator->rank,
                                                .name = place->name,
                                                .how = place->how,
                                                .number = place->number,
                                                .peer = place->peer,
                                                .bytes = place->bytes,
                                                .since_ns = place->since_ns,
                                                .begin = place->begin,
                                                .end = place->end,
                                                .ahead_ns = place->ahead_ns,
                                                .watched_ns = place->over_ns - place->seen_ns});
}

/* One of what was to come has come. */
static void CountDown(struct place* place, uint32_t life) {
  uint64_t state = __atomic_load_n(&place->state, __ATOMIC_ACQUIRE);
  uint64_t next;
  do {
    if (LIFE(state) != life || LEFT(state) == 0 || LEFT(state) >= RECORDED) return;
    next = LEFT(state) == 1 ? (uint64_t)life << 32 | RECORDED : state - 1;
  } while (!__atomic_compare_exchange_n(&place->state, &state, next, 1, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
  if (LEFT(next) != RECORDED) return; /* else nobody speaks of it any more */
  Record(place);
  NcclFreePlace(place, life, RECORDED);
}

/* ---- stamps of the GPU */

static void Least(uint64_t* value, uint64_t with) {
  uint64_t old = __atomic_load_n(value, __ATOMIC_RELAXED);
  while (with < old &&
         !__atomic_compare_exchange_n(value, &old, with, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}
static void Most(uint64_t* value, uint64_t with) {
  uint64_t old = __atomic_load_n(value, __ATOMIC_RELAXED);
  while (with > old &&
         !__atomic_compare_exchange_n(value, &old, with, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* It is in our hands: it was made before now. */
static void OnStamp(struct place* place, uint64_t stamp, int is_end) {
  if (stamp == 0 || stamp > INT64_MAX / 4) return;
  const uint64_t now_ns = syncline_clock_ns();
  const int64_t ahead_ns = (int64_t)now_ns - (int64_t)stamp;
  if (is_end) {
    Least(&place->first_end, stamp);
    Most(&place->over_ns, now_ns);
  } else {
    Most(&place->last_begin, stamp);
    Least(&place->seen_ns, now_ns);
  }
  int64_t old = __atomic_load_n(&place->ahead_ns, __ATOMIC_RELAXED);
  while (ahead_ns < old && !__atomic_compare_exchange_n(&place->ahead_ns, &old, ahead_ns, 1,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  Least(&place->begin, stamp);
  Most(&place->end, stamp);
}

/* ---- what the program asks for */

/* Of this thread's calls since it last enqueued anything, the first. */
static __thread uint64_t asked_ns;
static __thread int asked_is_over;

static void OnCall(void) {
  if (asked_ns != 0 && !asked_is_over) return;
  asked_ns = syncline_clock_ns();
  asked_is_over = 0;
}

static uint64_t BytesOf(const char* type) {
  static const struct {
    const char* name;
    uint64_t bytes;
  } kTypes[] = {
      {"ncclInt8", 1},    {"ncclUint8", 1},    {"ncclInt32", 4},      {"ncclUint32", 4},
      {"ncclInt64", 8},   {"ncclUint64", 8},   {"ncclFloat16", 2},    {"ncclFloat32", 4},
      {"ncclFloat64", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1},
  };
  for (size_t i = 0; type && i < sizeof kTypes / sizeof *kTypes; i++) {
    if (strcmp(type, kTypes[i].name) == 0) return kTypes[i].bytes;
  }
  return 0;
}

/* Text that NCCL lends for the call only. */
static void Append(char* to, size_t bytes, const char* separator, const char* text) {
  size_t used = strlen(to);
  if (!text || !*text) return;
  for (const char* part = used ? separator : ""; *part && used + 1 < bytes; part++) {
    to[used++] = *part;
  }
  for (; *text && used + 1 < bytes; text++) to[used++] = *text;
  to[used] = 0;
}

static void* Enqueue(struct communicator* communicator, const struct nccl_event* event,
                     int is_transfer) {
  const uint32_t gate = *syncline_gate;
  if (gate == 0) {
    if (!__atomic_load_n(&transfers, __ATOMIC_RELAXED)) SetMask(communicator, CALLS);
    return NULL;
  }
  /* To itself: there is no kernel. */
  if (is_transfer && event->transfer.peer == (int)communicator->rank) return NULL;
  uint32_t at, life;
  struct place* place = NcclTakePlace(gate, &at, &life);
  if (!place) {
    device_lost(SOURCE, 1);
    return NULL;
  }
  const struct nccl_collective* collective = &event->collective;
  const struct nccl_transfer* transfer = &event->transfer;
  const size_t count = is_transfer ? transfer->count : collective->count;
  const int peer = is_transfer ? transfer->peer : collective->root;
  place->communicator = communicator;
  __atomic_store_n(&place->call, NcclNextCall(), __ATOMIC_RELAXED);
  place->number = is_transfer ? NONE : collective->number;
  place->peer = peer < 0 ? NOBODY : (uint32_t)peer;
  place->bytes = count * BytesOf(is_transfer ? transfer->type : collective->type);
  /* Where no call was told of, or another thread's: kernels of a communicator are launched one
   * after the other, each before it is said to be enqueued. */
  place->since_ns =
      asked_ns ? asked_ns : __atomic_load_n(&communicator->enqueued_ns, __ATOMIC_RELAXED);
  asked_is_over = 1;
  place->begin = UINT64_MAX;
  place->end = 0;
  place->ahead_ns = INT64_MAX;
  place->last_begin = place->over_ns = 0;
  place->first_end = place->seen_ns = UINT64_MAX;
  place->stamps = 0;
  place->name[0] = place->how[0] = 0;
  Append(place->name, sizeof place->name, "",
         is_transfer ? transfer->function : collective->function);
  if (!is_transfer) {
    Append(place->how, sizeof place->how, "", collective->algorithm);
    Append(place->how, sizeof place->how, ", ", collective->protocol);
  }
  if (!device_collective_call(place->call, place->name)) {
    NcclFreePlace(place, life, CHANNELS_LATER);
    return NULL;
  }
  const uint32_t channels = is_transfer ? transfer->channels : collective->channels;
  uint64_t mine = (uint64_t)life << 32 | CHANNELS_LATER;
  if (!__atomic_compare_exchange_n(&place->state, &mine, (uint64_t)life << 32 | (channels + 1u), 0,
                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    return NULL;
  }
  return NcclHandleOf(at, life);
}

/* ---- what NCCL calls */

static int Begins(void* context, void** handle, struct nccl_event* event) {
  *handle = NULL;
  if (forked || !context) return 0; /* also where it is not asked at all */
  uint32_t life = 0;
  switch (event->kind) {
    case NCCL_COLLECTIVE_CALL:
      if (event->call.captured) __atomic_store_n(&captures, 1, __ATOMIC_RELAXED);
      if (*syncline_gate != 0) OnCall();
      break;
    case NCCL_TRANSFER_CALL:
      __atomic_store_n(&transfers, 1, __ATOMIC_RELAXED);
      if (event->transfer_call.captured) __atomic_store_n(&captures, 1, __ATOMIC_RELAXED);
      if (*syncline_gate != 0) OnCall();
      break;
    case NCCL_COLLECTIVE:
    case NCCL_TRANSFER:
      *handle = Enqueue(context, event, event->kind == NCCL_TRANSFER);
      break;
    case NCCL_CHANNEL: {
      struct place* place = event->parent ? NcclPlaceOf(event->parent, &life) : NULL;
      if (!place || NcclIsChannel(event->parent)) break;
      OnStamp(place, event->channel.stamp, 0);
      *handle = NcclChannelOf(event->parent);
      break;
    }
    default:
      break;
  }
  return 0;
}

static int Ends(void* handle) {
  uint32_t life = 0;
  struct place* place = NcclPlaceOf(handle, &life);
  if (!place) return 0;
  if (!NcclIsChannel(handle)) {
    Most(&place->communicator->enqueued_ns, syncline_clock_ns());
  }
  CountDown(place, life);
  return 0;
}

static int State(void* handle, int state, struct nccl_state* arguments) {
  uint32_t life = 0;
  if (state != NCCL_CHANNEL_STOPS || !arguments || !NcclIsChannel(handle)) return 0;
  struct place* place = NcclPlaceOf(handle, &life);
  if (!place) return 0;
  OnStamp(place, arguments->stamp, 1);
  __atomic_fetch_add(&place->stamps, 1, __ATOMIC_RELAXED);
  return 0;
}

/* ---- on and off */

/* Begins to ask, or goes on; NULL, or why not. Under the mutex. */
static const char* Ask(void) {
  const char* why = refused;
  for (int i = 0; i < COPIES; i++) {
    int* const mask = copies[i].mask;
    if (!mask) continue;
    if (__atomic_load_n(mask, __ATOMIC_RELAXED) == ALL) {
      why = NULL;
    } else if (__atomic_load_n(&captures, __ATOMIC_RELAXED)) {
      why = SOURCE ": the program captures its calls into CUDA graphs";
    } else if (__atomic_load_n(&transfers, __ATOMIC_RELAXED)) {
      why = SOURCE ": the program sends and receives";
    } else {
      __atomic_store_n(mask, ALL, __ATOMIC_RELAXED);
      why = NULL;
    }
  }
  return why;
}

static int IsUsed(void) {
  for (int i = 0; i < COPIES; i++) {
    if (copies[i].mask) return 1;
  }
  return refused != NULL;
}

static void* Watch(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "syncline-nccl");
  uint32_t acted = 0;
  uint32_t said = 0; /* in which recording it was said that NCCL's collectives are recorded */
  for (;;) {
    const volatile uint32_t* gate = syncline_gate;
    const uint32_t value = *gate;
    if (value != acted) device_follow();
    acted = value;
    pthread_mutex_lock(&mutex);
    const int used = IsUsed();
    const char* const why = value ? Ask() : NULL;
    pthread_mutex_unlock(&mutex);
    if (value && used && said != value) {
      device_tracing(why ? why : SOURCE, why ? SYNCLINE_DEVICE_NOT_TRACED : SYNCLINE_DEVICE_TRACED);
      said = value;
    }
    SynclineGateWait(gate, value, value ? AGAIN_NS : 0);
  }
  return NULL;
}

/* Its place in copies[], one more communicator of it; COPIES: there is none. Under the mutex. */
static uint32_t CopyOf(int* of) {
  uint32_t at = COPIES;
  for (uint32_t i = 0; i < COPIES; i++) {
    if (copies[i].mask == of) {
      copies[i].communicators++;
      return i;
    }
    if (!copies[i].mask && at == COPIES) at = i;
  }
  if (at == COPIES) return COPIES;
  copies[at].communicators = 1;
  __atomic_store_n(&copies[at].mask, of, __ATOMIC_RELAXED);
  return at;
}

static void OnFork(void) { forked = 1; }

/* `why_not`: it is not asked for anything. */
static int Begin(void** context, int* of, uint64_t id, int ranks, int rank, const char* why_not) {
  *context = NULL;
  if (forked || device_start() != 0) return 0;
  struct communicator* communicator = why_not ? NULL : syncline_arena(sizeof *communicator);
  pthread_mutex_lock(&mutex);
  if (!watched) {
    watched = SynclineStartThread(Watch) == 0;
    pthread_atfork(NULL, NULL, OnFork);
  }
  if (why_not) refused = why_not;
  const uint32_t copy = communicator && watched ? CopyOf(of) : COPIES;
  if (copy < COPIES) {
    communicator->id = id;
    communicator->ranks = (uint32_t)ranks;
    communicator->rank = (uint32_t)rank;
    communicator->copy = copy;
    *context = communicator;
    int nothing = 0;
    __atomic_compare_exchange_n(of, &nothing, CALLS, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (*syncline_gate) Ask();
  }
  pthread_mutex_unlock(&mutex);
  return 0;
}
static int Begin4(void** context, int* of, const char* name, uint64_t id, int nodes, int ranks,
                  int rank, void* log) {
  (void)name;
  (void)nodes;
  (void)log;
  return Begin(context, of, id, ranks, rank,
               SOURCE " 2.27: it does not tell whether the program captures CUDA graphs");
}
static int Begin5(void** context, uint64_t id, int* of, const char* name, int nodes, int ranks,
                  int rank, void* log) {
  (void)name;
  (void)nodes;
  (void)log;
  return Begin(context, of, id, ranks, rank, NULL);
}
/* Its host counts what a kernel did only while it is asked to, and the device always. */
static int Begin7(void** context, uint64_t id, int* of, const char* name, int nodes, int ranks,
                  int rank, void* log) {
  (void)name;
  (void)nodes;
  (void)log;
  return Begin(context, of, id, ranks, rank,
               SOURCE " 2.31 or newer: its stamps are right only if they are always asked for");
}

/* With its last communicator NCCL may be unloaded. */
static int End(void* context) {
  const struct communicator* const communicator = context;
  if (!communicator) return 0;
  pthread_mutex_lock(&mutex);
  struct nccl* const copy = &copies[communicator->copy];
  if (copy->communicators > 0 && --copy->communicators == 0) {
    SetMask(communicator, 0);
    __atomic_store_n(&copy->mask, NULL, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&mutex);
  return 0;
}

#define FUNCTIONS \
  { .event_begins = Begins, .event_ends = Ends, .event_state = State, .end = End }
SYNCLINE_EXPORT const struct nccl_profiler_4 ncclProfiler_v4 = {
    .name = "syncline", .begin = Begin4, .functions = FUNCTIONS};
SYNCLINE_EXPORT const struct nccl_profiler_5 ncclProfiler_v5 = {
    .name = "syncline", .begin = Begin5, .functions = FUNCTIONS};
SYNCLINE_EXPORT const struct nccl_profiler_5 ncclProfiler_v6 = {
    .name = "syncline", .begin = Begin5, .functions = FUNCTIONS};
SYNCLINE_EXPORT const struct nccl_profiler_5 ncclProfiler_v7 = {
    .name = "syncline", .begin = Begin7, .functions = FUNCTIONS};
