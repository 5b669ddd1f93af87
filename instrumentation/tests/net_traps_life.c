// SPDX-License-Identifier: Apache-2.0
/* Scenarios of net_traps: who owns a descriptor, and what a process goes through. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "instrumentation/tests/net_traps.h"

static void Must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  _exit(5);
}

/* ---- two threads send on one connection: who came first shows in the bytes only ---- */

/* So few bytes that the send buffer never fills: then a call's bytes stay together. */
#define RECORD_BYTES 64
struct Record {
  uint32_t sender, number;
  char rest[RECORD_BYTES - 8];
};
#define RECORDS 1500
static struct Link shared;
static uint64_t began[2][RECORDS], ended[2][RECORDS];
static int shared_tids[2];

static void* SendRecords(void* argument) {
  const uint32_t sender = (uint32_t)(intptr_t)argument;
  struct Record record = {.sender = sender};
  shared_tids[sender] = (int)syscall(SYS_gettid);
  for (uint32_t i = 0; i < RECORDS; i++) {
    record.number = i;
    began[sender][i] = NetNow();
    Must(send(shared.ends[0].fd, &record, sizeof record, MSG_NOSIGNAL) == sizeof record, "send");
    ended[sender][i] = NetNow();
  }
  return NULL;
}

int NetShared(const char* path) {
  static struct Record record;
  pthread_t threads[2];
  NetConnect(&shared, AF_INET);
  NetSync("ready");
  for (intptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, SendRecords, (void*)i);
  FILE* truth = fopen(path, "w");
  for (uint64_t at = 0; at < 2ull * RECORDS * RECORD_BYTES; at += RECORD_BYTES) {
    Must(recv(shared.ends[1].fd, &record, sizeof record, MSG_WAITALL) == sizeof record, "recv");
    fprintf(truth, "%u\t%u\t%llu\n", record.sender, record.number, (unsigned long long)at);
  }
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int sender = 0; sender < 2; sender++) {
    for (int i = 0; i < RECORDS; i++) {
      fprintf(truth, "call\t%d\t%d\t%d\t%llu\t%llu\n", shared_tids[sender], sender, i,
              (unsigned long long)began[sender][i], (unsigned long long)ended[sender][i]);
    }
  }
  fclose(truth);
  NetSync("done");
  return 0;
}

/* ---- what is no TCP connection ---- */

int NetFiles(void) {
  int ends[2], unix_ends[2];
  char buffer[64] = {0};
  struct Link link;
  NetConnect(&link, AF_INET); /* so that the library is awake */
  NetSync("ready");
  Must(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, unix_ends) == 0, "pipe");
  const int file = memfd_create("files", 0);
  const int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 1000; i++) {
    Must(write(ends[1], buffer, 10) == 10 && read(ends[0], buffer, 10) == 10, "pipe");
    Must(write(file, buffer, 10) == 10, "file");
    Must(send(unix_ends[0], buffer, 10, 0) == 10 && recv(unix_ends[1], buffer, 64, 0) == 10,
         "unix");
    (void)!sendto(datagrams, buffer, 10, 0, (struct sockaddr*)&to, sizeof to);
  }
  NetSync("done");
  return 0;
}

/* ---- a descriptor becomes another one, and no call of libc says so ---- */

int NetReuse(void) {
  struct Link link, other;
  char buffer[64] = {0};
  NetConnect(&link, AF_INET);
  NetSync("ready");
  NetSend(&link.ends[0], 100);
  NetReceive(&link.ends[1], 100);
  const int number = link.ends[0].fd;
  NetSay("first %u\n", link.ends[0].local_port);
  syscall(SYS_close, number);
  const int file = (int)syscall(SYS_memfd_create, "reuse", 0);
  Must(file == number, "the number was not used again");
  usleep(5000);
  for (int i = 0; i < 100; i++) Must(write(file, buffer, 50) == 50, "write");
  syscall(SYS_close, file);
  NetConnect(&other, AF_INET);
  for (int i = 0; i < 2; i++) {
    NetSend(&other.ends[i], 70);
    NetReceive(&other.ends[1 - i], 70);
  }
  const int copy = dup(other.ends[0].fd); /* the number is a connection again, known by another */
  Must(copy == number, "the number was not used again");
  Must(send(copy, buffer, 30, 0) == 30, "send");
  NetReceive(&other.ends[1], 30);
  NetSync("done");
  return 0;
}

