// SPDX-License-Identifier: Apache-2.0
/* From a descriptor to its connection.
 *
 * The name of a connection is its socket's cookie; asking the kernel for it costs as much as half a
 * recorded call. So what a descriptor is, is remembered, and distrusted: descriptors are closed and
 * made again without a call that passes by here (fclose, libuv, system calls of one's own). What
 * passes by makes us forget at once; the rest is asked for again after a millisecond. A mistake
 * within that time shows in the positions, which the kernel confirms (positions.c).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "instrumentation/net/internal.h"

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

#define DESCRIPTORS (1u << 20) /* beyond: not recorded */
#define CONNECTIONS 8192u      /* of one recording; beyond: not recorded, counted as lost */
#define INDEX_SLOTS (2 * CONNECTIONS)
#define NOT_TCP 1u
#define FIRST 2u

/* An entry is one word, read and written at once: bits 0-23 index of the connection (0: forgotten,
 * 1: no TCP connection), 24-31 session, 32-63 when that was known, in units of 2^20 ns. */
#define TICK_SHIFT 20
#define TRUST_TICKS 1u            /* 1 to 2 ms */
#define TRUST_NOT_TCP_TICKS 1000u /* about a second: such a mistake only loses bytes */

static uint64_t* descriptors;
static struct net_connection* connections; /* of the recording, and apart from them of the next */
static uint64_t* index_slots;              /* by hash of the cookie: session << 32 | index */
uint64_t net_used;
static uint64_t forgotten; /* makes every forgotten entry unlike the one before */

static struct net_connection* Connection(uint32_t session, uint32_t index) {
  return &connections[(session & 1) * (FIRST + CONNECTIONS) + index];
}
int net_is_of(const struct net_connection* connection, uint32_t session) {
  return (connection >= Connection(1, 0)) == (session & 1);
}

void net_connections_after_fork(void) { net_used = 0; }

void net_connections_start(void) {
  index_slots = syncline_reserve(INDEX_SLOTS * sizeof *index_slots);
  connections = syncline_reserve(2 * (FIRST + CONNECTIONS) * sizeof *connections);
  uint64_t* fresh = syncline_reserve(DESCRIPTORS * sizeof *descriptors);
  if (index_slots && connections) __atomic_store_n(&descriptors, fresh, __ATOMIC_RELEASE);
}

