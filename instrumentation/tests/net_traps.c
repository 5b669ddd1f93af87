// SPDX-License-Identifier: Apache-2.0
/* net_traps SCENARIO [TRUTH]: small programs that do with sockets what breaks interposers. Each
 * says where it is on stdout and waits on stdin, so that the test can switch recording in between;
 * net_capture_test.py compares what they did with what was recorded. */
#define _GNU_SOURCE
#include "instrumentation/tests/net_traps.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

void NetSay(const char* form, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, form);
  const int n = vsnprintf(line, sizeof line, form, arguments);
  va_end(arguments);
  if (n <= 0 || write(1, line, (size_t)n) != n) _exit(3);
}

void NetSync(const char* text) {
  char c = 0;
  NetSay("%s\n", text);
  while (c != '\n') {
    if (read(0, &c, 1) != 1) _exit(4);
  }
}

uint64_t NetNow(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void Must(int good, const char* what) {
  if (good) return;
  perror(what);
  _exit(5);
}

static unsigned PortOf(const struct sockaddr_in6* address) { return ntohs(address->sin6_port); }

void NetConnect(struct Link* link, int family) {
  struct sockaddr_in6 address; /* its port lies where that of IPv4 does */
  socklen_t bytes = sizeof address;
  memset(&address, 0, sizeof address);
  memset(link, 0, sizeof *link);
  const int listener = socket(family, SOCK_STREAM, 0);
  address.sin6_family = (sa_family_t)family;
  if (family == AF_INET) {
    ((struct sockaddr_in*)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bytes = sizeof(struct sockaddr_in);
  } else {
    address.sin6_addr = in6addr_loopback;
  }
  Must(bind(listener, (struct sockaddr*)&address, bytes) == 0, "bind");
  Must(listen(listener, 1) == 0, "listen");
  Must(getsockname(listener, (struct sockaddr*)&address, &bytes) == 0, "getsockname");
  struct End* client = &link->ends[0];
  struct End* server = &link->ends[1];
  client->fd = socket(family, SOCK_STREAM, 0);
  Must(connect(client->fd, (struct sockaddr*)&address, bytes) == 0, "connect");
  server->fd = accept(listener, NULL, NULL);
  Must(server->fd >= 0, "accept");
  close(listener);
  client->remote_port = server->local_port = PortOf(&address);
  Must(getsockname(client->fd, (struct sockaddr*)&address, &bytes) == 0, "getsockname");
  client->local_port = server->remote_port = PortOf(&address);
}

/* ---- truth ---- */

static FILE* truth;
static pthread_mutex_t truth_mutex = PTHREAD_MUTEX_INITIALIZER;

void NetTruth(const char* path) { Must((truth = fopen(path, "w")) != NULL, path); }

void NetFactAt(const struct End* end, int receive, uint64_t begin, ssize_t bytes, uint64_t t0) {
  const uint64_t t1 = NetNow();
  if (bytes <= 0 || !truth) return;
  pthread_mutex_lock(&truth_mutex);
  fprintf(truth, "%s\t%ld\t%u\t%u\t%llu\t%zd\t%llu\t%llu\n", receive ? "receive" : "send",
          syscall(SYS_gettid), end->local_port, end->remote_port, (unsigned long long)begin, bytes,
          (unsigned long long)t0, (unsigned long long)t1);
  fflush(truth); /* a child that calls _exit leaves its facts too */
  pthread_mutex_unlock(&truth_mutex);
}

void NetFact(struct End* end, int receive, ssize_t bytes, uint64_t t0) {
  if (bytes <= 0) return;
  NetFactAt(end, receive, end->moved[receive], bytes, t0);
  end->moved[receive] += (uint64_t)bytes;
}

static char outgoing[1 << 16];

void NetSend(struct End* end, size_t bytes) {
  while (bytes > 0) {
    const size_t part = bytes < sizeof outgoing ? bytes : sizeof outgoing;
    const uint64_t t0 = NetNow();
    const ssize_t n = send(end->fd, outgoing, part, MSG_NOSIGNAL);
    Must(n > 0, "send");
    NetFact(end, 0, n, t0);
    bytes -= (size_t)n;
  }
}

void NetReceive(struct End* end, size_t bytes) {
  static __thread char incoming[1 << 16];
  while (bytes > 0) {
    const size_t part = bytes < sizeof incoming ? bytes : sizeof incoming;
    const uint64_t t0 = NetNow();
    const ssize_t n = recv(end->fd, incoming, part, 0);
    Must(n > 0, "recv");
    NetFact(end, 1, n, t0);
    bytes -= (size_t)n;
  }
}

/* ---- every call there is, both directions at once, several connections ---- */

static volatile int stream_stops;
static uint64_t stream_bytes;

static unsigned Random(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static ssize_t SendSomehow(int fd, unsigned* random) {
  const size_t bytes = 1 + Random(random) % (Random(random) % 8 ? 2000 : sizeof outgoing / 2);
  struct iovec parts[2] = {{outgoing, bytes / 3}, {outgoing, bytes - bytes / 3}};
  struct mmsghdr messages[2];
  memset(messages, 0, sizeof messages);
  messages[0].msg_hdr.msg_iov = &parts[0];
  messages[1].msg_hdr.msg_iov = &parts[1];
  messages[0].msg_hdr.msg_iovlen = messages[1].msg_hdr.msg_iovlen = 1;
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  switch (Random(random) % 7) {
    case 0:
      return write(fd, outgoing, bytes);
    case 1:
      return writev(fd, parts, 2);
    case 2:
      return send(fd, outgoing, bytes, MSG_NOSIGNAL);
    case 3:
      return sendto(fd, outgoing, bytes, MSG_DONTWAIT, NULL, 0);
    case 4:
      return sendmsg(fd, &message, MSG_NOSIGNAL);
    case 5: {
      const int n = sendmmsg(fd, messages, 2, 0);
      return n <= 0 ? n : (ssize_t)(messages[0].msg_len + (n > 1 ? messages[1].msg_len : 0));
    }
    default: {
      static __thread int file;
      off_t offset = 0;
      if (file <= 0) {
        file = memfd_create("net_traps", 0);
        Must(write(file, outgoing, sizeof outgoing) == (ssize_t)sizeof outgoing, "memfd");
      }
      return sendfile(fd, file, &offset, bytes);
    }
  }
}

static ssize_t ReceiveSomehow(int fd, unsigned* random) {
  static __thread char incoming[1 << 16];
  const size_t room = 1 + Random(random) % (sizeof incoming / 2);
  struct iovec parts[2] = {{incoming, room / 2}, {incoming + room / 2, room - room / 2}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  struct mmsghdr messages;
  memset(&messages, 0, sizeof messages);
  messages.msg_hdr = message;
  if (Random(random) % 4 == 0) (void)!recv(fd, incoming, room, MSG_PEEK);
  switch (Random(random) % 7) {
    case 0:
      return read(fd, incoming, room);
    case 1:
      return readv(fd, parts, 2);
    case 2:
      return recv(fd, incoming, room, 0);
    case 3:
      return recvfrom(fd, incoming, room, MSG_DONTWAIT, NULL, NULL);
    case 4:
      return recvmsg(fd, &message, 0);
    case 5: {
      const int n = recvmmsg(fd, &messages, 1, 0, NULL);
      return n <= 0 ? n : (ssize_t)messages.msg_len;
    }
    default:
      return recv(fd, incoming, room, room % 2 ? MSG_WAITALL : 0);
  }
}

static void* StreamOut(void* argument) {
  struct End* end = argument;
  unsigned random = (unsigned)end->fd;
  while (!stream_stops) {
    const uint64_t t0 = NetNow();
    const ssize_t n = SendSomehow(end->fd, &random);
    NetFact(end, 0, n, t0);
    if (n > 0) __atomic_fetch_add(&stream_bytes, (uint64_t)n, __ATOMIC_RELAXED);
    if (Random(&random) % 16 == 0) usleep(Random(&random) % 2000);
  }
  shutdown(end->fd, SHUT_WR);
  return NULL;
}

static void* StreamIn(void* argument) {
  struct End* end = argument;
  unsigned random = (unsigned)end->fd + 99;
  for (;;) {
    const uint64_t t0 = NetNow();
    const ssize_t n = ReceiveSomehow(end->fd, &random);
    if (n == 0) return NULL;
    NetFact(end, 1, n, t0);
  }
}

static void MoveMore(uint64_t bytes) {
  const uint64_t target = __atomic_load_n(&stream_bytes, __ATOMIC_RELAXED) + bytes;
  while (__atomic_load_n(&stream_bytes, __ATOMIC_RELAXED) < target) usleep(1000);
}

int NetStream(const char* path) {
  enum { kLinks = 3 };
  static struct Link links[kLinks];
  pthread_t threads[4 * kLinks];
  NetTruth(path);
  for (int i = 0; i < kLinks; i++) {
    NetConnect(&links[i], i == 1 ? AF_INET6 : AF_INET);
    for (int end = 0; end < 2; end++) {
      Must(!pthread_create(&threads[4 * i + 2 * end], NULL, StreamOut, &links[i].ends[end]),
           "thread");
      Must(!pthread_create(&threads[4 * i + 2 * end + 1], NULL, StreamIn, &links[i].ends[end]),
           "thread");
    }
  }
  MoveMore(2 << 20); /* the recording begins in the middle */
  NetSync("ready");
  MoveMore(8 << 20);
  NetSync("done");
  stream_stops = 1;
  for (int i = 0; i < 4 * kLinks; i++) pthread_join(threads[i], NULL);
  return 0;
}

int main(int argc, char** argv) {
  const char* scenario = argc > 1 ? argv[1] : "";
  const char* path = argc > 2 ? argv[2] : "/dev/null";
  if (!strcmp(scenario, "stream")) return NetStream(path);
  if (!strcmp(scenario, "shared")) return NetShared(path);
  if (!strcmp(scenario, "files")) return NetFiles();
  if (!strcmp(scenario, "reuse")) return NetReuse();
  if (!strcmp(scenario, "bypass")) return NetBypass();
  if (!strcmp(scenario, "half-closed")) return NetHalfClosed(path);
  if (!strcmp(scenario, "errors")) return NetErrors();
  if (!strcmp(scenario, "signals")) return NetSignals(path);
  if (!strcmp(scenario, "fork")) return NetFork(path);
  if (!strcmp(scenario, "children")) return NetChildren();
  if (!strcmp(scenario, "threads")) return NetThreads(path);
  if (!strcmp(scenario, "descriptors")) return NetDescriptors(path);
  if (!strncmp(scenario, "closed-", 7)) return NetClosed(scenario + 7);
  fprintf(stderr, "net_traps: no scenario \"%s\"\n", scenario);
  return 2;
}
