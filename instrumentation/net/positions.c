// SPDX-License-Identifier: Apache-2.0
/* How many bytes of each direction have gone by: what makes a message the same on both hosts.
 *
 * Counting what calls return is exact as long as every byte passes by here; where to begin, in a
 * connection that is older than the recording, the kernel knows:
 *   handed over = bytes_sent - bytes_retrans + notsent (one TCP_INFO, taken under the socket's
 * lock) taken       = bytes_received - SIOCINQ, with bytes_received the same before and after, less
 * the peer's FIN, which it counts A beginning is believed when the kernel's number after the call
 * is the number before it plus what the call returned: then no other thread, process or splice was
 * at it. Afterwards the kernel is asked again now and then; when it disagrees, bytes went by
 * unseen, which `doubt` says.
 *
 * Two threads inside calls of one direction at once: the kernel decides who comes first and does
 * not say. Such transfers have no position (*_unplaced).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "instrumentation/net/internal.h"

#define CHECK_NS 50000000u      /* how long the kernel's word is good for */
#define ANNOUNCED_NS 1000000000 /* how often a connection in use is announced again */
#define ONE_CALL (1u << 16)
#define INSIDE 0xFFFFu

/* In bytes, what the running kernel's TCP_INFO must have. */
#define INFO_NEEDED (offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof(uint64_t))

static int Info(int fd, struct tcp_info* info) {
  socklen_t bytes = sizeof *info;
  memset(info, 0, sizeof *info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &bytes) == 0 && bytes >= INFO_NEEDED ? 0 : -1;
}

static uint64_t Sent(const struct tcp_info* info) {
  return info->tcpi_bytes_sent - info->tcpi_bytes_retrans + info->tcpi_notsent_bytes;
}

enum { kCloseWait = 8, kLastAck = 9, kClosing = 11, kTimeWait = 6, kClose = 7 };
/* 1: the peer's FIN has come; -1: not to be known. */
static int PeerFin(int fd, const struct tcp_info* info) {
  const int state = info->tcpi_state;
  if (state == kClose) { /* by the FINs of both, or by an error, which only a look does not take */
    struct pollfd look = {.fd = fd};
    return poll(&look, 1, 0) < 0 || look.revents & POLLERR ? -1 : 1;
  }
  return state == kCloseWait || state == kLastAck || state == kClosing || state == kTimeWait;
}

/* The kernel's number; -1: not to be had now. */
static int Position(int fd, enum net_direction_name direction, struct tcp_info* info,
                    uint64_t* position) {
  if (Info(fd, info) != 0) return -1;
  if (direction == NET_SEND) {
    *position = Sent(info);
    return 0;
  }
  for (int i = 0; i < 8; i++) {
    const uint64_t received = info->tcpi_bytes_received;
    int unread = 0;
    if (ioctl(fd, SIOCINQ, &unread) != 0 || Info(fd, info) != 0) return -1;
    if (info->tcpi_bytes_received != received) continue;
    const int fin = PeerFin(fd, info);
    if (fin < 0) return -1;
    *position = received - (uint64_t)unread - (uint64_t)fin;
    return 0;
  }
  return -1;
}

void net_fill_state(int fd, struct syncline_net_connection_fields* fields) {
  struct tcp_info info;
  uint64_t received = 0;
  if (Position(fd, NET_RECEIVE, &info, &received) != 0 && Info(fd, &info) != 0) return;
  fields->sent = Sent(&info);
  fields->received = received;
  fields->retransmits = info.tcpi_total_retrans;
  fields->rtt_us = info.tcpi_rtt;
}

static void TellState(struct syncline_thread* thread, struct net_connection* connection, int fd) {
  struct syncline_net_connection_fields fields;
  memset(&fields, 0, sizeof fields);
  net_fill_state(fd, &fields);
  connection->retransmits = fields.retransmits;
  syncline_count(thread, net_emit->state(thread->key, connection->cookie, fields.sent,
                                         fields.received, fields.retransmits, fields.rtt_us));
}

/* After a call before which the kernel was asked: retransmissions so far, when they are news. Once
 * in a while whose connection it is, too: who reads a part of a recording must not look for that at
 * its beginning. */
