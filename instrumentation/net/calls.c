// SPDX-License-Identifier: Apache-2.0
/* The functions of libc that this library stands in front of: those that move bytes over a socket,
 * and those after which a descriptor may be another one. Each calls the next function of its name,
 * once, with what it was given; while nothing is recorded it does nothing else. LTTng-UST's own
 * calls are not let through when the program has closed its descriptors (tracer.c).
 *
 * Not here: UDP and Unix sockets pass (connections.c knows them by their protocol); splice,
 * io_uring and system calls of the program's own are not seen, which the positions show
 * (positions.c). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/net/internal.h"

/* Not in headers: what programs call that were built with _FORTIFY_SOURCE. */
ssize_t __read_chk(int fd, void* buffer, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void* buffer, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void* buffer, size_t bytes, size_t room, int flags,
                       __SOCKADDR_ARG from, socklen_t* from_bytes);

/* The next functions of these names. All are looked up at once, before anybody needs them: the
 * loader's lock may be held by a thread that waits for the one that makes the call (a library that
 * is being opened and waits for a thread of its own, as LTTng-UST does). */
#define NET_FUNCTIONS(of)                                                                        \
  of(write) of(writev) of(send) of(sendto) of(sendmsg) of(sendfile) of(sendfile64) of(sendmmsg)  \
      of(read) of(__read_chk) of(readv) of(recv) of(__recv_chk) of(recvfrom) of(__recvfrom_chk)  \
          of(recvmsg) of(recvmmsg) of(socket) of(dup) of(dup2) of(dup3) of(accept) of(accept4)   \
              of(listen) of(connect) of(shutdown) of(close) of(fcntl) of(fcntl64) of(setsockopt) \
                  of(open) of(sem_timedwait)

#define DECLARE(name) __typeof__(&name) name;
static struct { NET_FUNCTIONS(DECLARE) } next;

void net_find_functions(void) {
#define FIND(name) *(void**)&next.name = dlsym(RTLD_NEXT, #name);
  NET_FUNCTIONS(FIND)
}

/* Apart from the others: an old C library has it in another library, and what finds nothing
 * allocates. */
static __typeof__(&shm_open) next_shm_open;

void net_find_shm_open(void) {
  *(void**)&next_shm_open = dlsym(RTLD_NEXT, "shm_open");
  if (next_shm_open) return;
  void* const library = dlopen("librt.so.1", RTLD_LAZY);
  if (library) *(void**)&next_shm_open = dlsym(library, "shm_open");
}

/* Constructors of other libraries may run before ours. */
#define NEXT(name) (__builtin_expect(!next.name, 0) ? (net_find_functions(), next.name) : next.name)

/* Bytes that are looked at, not taken, or that are not of the stream. */
#define NO_TRANSFER (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)

/* Is it LTTng-UST that calls? */
#define FROM_TRACER NetIsTracer(__builtin_return_address(0))

#define TRANSFER(which, fd, invoke)                                  \
  do {                                                               \
    struct net_call call;                                            \
    if (NetQuiet() || FROM_TRACER || !net_begin(&call, fd, which)) { \
      return invoke;                                                 \
    }                                                                \
    const ssize_t result = invoke;                                   \
    net_end(&call, result);                                          \
    return result;                                                   \
  } while (0)

/* It would move bytes of a file of the program's. */
#define REFUSE_LOST(fd)                                              \
  do {                                                               \
    if (FROM_TRACER && net_tracer_lost(fd)) {                        \
      errno = EPIPE; /* the end of this connection, for LTTng-UST */ \
      return -1;                                                     \
    }                                                                \
  } while (0)

/* ---- bytes leave ---- */

SYNCLINE_EXPORT ssize_t write(int fd, const void* buffer, size_t bytes) {
  REFUSE_LOST(fd);
  TRANSFER(NET_SEND, fd, NEXT(write)(fd, buffer, bytes));
}
SYNCLINE_EXPORT ssize_t writev(int fd, const struct iovec* parts, int count) {
  REFUSE_LOST(fd);
  TRANSFER(NET_SEND, fd, NEXT(writev)(fd, parts, count));
}
SYNCLINE_EXPORT ssize_t send(int fd, const void* buffer, size_t bytes, int flags) {
  REFUSE_LOST(fd);
  TRANSFER(NET_SEND, fd, NEXT(send)(fd, buffer, bytes, flags));
}
SYNCLINE_EXPORT ssize_t sendto(int fd, const void* buffer, size_t bytes, int flags,
                               __CONST_SOCKADDR_ARG to, socklen_t to_bytes) {
  TRANSFER(NET_SEND, fd, NEXT(sendto)(fd, buffer, bytes, flags, to, to_bytes));
}
SYNCLINE_EXPORT ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  REFUSE_LOST(fd);
  TRANSFER(NET_SEND, fd, NEXT(sendmsg)(fd, message, flags));
}
SYNCLINE_EXPORT ssize_t sendfile(int fd, int from, off_t* offset, size_t bytes) {
  TRANSFER(NET_SEND, fd, NEXT(sendfile)(fd, from, offset, bytes));
}
SYNCLINE_EXPORT ssize_t sendfile64(int fd, int from, off64_t* offset, size_t bytes) {
  TRANSFER(NET_SEND, fd, NEXT(sendfile64)(fd, from, offset, bytes));
}

