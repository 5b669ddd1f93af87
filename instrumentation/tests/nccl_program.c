// SPDX-License-Identifier: Apache-2.0
/* Ranks that call a profiler plugin as NCCL does, on GPUs that are simulated.
 *
 *   nccl_program FOLDER VERSION RANK RANKS LATE_US [ODD]
 *
 * Loads NCCL_PROFILER_PLUGIN and takes ncclProfiler_vVERSION out of it. In each round a rank
 * computes for 2 ms (LATE_US longer, if it is the last rank), and asks for an AllReduce, every
 * fourth round for a Broadcast, too. Its kernel begins 20 us later, and ends 300 us after the last
 * rank's began, as FOLDER/meeting, which the ranks share, tells. Stamps are of a clock that is
 * hours away from the host's, and 80 ppm faster. The program waits for its kernels, as a step of
 * training does. It goes on until FOLDER/stop is there, and then writes into FOLDER/truth-RANK how
 * often it was called back in vain, and of each kernel what it is, when it began and ended, by the
 * trace clock.
 *
 * ODD: "odd": channels that are announced and do not come, and that come and were not announced;
 * handles of things that are over; nothing where something is usual. These have names of their own.
 * "behind": at once, each collective gets the stamps of the one before, as where NCCL counts
 * otherwise than its kernels do. "sends": a send in each round, too, from when the plugin asks for
 * collectives on; "sent": from the begin on. "captured": each call is captured into a CUDA graph.
 *
 * What is laid out here is written down from NCCL's published headers, apart from what the plugin
 * believes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 16384, RANKS_MAX = 8, CHANNELS = 2, EVENT_BYTES = 160 };
/* nccl_profiler.h */
enum { GROUP = 1, COLL = 2, P2P = 4, KERNEL_CH = 64, GROUP_API = 256, COLL_API = 512 };
enum { P2P_API = 1024 };
enum { KERNEL_CH_STOP = 22 };

static int version, rank, ranks;
static char folder[4096];
static int mask;
static void* context;

/* The struct of version 4 and those that follow it: name, init, startEvent, stopEvent,
 * recordEventState, finalize. */
static void** plugin;
typedef int (*init_4)(void**, int*, const char*, uint64_t, int, int, int, void*);
typedef int (*init_5)(void**, uint64_t, int*, const char*, int, int, int, void*);
typedef int (*start_event)(void*, void**, void*);
typedef int (*stop_event)(void*);
typedef int (*record_state)(void*, int, void*);

static uint64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static uint64_t first_ns;
static uint64_t GpuTime(uint64_t host_ns) {
  const uint64_t since_ns = host_ns - first_ns;
  return host_ns + since_ns / 1000000 * 80 + (uint64_t)(rank + 3) * 3600000000000u;
}

static uint64_t GpuNow(void) { return GpuTime(Now()); }

/* ---- events, byte by byte */

static uint8_t event[EVENT_BYTES];
#define PUT(place, type, value)                \
  do {                                         \
    const type put = (type)(value);            \
    memcpy(event + (place), &put, sizeof put); \
  } while (0)

static void* Start(uint64_t kind) {
  void* handle = (void*)0x55; /* what was there before */
  if (version == 4) {
    event[0] = (uint8_t)kind; /* the rest is what the stack held */
    memset(event + 1, 0xAB, 7);
  } else {
    PUT(0, uint64_t, kind);
  }
  PUT(16, int, rank);
  ((start_event)plugin[2])(context, &handle, event);
  return handle;
}
static void Stop(void* handle) {
  if (handle) ((stop_event)plugin[3])(handle);
}

static void* StartCollective(const char* name, uint64_t number, int channels, int root) {
  memset(event, 0, sizeof event);
  PUT(24, uint64_t, number);
  PUT(32, const char*, name);
  PUT(56, size_t, 1024);
  PUT(64, int, root);
  PUT(72, const char*, "ncclFloat32");
  PUT(80, uint8_t, channels);
  PUT(81, uint8_t, 16);
  PUT(88, const char*, "RING");
  PUT(96, const char*, "LL");
  return Start(COLL);
}
static const char* odd = "";
static void Call(const char* name, int kind) {
  if (version == 4) return;
  memset(event, 0, sizeof event);
  Stop(Start(GROUP_API));
  memset(event, 0, sizeof event);
  PUT(24, const char*, name);
  PUT(kind == COLL_API ? 64 : 56, uint8_t, strcmp(odd, "captured") == 0);
  Stop(Start((uint64_t)kind));
}
static void* StartChannel(void* parent, int channel, uint64_t stamp) {
  memset(event, 0, sizeof event);
  PUT(8, void*, parent);
  PUT(24, uint8_t, channel);
  PUT(32, uint64_t, stamp);
  return Start(KERNEL_CH);
}
static void StopChannel(void* handle, uint64_t stamp) {
  if (!handle) return;
  uint64_t arguments[2] = {stamp, 0xDEAD};
  ((record_state)plugin[4])(handle, KERNEL_CH_STOP, arguments);
  Stop(handle);
}