/* Asks, says that this was all, and reads the answer when the other end is gone already: new
 * connections whose first call that receives finds them closed. */
int NetHalfClosed(const char* path) {
  struct Link link;
  NetConnect(&link, AF_INET); /* so that the library is awake */
  NetTruth(path);
  NetSync("ready");
  for (int i = 0; i < 20; i++) {
    NetConnect(&link, AF_INET);
    NetSend(&link.ends[0], 100);
    shutdown(link.ends[0].fd, SHUT_WR);
    NetReceive(&link.ends[1], 100);
    NetSend(&link.ends[1], 300);
    close(link.ends[1].fd);
    usleep(2000);
    NetReceive(&link.ends[0], 120);
    NetReceive(&link.ends[0], 180);
    close(link.ends[0].fd);
  }
  NetSync("done");
  return 0;
}

/* ---- bytes that no call of libc moved ---- */

int NetBypass(void) {
  struct Link link;
  char buffer[1000] = {0};
  NetConnect(&link, AF_INET);
  NetSync("ready");
  NetSend(&link.ends[0], 100);
  Must(syscall(SYS_write, link.ends[0].fd, buffer, sizeof buffer) == sizeof buffer, "write");
  usleep(120000); /* longer than the kernel's word is good for */
  NetSend(&link.ends[0], 10);
  NetSend(&link.ends[0], 20);
  Must(syscall(SYS_write, link.ends[0].fd, buffer, 7) == 7, "write");
  close(link.ends[0].fd);
  NetReceive(&link.ends[1], 1137);
  NetSync("done");
  return 0;
}

/* ---- results and errno are those of the call ---- */

#define MUST_BE_UNREADABLE(call)                            \
  do {                                                      \
    errno = 0;                                              \
    const long result = (long)(call);                       \
    Must(result == -1 && errno == EFAULT, "EFAULT " #call); \
  } while (0)

/* What the program hands over is for the kernel to read: it may lie where nothing is, in whole, or
 * from its third byte on. */
static void HandOverWhatIsUnreadable(int tcp) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* const pages =
      mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Must(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0, "mmap");
  char* const nothing = pages + page;
  char* const torn = nothing - sizeof(sa_family_t);
  *(sa_family_t*)(void*)torn = AF_UNIX;
  const int families[] = {AF_UNIX, AF_INET, AF_INET6};
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    const int fd = socket(families[i], SOCK_STREAM, 0);
    /* As long as LTTng-UST's, and as those of the families are. */
    const socklen_t lengths[] = {sizeof(struct sockaddr_un), sizeof(struct sockaddr_in),
                                 sizeof(struct sockaddr_in6)};
    for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
      MUST_BE_UNREADABLE(connect(fd, (struct sockaddr*)(void*)nothing, lengths[j]));
      MUST_BE_UNREADABLE(connect(fd, (struct sockaddr*)(void*)torn, lengths[j]));
    }
    close(fd);
  }
  MUST_BE_UNREADABLE(write(tcp, nothing, 10));
  MUST_BE_UNREADABLE(send(tcp, nothing, 10, 0));
  MUST_BE_UNREADABLE(sendto(tcp, torn, 2, 0, (struct sockaddr*)(void*)nothing, 16));
  MUST_BE_UNREADABLE(writev(tcp, (struct iovec*)(void*)nothing, 1));
  MUST_BE_UNREADABLE(sendmsg(tcp, (struct msghdr*)(void*)nothing, 0));
  MUST_BE_UNREADABLE(sendmmsg(tcp, (struct mmsghdr*)(void*)nothing, 1, 0));
  MUST_BE_UNREADABLE(readv(tcp, (struct iovec*)(void*)nothing, 1));
  MUST_BE_UNREADABLE(recvmsg(tcp, (struct msghdr*)(void*)nothing, MSG_DONTWAIT));
  MUST_BE_UNREADABLE(recvmmsg(tcp, (struct mmsghdr*)(void*)nothing, 1, MSG_DONTWAIT, NULL));
  MUST_BE_UNREADABLE(setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, nothing, sizeof(int)));
  munmap(pages, 2 * page);
}