static ssize_t Sum(const struct mmsghdr* messages, int count) {
  ssize_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += messages[i].msg_len;
  return bytes;
}
SYNCLINE_EXPORT int sendmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags) {
  struct net_call call;
  if (NetQuiet() || !net_begin(&call, fd, NET_SEND)) {
    return NEXT(sendmmsg)(fd, messages, count, flags);
  }
  const int result = NEXT(sendmmsg)(fd, messages, count, flags);
  net_end(&call, Sum(messages, result));
  return result;
}

/* ---- bytes arrive ---- */

SYNCLINE_EXPORT ssize_t read(int fd, void* buffer, size_t bytes) {
  TRANSFER(NET_RECEIVE, fd, NEXT(read)(fd, buffer, bytes));
}
SYNCLINE_EXPORT ssize_t __read_chk(int fd, void* buffer, size_t bytes, size_t room) {
  TRANSFER(NET_RECEIVE, fd, NEXT(__read_chk)(fd, buffer, bytes, room));
}
SYNCLINE_EXPORT ssize_t readv(int fd, const struct iovec* parts, int count) {
  TRANSFER(NET_RECEIVE, fd, NEXT(readv)(fd, parts, count));
}
SYNCLINE_EXPORT ssize_t recv(int fd, void* buffer, size_t bytes, int flags) {
  if (flags & NO_TRANSFER) return NEXT(recv)(fd, buffer, bytes, flags);
  TRANSFER(NET_RECEIVE, fd, NEXT(recv)(fd, buffer, bytes, flags));
}
SYNCLINE_EXPORT ssize_t __recv_chk(int fd, void* buffer, size_t bytes, size_t room, int flags) {
  if (flags & NO_TRANSFER) return NEXT(__recv_chk)(fd, buffer, bytes, room, flags);
  TRANSFER(NET_RECEIVE, fd, NEXT(__recv_chk)(fd, buffer, bytes, room, flags));
}
SYNCLINE_EXPORT ssize_t recvfrom(int fd, void* buffer, size_t bytes, int flags, __SOCKADDR_ARG from,
                                 socklen_t* from_bytes) {
  if (flags & NO_TRANSFER) return NEXT(recvfrom)(fd, buffer, bytes, flags, from, from_bytes);
  TRANSFER(NET_RECEIVE, fd, NEXT(recvfrom)(fd, buffer, bytes, flags, from, from_bytes));
}
SYNCLINE_EXPORT ssize_t __recvfrom_chk(int fd, void* buffer, size_t bytes, size_t room, int flags,
                                       __SOCKADDR_ARG from, socklen_t* from_bytes) {
  if (flags & NO_TRANSFER) {
    return NEXT(__recvfrom_chk)(fd, buffer, bytes, room, flags, from, from_bytes);
  }
  TRANSFER(NET_RECEIVE, fd, NEXT(__recvfrom_chk)(fd, buffer, bytes, room, flags, from, from_bytes));
}
static ssize_t ReceiveForTracer(int fd, struct msghdr* message, int flags) {
  net_tracer_done();
  if (net_tracer_lost(fd)) return 0; /* the other end has gone */
  const ssize_t result = NEXT(recvmsg)(fd, message, flags | MSG_CMSG_CLOEXEC);
  if (result > 0) net_tracer_receives(message);
  return result;
}
SYNCLINE_EXPORT ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  if (FROM_TRACER) return ReceiveForTracer(fd, message, flags);
  if (flags & NO_TRANSFER) return NEXT(recvmsg)(fd, message, flags);
  TRANSFER(NET_RECEIVE, fd, NEXT(recvmsg)(fd, message, flags));
}
SYNCLINE_EXPORT int recvmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags,
                             struct timespec* limit) {
  struct net_call call;
  if ((flags & NO_TRANSFER) || NetQuiet() || !net_begin(&call, fd, NET_RECEIVE)) {
    return NEXT(recvmmsg)(fd, messages, count, flags, limit);
  }
  const int result = NEXT(recvmmsg)(fd, messages, count, flags, limit);
  net_end(&call, Sum(messages, result));
  return result;
}

/* ---- a descriptor begins or ends ---- */

static int Fresh(int fd) {
  if (fd >= 0) net_forget(fd);
  return fd;
}