/* ---- ranks meet: when each one's kernel began; 0: not yet */

static uint64_t (*meeting)[2][RANKS_MAX];
static uint64_t* last_round; /* in meeting[ROUNDS]; 0: not yet */

static uint64_t in_vain; /* handles that were given while nothing was recorded, and the like */

/* What NCCL tells of a kernel whose channels it sees begin then, and end now. */
static void TellChannels(void* handle, void** channels, uint64_t end_ns) {
  for (int i = 0; i < CHANNELS; i++) {
    StopChannel(channels[i], GpuTime(end_ns - (uint64_t)(CHANNELS - 1 - i) * 700));
  }
  (void)handle;
}

/* Of one round; `how`: 0 AllReduce, 1 Broadcast. */
static void Collective(uint64_t round, int how, FILE* truth) {
  const char* const name = how == 0 ? "AllReduce" : "Broadcast";
  const uint64_t number = how == 0 ? round : round / 4;
  const int asked_for = __atomic_load_n(&mask, __ATOMIC_RELAXED); /* as NCCL: for all of this one */
  if (asked_for & (COLL | COLL_API)) Call(name, COLL_API);
  const uint64_t launched_ns = Now();
  void* group = NULL;
  void* handle = NULL;
  if (asked_for & COLL) {
    memset(event, 0, sizeof event);
    group = Start(GROUP);
    handle = StartCollective(name, number, CHANNELS, 0);
    Stop(handle);
    Stop(group);
  }
  const uint64_t begin_ns = launched_ns + 20000;
  static uint64_t before_begin_ns, before_end_ns;
  const int behind = strcmp(odd, "behind") == 0;
  void* channels[CHANNELS] = {NULL};
  if (handle && behind && before_end_ns) {
    for (int i = 0; i < CHANNELS; i++) {
      channels[i] = StartChannel(handle, i, GpuTime(before_begin_ns));
    }
    TellChannels(handle, channels, before_end_ns);
  }
  while (Now() < begin_ns) {
  }
  for (int i = 0; i < CHANNELS && handle && !behind; i++) {
    channels[i] = StartChannel(handle, i, GpuTime(begin_ns - (uint64_t)i * 500));
  }
  __atomic_store_n(&meeting[round][how][rank], begin_ns, __ATOMIC_RELEASE);
  uint64_t last_ns = 0;
  for (int other = 0; other < ranks; other++) {
    uint64_t met_ns;
    while ((met_ns = __atomic_load_n(&meeting[round][how][other], __ATOMIC_ACQUIRE)) == 0) {
      usleep(20);
      if (Now() > begin_ns + 30000000000u) exit(3); /* that rank is gone */
    }
    if (met_ns > last_ns) last_ns = met_ns;
  }
  const uint64_t end_ns = last_ns + 300000;
  while (Now() < end_ns) usleep(20);
  before_begin_ns = begin_ns;
  before_end_ns = end_ns;
  if (!handle || behind) return;
  TellChannels(handle, channels, end_ns);
  fprintf(truth, "%s %lu %lu %lu\n", name, (unsigned long)number, (unsigned long)begin_ns - 500,
          (unsigned long)end_ns);
}

/* One that sends to the next rank, whose kernel takes 50 us, and one to itself, of which NCCL tells
 * nothing more. */
static void Send(void) {
  const int asked_for = __atomic_load_n(&mask, __ATOMIC_RELAXED);
  static int begun;
  begun = begun || asked_for & COLL || strcmp(odd, "sent") == 0;
  if (!begun) return;
  if (asked_for & (P2P | P2P_API)) Call("Send", P2P_API);
  if (!(asked_for & P2P)) return;
  for (int peer = rank; peer <= rank + 1; peer++) {
    memset(event, 0, sizeof event);
    PUT(24, const char*, "Send");
    PUT(40, const char*, "ncclInt8");
    PUT(48, size_t, 64);
    PUT(56, int, peer % ranks);
    PUT(60, uint8_t, 1);
    void* handle = Start(P2P);
    Stop(handle);
    const uint64_t begin_ns = Now();
    if (peer == rank) continue;
    void* channel = StartChannel(handle, 0, GpuTime(begin_ns));
    while (Now() < begin_ns + 50000) {
    }
    StopChannel(channel, GpuTime(begin_ns + 50000));
  }
}

