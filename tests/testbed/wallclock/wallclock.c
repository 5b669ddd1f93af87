// SPDX-License-Identifier: Apache-2.0
// A wrong wall clock for every process of a simulated host.
//
// Linux does not virtualise CLOCK_REALTIME, so all simulated hosts would share one perfect wall
// clock and a merge by wall clock would look right here and be wrong in the field. This library,
// named in the host's own /etc/ld.so.preload, shifts the wall clock of everything that runs there
// by one function:
//
//   read:   what clock_gettime, gettimeofday, time and timespec_get return        + offset
//           software time stamps of received packets (SCM_TIMESTAMP*), likewise   + offset
//   wait:   absolute wall-clock deadlines handed to the kernel                    - offset
//
// Packet stamps are shifted too because otherwise a packet would arrive before it was sent.
// Deadlines are shifted back because the kernel compares them with the true clock: otherwise a job
// on a host that is an hour fast would wait an hour too long.
//
// The offset is read at each call, so that a test can step a running host's clock:
//   SYNCLINE_WALLCLOCK_FILE   file of one native int64, ns (default
//   /etc/syncline-testbed/wallclock), or SYNCLINE_WALLCLOCK_NS     a constant, decimal ns
// Neither: no shift.
//
// It can make the host's own clocks drift and wander, too: CLOCK_MONOTONIC, _RAW, _BOOTTIME and
// their like, by one function (drift.h), for LTTng, the agent and the job alike:
//   SYNCLINE_TESTBED_DRIFT    its numbers; or they stand in /etc/syncline-testbed/drift
// Deadlines on those clocks are handed on as they are: they come late or early by the drift so far,
// which is milliseconds.
//
// Not covered, and true: file times, hardware stamps, vDSO calls made by hand,
// CLOCK_REALTIME timers (timerfd, timer_settime).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#include "drift.h"

enum { kNsPerS = 1000000000, kNsPerUs = 1000 };
static const char kDefaultFile[] = "/etc/syncline-testbed/wallclock";
static const char kDriftFile[] = "/etc/syncline-testbed/drift";

static _Atomic int64_t g_constant_ns;
static _Atomic int64_t* _Atomic g_offset_ns = &g_constant_ns;

static struct Drift g_drift;
static atomic_bool g_drifts;

static void InitDrift(void) {
  char text[128] = "";
  const char* numbers = getenv("SYNCLINE_TESTBED_DRIFT");
  if (!numbers) {
    int fd = open(kDriftFile, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size < 0 ? 0 : size] = 0;
    numbers = text;
  }
  if (ParseDrift(numbers, &g_drift)) atomic_store(&g_drifts, true);
}

__attribute__((constructor)) static void Init(void) {
  InitDrift();
  const char* constant = getenv("SYNCLINE_WALLCLOCK_NS");
  if (constant) {
    atomic_store(&g_constant_ns, strtoll(constant, NULL, 10));
    return;
  }
  const char* path = getenv("SYNCLINE_WALLCLOCK_FILE");
  int fd = open(path ? path : kDefaultFile, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  // A short file would fault at the first read.
  if (lseek(fd, 0, SEEK_END) >= (off_t)sizeof(int64_t)) {
    void* map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) atomic_store(&g_offset_ns, (_Atomic int64_t*)map);
  }
  close(fd);
}

static int64_t OffsetNs(void) {
  return atomic_load_explicit(atomic_load_explicit(&g_offset_ns, memory_order_acquire),
                              memory_order_relaxed);
}

// The function that this library stands in front of; resolved at its first use, because other
// libraries' constructors may run before ours. `version`: for symbols of which libc keeps an old
// one.
static void* Next(_Atomic(void*)* slot, const char* name, const char* version) {
  void* function = atomic_load_explicit(slot, memory_order_acquire);
  if (!function) {
    function = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
    if (!function) abort();
    atomic_store_explicit(slot, function, memory_order_release);
  }
  return function;
}
#define NEXT_VERSION(name, version) \
  static _Atomic(void*) slot;       \
  __typeof__(&name) next = (__typeof__(&name))Next(&slot, #name, version)
#define NEXT(name) NEXT_VERSION(name, NULL)

static struct timespec Add(struct timespec t, int64_t ns) {
  int64_t seconds = ns / kNsPerS, rest = ns % kNsPerS;
  t.tv_sec += seconds;
  t.tv_nsec += rest;
  if (t.tv_nsec >= kNsPerS) {
    t.tv_nsec -= kNsPerS;
    t.tv_sec += 1;
  } else if (t.tv_nsec < 0) {
    t.tv_nsec += kNsPerS;
    t.tv_sec -= 1;
  }
  return t;
}

static int IsSteadyClock(clockid_t clock) {
  return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME ||
         clock == CLOCK_MONOTONIC_COARSE;
}

static int IsWallClock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

// ---- reads
// ---------------------------------------------------------------------------------------

EXPORT int clock_gettime(clockid_t clock, struct timespec* out) {
  NEXT(clock_gettime);
  int result = next(clock, out);
  if (result != 0) return result;
  if (IsWallClock(clock)) {
    *out = Add(*out, OffsetNs());
  } else if (atomic_load_explicit(&g_drifts, memory_order_relaxed) && IsSteadyClock(clock)) {
    *out = Add(*out, DriftedBy(&g_drift, out->tv_sec * (int64_t)kNsPerS + out->tv_nsec));
  }
  return result;
}

EXPORT int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  NEXT(gettimeofday);
  int result = next(out, zone);
  if (result == 0) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / kNsPerUs;
  }
  return result;
}

EXPORT time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