SYNCLINE_EXPORT int socket(int domain, int type, int protocol) {
  /* LTTng-UST sets that later: a child that calls exec meanwhile would take it along. */
  const int more = FROM_TRACER ? SOCK_CLOEXEC : 0;
  const int fd = Fresh(NEXT(socket)(domain, type | more, protocol));
  return FROM_TRACER && fd >= 0 ? net_tracer_opens(fd) : fd;
}
SYNCLINE_EXPORT int dup(int fd) { return Fresh(NEXT(dup)(fd)); }
SYNCLINE_EXPORT int dup2(int fd, int to) { return Fresh(NEXT(dup2)(fd, to)); }
SYNCLINE_EXPORT int dup3(int fd, int to, int flags) { return Fresh(NEXT(dup3)(fd, to, flags)); }
SYNCLINE_EXPORT int accept(int fd, __SOCKADDR_ARG from, socklen_t* from_bytes) {
  net_wake_for(fd);
  return Fresh(NEXT(accept)(fd, from, from_bytes));
}
SYNCLINE_EXPORT int accept4(int fd, __SOCKADDR_ARG from, socklen_t* from_bytes, int flags) {
  net_wake_for(fd);
  return Fresh(NEXT(accept4)(fd, from, from_bytes, flags));
}
SYNCLINE_EXPORT int listen(int fd, int backlog) {
  const int result = NEXT(listen)(fd, backlog);
  if (result == 0) net_wake_for(fd);
  return result;
}
SYNCLINE_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t to_bytes) {
  REFUSE_LOST(fd);
  net_wake_for(fd);
  const int result = NEXT(connect)(fd, to, to_bytes);
  if (result == 0 && !NetKnowsTracer()) net_tracer_connected(fd, __builtin_return_address(0));
  return result;
}
SYNCLINE_EXPORT int shutdown(int fd, int how) {
  if (FROM_TRACER && net_tracer_lost(fd)) return 0;
  return NEXT(shutdown)(fd, how);
}
static int CloseForTracer(int fd) {
  const int saved = errno;
  if (!net_tracer_closes(fd) && NEXT(close)(fd) != 0 && errno != EBADF) return -1;
  errno = saved;
  return 0; /* closed, if not by this call */
}
SYNCLINE_EXPORT int close(int fd) {
  if (FROM_TRACER) return CloseForTracer(fd);
  if (!NetQuiet()) net_closing(fd);
  /* Before: afterwards the number may be somebody else's already. */
  net_forget(fd);
  return NEXT(close)(fd);
}

/* ---- what else LTTng-UST does to its descriptors ---- */

SYNCLINE_EXPORT int setsockopt(int fd, int level, int option, const void* value, socklen_t bytes) {
  REFUSE_LOST(fd);
  return NEXT(setsockopt)(fd, level, option, value, bytes);
}
#define PASS_CONTROL(name)                      \
  do {                                          \
    REFUSE_LOST(fd);                            \
    va_list rest;                               \
    va_start(rest, command);                    \
    void* const argument = va_arg(rest, void*); \
    va_end(rest);                               \
    return NEXT(name)(fd, command, argument);   \
  } while (0)
SYNCLINE_EXPORT int fcntl(int fd, int command, ...) { PASS_CONTROL(fcntl); }
SYNCLINE_EXPORT int fcntl64(int fd, int command, ...) { PASS_CONTROL(fcntl64); }
SYNCLINE_EXPORT int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  /* An allocator may open files as it starts, and what looks functions up may allocate. */
  static __thread char finding __attribute__((tls_model("initial-exec")));
  if (__builtin_expect(!next.open, 0)) {
    if (finding) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    finding = 1;
    net_find_functions();
    finding = 0;
  }
  const int fd = next.open(path, flags, mode);
  return FROM_TRACER && fd >= 0 ? net_tracer_opens(fd) : fd;
}
SYNCLINE_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  if (!next_shm_open) net_find_shm_open();
  if (!next_shm_open) {
    errno = ENOSYS;
    return -1;
  }
  const int fd = next_shm_open(name, flags, mode);
  return FROM_TRACER && fd >= 0 ? net_tracer_opens(fd) : fd;
}

/* ---- how long a forked child waits for LTTng's session daemon ---- */

static int WaitForTracer(sem_t* known, const struct timespec* limit) {
  const int64_t may_ns = syncline_tracer_wait_ns();
  if (may_ns < 0) return NEXT(sem_timedwait)(known, limit);
  if (may_ns == 0) return 0; /* LTTng-UST does not wait, and says nothing */
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += (long)may_ns;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  const int sooner = limit->tv_sec < until.tv_sec ||
                     (limit->tv_sec == until.tv_sec && limit->tv_nsec < until.tv_nsec);
  int result;
  do {
    result = NEXT(sem_timedwait)(known, sooner ? limit : &until);
  } while (result != 0 && errno == EINTR);
  return result;
}
SYNCLINE_EXPORT int sem_timedwait(sem_t* semaphore, const struct timespec* limit) {
  return FROM_TRACER ? WaitForTracer(semaphore, limit) : NEXT(sem_timedwait)(semaphore, limit);
}