static void Channel(void* parent, int number) {
  void* const channel = StartChannel(parent, number, GpuNow());
  StopChannel(channel, GpuNow());
}

static void Odd(uint64_t round) {
  if (!(__atomic_load_n(&mask, __ATOMIC_RELAXED) & COLL)) return;
  /* None of its channels comes; there are fewer than it said; more; one of nothing; twice the end.
   */
  Stop(StartCollective("Never", round, 2, 0));
  void* fewer = StartCollective("Fewer", round, 2, 0);
  Stop(fewer);
  Channel(fewer, 0);
  void* more = StartCollective("More", round, 1, 0);
  for (int i = 0; i < 3; i++) Channel(more, i);
  Stop(more);
  Stop(more);
  Channel(more, 0);
  Channel(NULL, 0);
  Stop(StartCollective("Nothing", round, 0, 0));
  void* unstamped = StartCollective("Unstamped", round, 1, 0);
  Stop(unstamped);
  StopChannel(StartChannel(unstamped, 0, 0), 0);
  /* Its kernel is over before it is enqueued. */
  void* early = StartCollective("Early", round, 1, 0);
  Channel(early, 0);
  Stop(early);
  memset(event, 0, sizeof event);
  if (Start(1u << 20) || Start(0)) in_vain++;
  ((record_state)plugin[4])(NULL, KERNEL_CH_STOP, NULL);
  ((record_state)plugin[4])(early, 3, NULL);
}

static int LoadPlugin(void) {
  const char* path = getenv("NCCL_PROFILER_PLUGIN");
  void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    fprintf(stderr, "no plugin: %s\n", path ? dlerror() : "NCCL_PROFILER_PLUGIN is not set");
    return 1;
  }
  char name[32];
  snprintf(name, sizeof name, "ncclProfiler_v%d", version);
  plugin = dlsym(library, name);
  if (!plugin) return 1;
  const uint64_t id = 0xC0FFEE0000000000u + 7;
  const int error = version == 4
                        ? ((init_4)plugin[1])(&context, &mask, NULL, id, 1, ranks, rank, NULL)
                        : ((init_5)plugin[1])(&context, id, &mask, NULL, 1, ranks, rank, NULL);
  return error;
}

int main(int count, char** words) {
  if (count < 6) return 2;
  snprintf(folder, sizeof folder, "%s", words[1]);
  version = atoi(words[2]);
  rank = atoi(words[3]);
  ranks = atoi(words[4]);
  const useconds_t late_us = rank == ranks - 1 ? (useconds_t)atoi(words[5]) : 0;
  if (count > 6) odd = words[6];
  first_ns = Now();
  if (ranks > RANKS_MAX || LoadPlugin() != 0) return 4;
  char path[4200];
  snprintf(path, sizeof path, "%s/meeting", folder);
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (ROUNDS + 1) * sizeof *meeting) != 0) return 5;
  meeting = mmap(NULL, (ROUNDS + 1) * sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (meeting == MAP_FAILED) return 5;
  last_round = &meeting[ROUNDS][0][0];
  snprintf(path, sizeof path, "%s/truth-%d", folder, rank);
  FILE* truth = fopen(path, "w");
  snprintf(path, sizeof path, "%s/ready-%d", folder, rank);
  fclose(fopen(path, "w"));
  snprintf(path, sizeof path, "%s/stop", folder);
  for (uint64_t round = 0; round < ROUNDS; round++) {
    /* The first rank says which round is the last, so that none waits for one that has ended: no
     * other is further than in the next one. */
    if (rank == 0 && *last_round == 0 && access(path, F_OK) == 0) {
      __atomic_store_n(last_round, round + 2, __ATOMIC_RELEASE);
    }
    const uint64_t last = __atomic_load_n(last_round, __ATOMIC_ACQUIRE);
    if (last != 0 && round >= last) break;
    usleep(2000 + late_us);
    Collective(round, 0, truth);
    if (round % 4 == 3) Collective(round, 1, truth);
    if (strcmp(odd, "odd") == 0) Odd(round);
    if (strcmp(odd, "sends") == 0 || strcmp(odd, "sent") == 0) Send();
  }
  fprintf(truth, "vain %lu mask %d\n", (unsigned long)in_vain, mask);
  fclose(truth);
  ((stop_event)plugin[5])(context);
  return mask == 0 ? 0 : 6;
}