int NetErrors(void) {
  struct Link link;
  char buffer[64] = {0};
  NetConnect(&link, AF_INET);
  signal(SIGPIPE, SIG_IGN);
  NetSync("ready");
  for (int i = 0; i < 2; i++) {
    errno = 0;
    Must(recv(link.ends[0].fd, buffer, 64, MSG_DONTWAIT) == -1 && errno == EAGAIN, "EAGAIN");
    errno = 7;
    Must(send(link.ends[0].fd, buffer, 10, 0) == 10 && errno == 7, "errno is touched");
    Must(recv(link.ends[1].fd, buffer, 64, MSG_PEEK) == 10 && errno == 7, "MSG_PEEK");
    Must(read(link.ends[1].fd, buffer, 64) == 10 && errno == 7, "errno is touched");
    Must(write(-1, buffer, 1) == -1 && errno == EBADF, "EBADF");
    Must(read(1 << 25, buffer, 1) == -1 && errno == EBADF, "EBADF, a large number");
    errno = 7;
  }
  HandOverWhatIsUnreadable(link.ends[0].fd);
  close(link.ends[1].fd);
  ssize_t n;
  do {
    n = send(link.ends[0].fd, buffer, 1, 0);
  } while (n == 1);
  Must(n == -1 && (errno == EPIPE || errno == ECONNRESET), "EPIPE");
  errno = 0;
  Must(close(-1) == -1 && errno == EBADF, "close");
  NetSync("done");
  return 0;
}

/* ---- signal handlers that send ---- */

static struct Link from_handler;
static volatile uint64_t handler_bytes;

static void OnAlarm(int number) {
  (void)number;
  const int saved = errno;
  char buffer[16] = {0};
  const ssize_t n = write(from_handler.ends[0].fd, buffer, sizeof buffer);
  if (n > 0) handler_bytes += (uint64_t)n;
  errno = saved;
}

int NetSignals(const char* path) {
  struct Link link;
  NetTruth(path);
  NetConnect(&link, AF_INET);
  NetConnect(&from_handler, AF_INET);
  struct sigaction action = {.sa_handler = OnAlarm, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 200}, {0, 200}};
  NetSync("ready");
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 10000; i++) {
    NetSend(&link.ends[0], 20);
    NetReceive(&link.ends[1], 20);
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  NetReceive(&from_handler.ends[1], handler_bytes);
  NetSay("handler %llu\n", (unsigned long long)handler_bytes);
  NetSync("done");
  return 0;
}

/* ---- fork: the child has connections of its own, and one that it shares ---- */

int NetFork(const char* path) {
  struct Link link, inherited;
  NetTruth(path);
  NetConnect(&link, AF_INET);
  NetConnect(&inherited, AF_INET);
  NetSync("ready");
  NetSend(&inherited.ends[0], 1000);
  const pid_t child = fork();
  if (child == 0) {
    struct Link own;
    NetConnect(&own, AF_INET);
    NetSync("child"); /* has a block of its own now, with a gate of its own */
    for (int i = 0; i < 100; i++) {
      NetSend(&own.ends[0], 11);
      NetReceive(&own.ends[1], 11);
    }
    NetSend(&inherited.ends[0], 500); /* the truth of both: 1000 were before */
    _exit(0);
  }
  int status = 0;
  Must(waitpid(child, &status, 0) == child && status == 0, "child");
  inherited.ends[0].moved[0] += 500;
  usleep(120000);
  NetSend(&inherited.ends[0], 100);
  NetReceive(&inherited.ends[1], 1600);
  NetSend(&link.ends[0], 33);
  NetReceive(&link.ends[1], 33);
  /* A vfork's child runs in our memory. */
  const pid_t borrowed = vfork();
  if (borrowed == 0) {
    (void)!write(inherited.ends[0].fd, "", 0);
    execl("/bin/true", "true", (char*)NULL);
    _exit(9);
  }
  Must(waitpid(borrowed, &status, 0) == borrowed && status == 0, "vfork");
  NetSend(&link.ends[0], 44);
  NetReceive(&link.ends[1], 44);
  NetSync("done");
  return 0;
}