static void TellNews(const struct net_call* call) {
  struct net_connection* connection = call->connection;
  /* The call began at `since_ns`: another thread may have announced it since. */
  const int64_t unsaid_ns = (int64_t)(call->since_ns - connection->announced_ns);
  if (unsaid_ns >= ANNOUNCED_NS &&
      net_announce(call->thread, connection, call->fd, call->since_ns) == 0) {
    return;
  }
  if ((int32_t)(call->retransmits - connection->retransmits) > 0)
    TellState(call->thread, connection, call->fd);
}

/* Before a call, alone in its direction. */
static void Check(struct net_call* call, struct net_direction* direction) {
  struct tcp_info info;
  uint64_t position;
  if (Position(call->fd, call->direction, &info, &position) != 0) return;
  direction->checked_ns = call->since_ns;
  call->checked = 1;
  call->retransmits = info.tcpi_total_retrans;
  if (direction->known && position == direction->position) return;
  if (direction->known && !call->silent) {
    syncline_count(call->thread, net_emit->doubt(call->thread->key, call->connection->cookie,
                                                 call->direction, direction->position, position));
  }
  direction->known = 0;
  direction->position = position;
  call->anchor = position;
  call->anchoring = 1;
}

/* In a signal handler, inside our code or in a thread that was never here outside of one. */
static void TurnedAway(struct syncline_thread* thread, int fd) {
  if (net_is_tcp(fd)) syncline_turned_away(thread);
}

/* Acts on the gate, in a call on `fd`. 1: this thread records. */
static int Act(struct syncline_thread* thread, int fd) {
  if (*net_gate != thread->generation) {
    if (!syncline_gate_changed(thread) && !thread->known_to_tracer) {
      TurnedAway(thread, fd);
      return 0;
    }
  } else if (thread->generation != 0 && thread->session == 0) {
    syncline_gate_ask_again(thread);
  }
  if (thread->session != 0 && net_begin_session(thread->session) != 0) {
    if (net_is_tcp(fd)) syncline_count(thread, 0);
    return 0;
  }
  net_acted = thread->generation;
  return thread->session != 0;
}

static void Enter(struct net_call* call, enum net_direction_name which, uint64_t now_ns) {
  struct net_direction* direction = &call->connection->directions[which];
  call->direction = which;
  call->since_ns = now_ns;
  call->anchoring = call->checked = 0;
  call->silent = syncline_paused || call->thread->ignored;
  call->entered = __atomic_fetch_add(&direction->calls, ONE_CALL + 1, __ATOMIC_ACQ_REL);
  if (__builtin_expect(!direction->known || now_ns - direction->checked_ns > CHECK_NS, 0) &&
      (call->entered & INSIDE) == 0) {
    Check(call, direction);
    call->since_ns = syncline_clock_ns();
  }
}

static int Begin(struct net_call* call, int fd, enum net_direction_name direction) {
  const uint64_t now_ns = syncline_clock_ns();
  const enum net_found found = net_peek(fd, now_ns, &call->connection);
  if (found == NET_NOT_TCP && (*net_gate == net_acted || NetIsNewChild())) return 0;
  if (NetIsNewChild() && net_is_other(fd, now_ns)) return 0;
  struct syncline_thread* thread = syncline_thread_self();
  if (!thread) return 0;
  if (__builtin_expect(thread->busy, 0)) {
    /* A signal handler inside our code: its bytes pass, and the position is unknown from here. */
    if (found == NET_FOUND) call->connection->directions[direction].known = 0;
    TurnedAway(thread, fd);
    return 0;
  }
  if (__builtin_expect(*net_gate != thread->generation || thread->session == 0 ||
                           thread->generation != net_acted,
                       0)) {
    if (!Act(thread, fd)) return 0;
    if (found == NET_FOUND) net_peek(fd, now_ns, &call->connection); /* of that session? */
  }
  if (__atomic_load_n(&syncline_left_out, __ATOMIC_RELAXED) & SYNCLINE_LEFT_OUT_MESSAGES) return 0;
  /* Between this thread's look at the gate and now another may have begun the next recording. */
  if (call->connection && !net_is_of(call->connection, thread->session)) call->connection = NULL;
  call->thread = thread;
  call->fd = fd;
  call->session = thread->session;
  thread->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const uint64_t cost = syncline_cost_start(thread);
  if (!call->connection) call->connection = net_look_up(thread, fd, now_ns);
  if (call->connection) {
    Enter(call, direction, now_ns);
    call->cost_ticks = cost ? 1 + syncline_cost_ticks() - cost : 0;
  } else {
    syncline_cost_stop(thread, cost);
  }
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
  return call->connection != NULL;
}