int net_begin_session(uint32_t wanted) {
  uint64_t before = __atomic_load_n(&net_used, __ATOMIC_ACQUIRE);
  if (!__atomic_load_n(&descriptors, __ATOMIC_ACQUIRE)) return -1;
  for (;;) {
    const int32_t ahead = (int32_t)(wanted - (uint32_t)(before >> 32));
    if (ahead <= 0) return ahead == 0 ? 0 : -1;
    if (__atomic_compare_exchange_n(&net_used, &before, (uint64_t)wanted << 32, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      return 0;
    }
  }
}

static uint64_t* EntryOf(int fd) {
  uint64_t* table = __atomic_load_n(&descriptors, __ATOMIC_ACQUIRE);
  return table && fd >= 0 && (unsigned)fd < DESCRIPTORS ? &table[fd] : NULL;
}

static uint64_t EntryFor(uint32_t index, uint32_t session, uint64_t now_ns) {
  return index | (uint64_t)(session & 0xFF) << 24 | (now_ns >> TICK_SHIFT) << 32;
}

void net_forget(int fd) {
  uint64_t* entry = EntryOf(fd);
  if (!entry || (net_session() == 0 && !NetIsNewChild())) return; /* nothing to be forgotten */
  /* Index 0, and never the same value twice in a row: see Remember. */
  const uint64_t count = __atomic_add_fetch(&forgotten, 1, __ATOMIC_RELAXED);
  __atomic_store_n(entry, count << 24, __ATOMIC_RELEASE);
}

enum net_found net_peek(int fd, uint64_t now_ns, struct net_connection** connection) {
  uint64_t* at = EntryOf(fd);
  *connection = NULL;
  if (!at) return NET_UNKNOWN;
  const uint64_t entry = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  const uint32_t index = entry & 0xFFFFFF;
  const uint32_t age = (uint32_t)(now_ns >> TICK_SHIFT) - (uint32_t)(entry >> 32);
  const uint32_t session = net_session();
  if (index == 0 || (uint8_t)(entry >> 24) != (uint8_t)session) return NET_UNKNOWN;
  if (index == NOT_TCP) return age <= TRUST_NOT_TCP_TICKS ? NET_NOT_TCP : NET_UNKNOWN;
  if (age > TRUST_TICKS || session == 0) return NET_UNKNOWN;
  *connection = Connection(session, index);
  return NET_FOUND;
}

/* Unless somebody has forgotten or learned something meanwhile: then that is newer. */
static void Remember(uint64_t* at, uint64_t before, uint64_t entry) {
  __atomic_compare_exchange_n(at, &before, entry, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* The cookie of a socket; 0 for everything else. */
static uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t bytes = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

int net_is_tcp(int fd) {
  int protocol = 0;
  socklen_t bytes = sizeof protocol;
  return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 && protocol == IPPROTO_TCP;
}

int net_is_other(int fd, uint64_t now_ns) {
  uint64_t* at = EntryOf(fd);
  const uint64_t before = at ? __atomic_load_n(at, __ATOMIC_ACQUIRE) : 0;
  if (net_is_tcp(fd)) return 0;
  if (at) Remember(at, before, EntryFor(NOT_TCP, net_session(), now_ns));
  return 1;
}

/* The index of a new connection; 0 when there is no room, or when `session` is over. */
static uint32_t NewIndex(uint32_t session, uint64_t cookie) {
  uint64_t before = __atomic_load_n(&net_used, __ATOMIC_ACQUIRE);
  do {
    if ((uint32_t)(before >> 32) != session || (uint32_t)before >= CONNECTIONS) return 0;
  } while (!__atomic_compare_exchange_n(&net_used, &before, before + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
  const uint32_t index = FIRST + (uint32_t)before;
  struct net_connection* connection = Connection(session, index);
  memset(connection, 0, sizeof *connection); /* of two recordings ago */
  __atomic_store_n(&connection->cookie, cookie, __ATOMIC_RELAXED);
  return index;
}

/* The index of a connection, made when it is new; 0 when there is no room, or when `session` is
 * over. Without a lock: its holder may be kept from going on while hundreds of threads make their
 * first calls. A slot of an earlier recording is free. Of two threads that make the same connection
 * the first wins, and the other's index stays unused. */
static uint32_t IndexOf(uint32_t session, uint64_t cookie) {
  uint32_t slot = (uint32_t)(cookie * 0x9E3779B97F4A7C15ull >> 50) % INDEX_SLOTS, fresh = 0;
  for (uint32_t i = 0; i < INDEX_SLOTS; i++, slot = (slot + 1) % INDEX_SLOTS) {
    uint64_t found = __atomic_load_n(&index_slots[slot], __ATOMIC_ACQUIRE);
    while ((int32_t)((uint32_t)(found >> 32) - session) < 0) {
      if (fresh == 0 && (fresh = NewIndex(session, cookie)) == 0) return 0;
      if (__atomic_compare_exchange_n(&index_slots[slot], &found, (uint64_t)session << 32 | fresh,
                                      0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return fresh;
      }
    }
    if ((uint32_t)(found >> 32) != session) return 0;
    const uint32_t index = (uint32_t)found;
    if (__atomic_load_n(&Connection(session, index)->cookie, __ATOMIC_RELAXED) == cookie) {
      return index;
    }
  }
  return 0;
}

static int IsConnected(int fd) {
  struct sockaddr_storage peer;
  socklen_t bytes = sizeof peer;
  return getpeername(fd, (struct sockaddr*)&peer, &bytes) == 0;
}

struct net_connection* net_look_up(struct syncline_thread* thread, int fd, uint64_t now_ns) {
  uint64_t* at = EntryOf(fd);
  if (!at) return NULL;
  const uint64_t before = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  const uint64_t cookie = CookieOf(fd);
  const uint32_t session = thread->session, known = before & 0xFFFFFF;
  if (known >= FIRST && (uint8_t)(before >> 24) == (uint8_t)session &&
      Connection(session, known)->cookie == cookie) {
    Remember(at, before, EntryFor(known, session, now_ns));
    return Connection(session, known);
  }
  if (cookie == 0 || !net_is_tcp(fd)) {
    Remember(at, before, EntryFor(NOT_TCP, session, now_ns));
    return NULL;
  }
  if (!IsConnected(fd)) return NULL;
  const uint32_t index = IndexOf(session, cookie);
  if (index == 0) {
    syncline_count(thread, 0);
    return NULL;
  }
  Remember(at, before, EntryFor(index, session, now_ns));
  return Connection(session, index);
}

/* ---- announcing ---- */

/* IPv4 also where it comes wrapped in IPv6: both ends must spell an address alike. */
static uint16_t Spell(const struct sockaddr_storage* address, char* out) {
  out[0] = 0;
  if (address->ss_family == AF_INET) {
    const struct sockaddr_in* v4 = (const struct sockaddr_in*)address;
    inet_ntop(AF_INET, &v4->sin_addr, out, SYNCLINE_NET_ADDRESS_BYTES);
    return ntohs(v4->sin_port);
  }
  if (address->ss_family != AF_INET6) return 0;
  const struct sockaddr_in6* v6 = (const struct sockaddr_in6*)address;
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], out, SYNCLINE_NET_ADDRESS_BYTES);
  } else {
    inet_ntop(AF_INET6, &v6->sin6_addr, out, SYNCLINE_NET_ADDRESS_BYTES);
  }
  return ntohs(v6->sin6_port);
}

int net_announce(struct syncline_thread* thread, struct net_connection* connection, int fd,
                 uint64_t now_ns) {
  struct sockaddr_storage local, remote;
  socklen_t local_bytes = sizeof local, remote_bytes = sizeof remote;
  if (getsockname(fd, (struct sockaddr*)&local, &local_bytes) != 0 ||
      getpeername(fd, (struct sockaddr*)&remote, &remote_bytes) != 0) {
    return -1; /* gone already: the events bear its cookie all the same */
  }
  struct syncline_net_connection_fields fields;
  memset(&fields, 0, sizeof fields);
  fields.thread = thread->key;
  fields.connection = connection->cookie;
  fields.local_port = Spell(&local, fields.local);
  fields.remote_port = Spell(&remote, fields.remote);
  net_fill_state(fd, &fields);
  syncline_count(thread, net_emit->connection(&fields));
  connection->retransmits = fields.retransmits;
  if ((int64_t)(now_ns - connection->announced_ns) > 0) connection->announced_ns = now_ns;
  __atomic_store_n(&connection->announced, 1, __ATOMIC_RELAXED);
  return 0;
}