/* ---- children that have nothing to tell, and how soon they go on ---- */

static void InChild(uint64_t forked) {
  struct Link own;
  int ends[2];
  char buffer[16] = {0};
  NetSay("behind %llu\n", (unsigned long long)((NetNow() - forked) / 1000000)); /* ms */
  Must(pipe(ends) == 0, "pipe");
  for (int i = 0; i < 100; i++) {
    Must(write(ends[1], buffer, 10) == 10 && read(ends[0], buffer, 16) == 10, "pipe");
  }
  Must(close(ends[0]) == 0 && close(ends[1]) == 0, "close");
  NetSync("child");
  NetConnect(&own, AF_INET); /* now it has */
  NetSync("connected");
  _exit(0);
}

int NetChildren(void) {
  struct Link link;
  NetConnect(&link, AF_INET);
  for (;;) {
    NetSync("ready");
    NetSend(&link.ends[0], 100);
    const uint64_t forked = NetNow();
    const pid_t child = fork();
    if (child == 0) InChild(forked);
    int status = 0;
    Must(waitpid(child, &status, 0) == child && status == 0, "child");
  }
}

/* ---- many threads ---- */

#define CROWD 500
static struct Link crowd_links[20];
static pthread_mutex_t crowd_mutexes[20];

static void* InCrowd(void* argument) {
  const int which = (int)(intptr_t)argument % 20;
  for (int i = 0; i < 10; i++) {
    pthread_mutex_lock(&crowd_mutexes[which]);
    NetSend(&crowd_links[which].ends[i % 2], 100 + (size_t)i);
    NetReceive(&crowd_links[which].ends[1 - i % 2], 100 + (size_t)i);
    pthread_mutex_unlock(&crowd_mutexes[which]);
    usleep(1000);
  }
  return NULL;
}

int NetThreads(const char* path) {
  static pthread_t threads[CROWD];
  pthread_attr_t attributes;
  NetTruth(path);
  for (int i = 0; i < 20; i++) {
    pthread_mutex_init(&crowd_mutexes[i], NULL);
    NetConnect(&crowd_links[i], i % 2 ? AF_INET : AF_INET6);
  }
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  NetSync("ready");
  for (intptr_t i = 0; i < CROWD; i++) {
    Must(!pthread_create(&threads[i], &attributes, InCrowd, (void*)i), "thread");
  }
  for (int i = 0; i < CROWD; i++) pthread_join(threads[i], NULL);
  NetSync("done");
  return 0;
}

/* ---- no descriptor is left ---- */

int NetDescriptors(const char* path) {
  struct Link link;
  NetTruth(path);
  NetConnect(&link, AF_INET);
  NetSync("ready");
  int last = dup(1);
  const struct rlimit few = {(rlim_t)last + 4, (rlim_t)last + 4};
  Must(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
  while (dup(1) >= 0) {
  }
  Must(errno == EMFILE, "EMFILE");
  Must(socket(AF_INET, SOCK_STREAM, 0) == -1 && errno == EMFILE, "EMFILE");
  for (int i = 0; i < 100; i++) {
    NetSend(&link.ends[i % 2], 77);
    NetReceive(&link.ends[1 - i % 2], 77);
  }
  NetSync("done");
  return 0;
}
