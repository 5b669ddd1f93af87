// SPDX-License-Identifier: Apache-2.0
/* When the library wakes up. It is preloaded into every program that a traced one starts, and most
 * of those have nothing to tell: until a process connects, listens or accepts over TCP, it makes no
 * control block and loads no tracer, and a call costs what looking at the gate costs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "instrumentation/net/internal.h"

static const uint32_t closed = 0;
const volatile uint32_t* volatile net_gate = &closed;
__thread uint32_t net_acted __attribute__((tls_model("initial-exec"))) = 0;

/* Without a tracer: nobody takes the events. Called through other types: the arguments are in
 * registers, and are ignored. */
static int Nobody(void) { return 0; }
static struct syncline_net_emit no_tracer;
const struct syncline_net_emit* net_emit = &no_tracer;

static pid_t own_pid; /* a vfork's child, which borrows our memory, has another */
static int excluded;
static uint32_t waking; /* 0: asleep; 1: a thread is at it, or it is done */

/* Programs that a training job starts and nobody wants to see: their traffic is not the job's. */
static const char* const kExcluded[] = {"ssh",
                                        "sshd",
                                        "scp",
                                        "sftp",
                                        "git",
                                        "git-remote-http",
                                        "curl",
                                        "wget",
                                        "pip",
                                        "rsync",
                                        "syncline",
                                        "syncline-agent",
                                        "gdb",
                                        "perf",
                                        "lttng",
                                        "lttng-sessiond",
                                        "lttng-consumerd",
                                        "babeltrace2"};

static int IsExcluded(const char* name) {
  for (size_t i = 0; i < sizeof kExcluded / sizeof *kExcluded; i++) {
    if (strcmp(name, kExcluded[i]) == 0) return 1;
  }
  return 0;
}

static void AfterForkChild(void) {
  own_pid = getpid();
  net_acted = 0;
  net_connections_after_fork();
}

static void LoadTracer(void) {
  void** table = (void**)&no_tracer;
  for (size_t i = 0; i < sizeof no_tracer / sizeof(void*); i++) table[i] = (void*)Nobody;
  void* library = syncline_load_sibling(SYNCLINE_NET_PROVIDER_FILE);
  const struct syncline_net_emit* emit =
      library ? dlsym(library, SYNCLINE_NET_PROVIDER_SYMBOL) : NULL;
  if (emit) net_emit = emit;
}

static void Wake(void) {
  if (__atomic_exchange_n(&waking, 1, __ATOMIC_ACQ_REL)) return;
  struct syncline_thread* thread = syncline_thread_self();
  if (thread && !thread->busy) {
    thread->busy = 1; /* what is loaded allocates, and an allocator may call ITT */
    if (syncline_open(SYNCLINE_SOURCE_NET) == 0) {
      LoadTracer();
      net_connections_start();
      syncline_follow_gate(&net_gate, NULL);
    }
    thread->busy = 0;
  } else {
    __atomic_store_n(&waking, 0, __ATOMIC_RELEASE); /* a signal handler inside our code: later */
  }
}

/* A child of a program that is awake: it needs a block of its own. */
static void WakeChild(void) {
  struct syncline_thread* thread = syncline_thread_self();
  if (!thread || thread->busy) return;
  thread->busy = 1;
  syncline_open(SYNCLINE_SOURCE_NET);
  thread->busy = 0;
}

void net_wake_for(int fd) {
  const int awake = __atomic_load_n(&waking, __ATOMIC_RELAXED) != 0;
  if ((awake && !NetIsNewChild()) || excluded || own_pid == 0) return;
  const int saved = errno;
  if (getpid() == own_pid && net_is_tcp(fd)) awake ? WakeChild() : Wake();
  errno = saved;
}

__attribute__((constructor)) static void Start(void) {
  net_find_functions();
  net_find_shm_open();
  own_pid = getpid();
  excluded = IsExcluded(program_invocation_short_name);
  if (excluded) return;
  syncline_loaded(SYNCLINE_SOURCE_NET);
  pthread_atfork(NULL, NULL, AfterForkChild);
}
