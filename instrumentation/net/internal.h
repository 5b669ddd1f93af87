// SPDX-License-Identifier: Apache-2.0
/* What the files of libsyncline_net.so share: the way into and out of a socket call.
 *
 * life.c         when the library wakes up, forks
 * calls.c        the functions of libc that it stands in front of
 * connections.c  descriptor -> connection, without a system call in the usual case
 * positions.c    how many bytes of each direction have gone by
 * tracer.c       LTTng-UST's own calls, when its descriptors were closed by the program
 *
 * Threads: any, without a lock. Signal handlers: `busy` of struct syncline_thread, as everywhere.
 * errno is what the real call left.
 */
#ifndef SYNCLINE_INSTRUMENTATION_NET_INTERNAL_H_
#define SYNCLINE_INSTRUMENTATION_NET_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "instrumentation/block/block.h"
#include "instrumentation/net/provider.h"

#define NET_HIDDEN __attribute__((visibility("hidden")))

enum net_direction_name { NET_SEND = 0, NET_RECEIVE = 1 };

/* One direction of a connection. */
struct net_direction {
  uint64_t position; /* bytes since the connection began; good when `known` */
  uint64_t calls;    /* low 16 bits: threads inside a call; above them: calls ever begun */
  uint64_t checked_ns;
  uint32_t known;
};

struct net_connection {
  uint64_t cookie; /* the kernel's, unique while the machine runs */
  uint32_t announced;
  uint32_t retransmits;  /* as last written */
  uint64_t announced_ns; /* when, the last time */
  struct net_direction directions[2];
} __attribute__((aligned(64)));

/* A call on a TCP connection that is being recorded. */
struct net_call {
  struct syncline_thread* thread;
  struct net_connection* connection;
  uint64_t since_ns;   /* the call began after this, trace clock */
  uint64_t entered;    /* the direction's `calls` before us */
  uint64_t cost_ticks; /* spent before the call; 0: this call is not timed */
  uint32_t session;
  uint64_t anchor; /* position before the call, when that has to be proven */
  int fd;
  uint8_t direction;
  uint8_t anchoring;
  uint8_t silent;       /* paused by the program: counted, not written */
  uint8_t checked;      /* the kernel was asked before the call: */
  uint32_t retransmits; /* so many of the connection so far */
};

/* ---- life.c ---- */
/* syncline_gate, one load nearer; and what this thread last acted on. */
extern NET_HIDDEN const volatile uint32_t* volatile net_gate;
extern NET_HIDDEN __thread uint32_t net_acted __attribute__((tls_model("initial-exec")));
extern NET_HIDDEN const struct syncline_net_emit* net_emit;
/* The process uses this socket: if that is TCP, it has a control block from here on. */
NET_HIDDEN void net_wake_for(int fd);
/* Nothing is recorded, and this thread knows. */
static inline int NetQuiet(void) { return __builtin_expect((*net_gate | net_acted) == 0, 1); }

/* In a forked child that has done nothing over TCP: it has no control block, and needs none. */
static inline int NetIsNewChild(void) { return *net_gate == SYNCLINE_GATE_LOOK; }

/* ---- calls.c ---- */
NET_HIDDEN void net_find_functions(void);
NET_HIDDEN void net_find_shm_open(void);

/* ---- positions.c ---- */
/* 1: the call is recorded; net_end must follow it with its result. */
NET_HIDDEN int net_begin(struct net_call* call, int fd, enum net_direction_name direction);
NET_HIDDEN void net_end(struct net_call* call, ssize_t bytes);
/* The descriptor is about to be closed: the last that there is to say of its connection. */
NET_HIDDEN void net_closing(int fd);

/* What the kernel says of the connection: positions, retransmissions, round-trip time. */
NET_HIDDEN void net_fill_state(int fd, struct syncline_net_connection_fields* fields);

/* ---- connections.c ---- */
/* Room for what is known of descriptors and connections, if there is memory. Once. */
NET_HIDDEN void net_connections_start(void);
NET_HIDDEN int net_is_tcp(int fd);
/* 1: no TCP, which is remembered. */
NET_HIDDEN int net_is_other(int fd, uint64_t now_ns);
/* Forgets what is known of a descriptor. */
NET_HIDDEN void net_forget(int fd);
/* The connection of a descriptor: NULL when it is no TCP connection, or not to be known now.
 * `found` says whether this can be believed without a system call. */
enum net_found { NET_NOT_TCP, NET_FOUND, NET_UNKNOWN };
NET_HIDDEN enum net_found net_peek(int fd, uint64_t now_ns, struct net_connection** connection);
NET_HIDDEN struct net_connection* net_look_up(struct syncline_thread* thread, int fd,
                                              uint64_t now_ns);
/* Writes syncline_net:connection. 0, or -1 when the socket says no longer whose it is. */
NET_HIDDEN int net_announce(struct syncline_thread* thread, struct net_connection* connection,
                            int fd, uint64_t now_ns);
/* A recording begins: what was known is from another one. 0, or -1 when that is over already, or
 * without memory. */
NET_HIDDEN int net_begin_session(uint32_t session);
/* The recording that connections are of, and how many there are, in the lower 32 bits. */
extern NET_HIDDEN uint64_t net_used;
static inline uint32_t net_session(void) {
  return (uint32_t)(__atomic_load_n(&net_used, __ATOMIC_ACQUIRE) >> 32);
}
/* 1: a connection of that recording, or of one two earlier or later. */
NET_HIDDEN int net_is_of(const struct net_connection* connection, uint32_t session);
NET_HIDDEN void net_connections_after_fork(void);

/* ---- tracer.c ---- */
/* Where LTTng-UST's code lies, once it has been connected. */
extern NET_HIDDEN uintptr_t net_tracer_begin, net_tracer_bytes;
static inline int NetIsTracer(const void* caller) {
  return __builtin_expect((uintptr_t)caller - net_tracer_begin < net_tracer_bytes, 0);
}
static inline int NetKnowsTracer(void) {
  return __atomic_load_n(&net_tracer_bytes, __ATOMIC_ACQUIRE) != 0;
}
/* Of calls that LTTng-UST makes. 1: it had this number open, and that is another file now, or none:
 * the program has closed it. */
NET_HIDDEN int net_tracer_lost(int fd);
/* The same, and it will have nothing under this number from now on. */
NET_HIDDEN int net_tracer_closes(int fd);
/* A new descriptor of its own: the number that it gets instead, or -1 and errno. */
NET_HIDDEN int net_tracer_opens(int fd);
/* This thread has carried out what it received last. */
NET_HIDDEN void net_tracer_done(void);
/* Those that came with a message; their numbers may change. */
NET_HIDDEN void net_tracer_receives(struct msghdr* message);
/* After a connect that the kernel did: whose peer is LTTng's session daemon is LTTng-UST. The
 * kernel is asked for the peer: the address that the program gave is not ours to read. */
NET_HIDDEN void net_tracer_connected(int fd, const void* caller);

#endif /* SYNCLINE_INSTRUMENTATION_NET_INTERNAL_H_ */