int net_begin(struct net_call* call, int fd, enum net_direction_name direction) {
  const int saved = errno;
  const int recorded = Begin(call, fd, direction);
  errno = saved;
  return recorded;
}

static int Write(const struct net_call* call, int placed, uint64_t begin, uint64_t bytes) {
  const uint32_t thread = call->thread->key;
  const uint64_t connection = call->connection->cookie;
  if (placed) {
    return (call->direction == NET_SEND ? net_emit->send : net_emit->receive)(
        thread, connection, begin, bytes, call->since_ns);
  }
  return (call->direction == NET_SEND ? net_emit->send_unplaced : net_emit->receive_unplaced)(
      thread, connection, bytes, call->since_ns);
}

/* After the first call with a new beginning: was anybody else at it? */
static void Prove(struct net_call* call, struct net_direction* direction, uint64_t bytes) {
  struct tcp_info info;
  uint64_t position;
  direction->known = Position(call->fd, call->direction, &info, &position) == 0 &&
                     position == call->anchor + bytes;
}

void net_end(struct net_call* call, ssize_t result) {
  if (call->session != net_session()) return; /* that is over */
  struct syncline_thread* thread = call->thread;
  struct net_direction* direction = &call->connection->directions[call->direction];
  const uint64_t bytes = result > 0 ? (uint64_t)result : 0;
  const int saved = errno;
  const int stays = thread->session != 0 && *net_gate == thread->generation;
  thread->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const uint64_t cost = call->cost_ticks ? syncline_cost_ticks() - call->cost_ticks : 0;
  const uint64_t begin =
      bytes ? __atomic_fetch_add(&direction->position, bytes, __ATOMIC_RELAXED) : 0;
  if (__builtin_expect(call->anchoring, 0)) Prove(call, direction, bytes);
  const int known = direction->known;
  const uint64_t left = __atomic_fetch_sub(&direction->calls, 1, __ATOMIC_ACQ_REL);
  const int alone =
      (call->entered & INSIDE) == 0 && left / ONE_CALL == call->entered / ONE_CALL + 1;
  if (bytes && stays && !call->silent) {
    if (__builtin_expect(!call->connection->announced, 0)) {
      net_announce(thread, call->connection, call->fd, call->since_ns);
    }
    syncline_count(thread, Write(call, known && alone, begin, bytes));
    if (__builtin_expect(call->checked, 0)) TellNews(call);
  }
  syncline_cost_stop(thread, cost);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
  errno = saved;
}

/* Whether others have sent or received on it since it was looked at: a forked child, say. What the
 * kernel threw away (an error, a reset) says nothing. */
static void CheckAtTheEnd(struct syncline_thread* thread, struct net_connection* connection,
                          int fd) {
  for (int which = 0; which < 2; which++) {
    struct net_direction* direction = &connection->directions[which];
    struct tcp_info info;
    uint64_t position;
    const uint64_t calls = __atomic_load_n(&direction->calls, __ATOMIC_ACQUIRE);
    if (!direction->known || (calls & INSIDE) != 0) continue;
    if (Position(fd, which, &info, &position) != 0 || info.tcpi_state == kClose) continue;
    if (position <= direction->position) continue;
    if (__atomic_load_n(&direction->calls, __ATOMIC_ACQUIRE) != calls) continue;
    syncline_count(thread, net_emit->doubt(thread->key, connection->cookie, which,
                                           direction->position, position));
    direction->known = 0;
  }
}

void net_closing(int fd) {
  struct net_connection* connection;
  const int saved = errno;
  struct syncline_thread* thread = syncline_thread_self();
  errno = saved;
  if (!thread || thread->busy || *net_gate != thread->generation || thread->session == 0 ||
      thread->session != net_session()) {
    return;
  }
  thread->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  const uint64_t now_ns = syncline_clock_ns();
  if (net_peek(fd, now_ns, &connection) == NET_UNKNOWN)
    connection = net_look_up(thread, fd, now_ns);
  if (connection && connection->announced) {
    TellState(thread, connection, fd);
    if (!syncline_paused && !thread->ignored) CheckAtTheEnd(thread, connection, fd);
  }
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  thread->busy = 0;
  errno = saved;
}