EXPORT int timespec_get(struct timespec* out, int base) {
  if (base != TIME_UTC) return 0;
  return clock_gettime(CLOCK_REALTIME, out) == 0 ? base : 0;
}

// ---- packet stamps
// -------------------------------------------------------------------------------

static void ShiftTimespec(unsigned char* at) {
  struct timespec t;
  memcpy(&t, at, sizeof t);
  if (t.tv_sec == 0 && t.tv_nsec == 0) return;  // "no stamp"
  t = Add(t, OffsetNs());
  memcpy(at, &t, sizeof t);
}

static void ShiftTimeval(unsigned char* at) {
  struct timeval v;
  memcpy(&v, at, sizeof v);
  struct timespec t = Add((struct timespec){v.tv_sec, v.tv_usec * kNsPerUs}, OffsetNs());
  v.tv_sec = t.tv_sec;
  v.tv_usec = t.tv_nsec / kNsPerUs;
  memcpy(at, &v, sizeof v);
}

static void ShiftStamps(struct msghdr* message) {
  for (struct cmsghdr* c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    size_t size = c->cmsg_len - CMSG_LEN(0);
    // The _NEW forms have the same layout on 64-bit machines. Of SCM_TIMESTAMPING's three stamps
    // only the first is the wall clock; the third is the network card's own.
    if ((c->cmsg_type == SO_TIMESTAMPNS_OLD || c->cmsg_type == SO_TIMESTAMPNS_NEW ||
         c->cmsg_type == SO_TIMESTAMPING_OLD || c->cmsg_type == SO_TIMESTAMPING_NEW) &&
        size >= sizeof(struct timespec)) {
      ShiftTimespec(CMSG_DATA(c));
    } else if ((c->cmsg_type == SO_TIMESTAMP_OLD || c->cmsg_type == SO_TIMESTAMP_NEW) &&
               size >= sizeof(struct timeval)) {
      ShiftTimeval(CMSG_DATA(c));
    }
  }
}

EXPORT ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  NEXT(recvmsg);
  ssize_t result = next(fd, message, flags);
  if (result >= 0 && message->msg_controllen) ShiftStamps(message);
  return result;
}

EXPORT int recvmmsg(int fd, struct mmsghdr* messages, unsigned int count, int flags,
                    struct timespec* timeout) {
  NEXT(recvmmsg);
  int result = next(fd, messages, count, flags, timeout);
  for (int i = 0; i < result; ++i) {
    if (messages[i].msg_hdr.msg_controllen) ShiftStamps(&messages[i].msg_hdr);
  }
  return result;
}

// ---- absolute deadlines
// --------------------------------------------------------------------------

static struct timespec TrueTime(const struct timespec* deadline) {
  struct timespec t = Add(*deadline, -OffsetNs());
  // A host far ahead of a deadline near the epoch: the kernel refuses negative times.
  if (t.tv_sec < 0) t = (struct timespec){0, 0};
  return t;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t* restrict cond, pthread_mutex_t* restrict mutex,
                                  const struct timespec* restrict deadline) {
  NEXT_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2");
  // glibc keeps the clock of a condition variable in bit 1 of __wrefs; there is no call that asks.
  if (cond->__data.__wrefs & 2) return next(cond, mutex, deadline);
  struct timespec t = TrueTime(deadline);
  return next(cond, mutex, &t);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t* restrict cond, pthread_mutex_t* restrict mutex,
                                  clockid_t clock, const struct timespec* restrict deadline) {
  NEXT(pthread_cond_clockwait);
  if (!IsWallClock(clock)) return next(cond, mutex, clock, deadline);
  struct timespec t = TrueTime(deadline);
  return next(cond, mutex, clock, &t);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t* restrict mutex,
                                   const struct timespec* restrict deadline) {
  NEXT(pthread_mutex_timedlock);
  struct timespec t = TrueTime(deadline);
  return next(mutex, &t);
}

EXPORT int sem_timedwait(sem_t* restrict sem, const struct timespec* restrict deadline) {
  NEXT(sem_timedwait);
  struct timespec t = TrueTime(deadline);
  return next(sem, &t);
}

EXPORT int sem_clockwait(sem_t* restrict sem, clockid_t clock,
                         const struct timespec* restrict deadline) {
  NEXT(sem_clockwait);
  if (!IsWallClock(clock)) return next(sem, clock, deadline);
  struct timespec t = TrueTime(deadline);
  return next(sem, clock, &t);
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec* request,
                           struct timespec* remain) {
  NEXT(clock_nanosleep);
  if (!(flags & TIMER_ABSTIME) || !IsWallClock(clock)) return next(clock, flags, request, remain);
  struct timespec t = TrueTime(request);
  return next(clock, flags, &t, remain);
}

// Abseil and nsync (TensorFlow) wait on futexes themselves, with deadlines on the wall clock.
EXPORT long syscall(long number, ...) {
  NEXT(syscall);
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_clock_gettime) return clock_gettime((clockid_t)a[0], (struct timespec*)a[1]);
  struct timespec t;
  int command = (int)a[1] & FUTEX_CMD_MASK;
  if (number == SYS_futex && a[3] && (a[1] & FUTEX_CLOCK_REALTIME) &&
      (command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI)) {
    t = TrueTime((const struct timespec*)a[3]);
    a[3] = (long)&t;
  }
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// ---- for tests
// -----------------------------------------------------------------------------------

// The machine's own clock when a host's, which drifts by these numbers, reads `reading_ns`.
EXPORT int64_t syncline_testbed_undrifted(const char* numbers, int64_t reading_ns) {
  struct Drift drift;
  return ParseDrift(numbers, &drift) ? Undrifted(&drift, reading_ns) : reading_ns;
}
