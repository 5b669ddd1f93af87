// SPDX-License-Identifier: Apache-2.0
/* LTTng-UST and the programs that close every descriptor that they find.
 *
 * LTTng-UST keeps sockets, pipes and shared memory open in the program. Programs close what they do
 * not know: daemons, launchers, children after a fork. LTTng-UST then answers its session daemon
 * over, wakes a reader through, and closes whatever has the number by then, and where nothing has,
 * it aborts the program (close() must not fail, and a number must not come twice). A recording
 * makes it use its descriptors, so that we would be who ends the program.
 *
 * The program's own calls are left alone, whatever they close and however. LTTng-UST's calls come
 * by here too, because we are preloaded, and are known by where they come from: between two
 * addresses. What it opens is remembered by number, with the file that it is. What it does to a
 * number that is another file by now, or none, is not done: closing it succeeds, sending and
 * receiving say that the other end has gone. It then connects anew, by itself, and can be recorded
 * again. A number under which it was sent what it could not use it does not get again.
 *
 * Threads: LTTng-UST's own, one of which at a time opens and closes, and all that write events.
 * Nothing is allocated, and nothing locked; but see FindTracer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "instrumentation/net/internal.h"

#define NUMBERS 8192   /* beyond: only that closing never fails */
#define FIRST_NUMBER 3 /* LTTng-UST copies smaller ones, unseen */
#define SOCKET_NAME "lttng-ust-sock-"

uintptr_t net_tracer_begin;
uintptr_t net_tracer_bytes;

static uint64_t files[NUMBERS]; /* what LTTng-UST has open under a number; 0: nothing */
/* The program closed it: no file is this one. LTTng-UST may believe that it has it still. */
#define SPENT 1
#define RECEIVED 2 /* LTTng sends no more with a message; static TLS is scarce */

/* What came with the message that this thread carries out. When that fails LTTng-UST closes it (the
 * ends of its handle_message), but believes on that it has the number, and aborts when that comes
 * again. */
static __thread uint16_t received[RECEIVED] __attribute__((tls_model("initial-exec")));

/* 0: no file. Of sockets, pipes and shared memory, which have inodes of their own. By system call:
 * fstat is a younger symbol than what this library may need. */
static uint64_t FileOf(int fd) {
  struct stat status;
  const int saved = errno;
  const long failed = syscall(SYS_fstat, fd, &status);
  errno = saved;
  return failed ? 0 : ((uint64_t)status.st_dev << 48 ^ (uint64_t)status.st_ino) | 1ull << 63;
}

/* What LTTng-UST believes from now on to have open under this number. */
static void Remember(int fd, uint64_t* entry) {
  const uint64_t file = FileOf(fd);
  __atomic_store_n(entry, file ? file : SPENT, __ATOMIC_RELAXED);
}

static uint64_t* EntryOf(int fd) { return fd >= 0 && fd < NUMBERS ? &files[fd] : NULL; }

static int IsFree(int fd) {
  const uint64_t* entry = EntryOf(fd);
  return fd >= FIRST_NUMBER && (!entry || __atomic_load_n(entry, __ATOMIC_RELAXED) == 0);
}

int net_tracer_lost(int fd) {
  const uint64_t* entry = EntryOf(fd);
  const uint64_t file = entry ? __atomic_load_n(entry, __ATOMIC_RELAXED) : 0;
  return file != 0 && file != FileOf(fd);
}

int net_tracer_closes(int fd) {
  const int lost = net_tracer_lost(fd);
  int spent = 0;
  for (int i = 0; i < RECEIVED; i++) spent |= fd > 0 && received[i] == fd;
  uint64_t* entry = EntryOf(fd);
  if (entry) __atomic_store_n(entry, spent ? SPENT : 0, __ATOMIC_RELAXED);
  return lost;
}

void net_tracer_done(void) { memset(received, 0, sizeof received); }

static void Close(int fd) { syscall(SYS_close, fd); }

int net_tracer_opens(int fd) {
  const uint64_t file = FileOf(fd);
  int number = fd;
  /* It believes that it has this number open still, and aborts when it gets it again. */
  while (number >= 0 && !IsFree(number)) {
    const int higher =
        fcntl(fd, F_DUPFD_CLOEXEC, number < FIRST_NUMBER ? FIRST_NUMBER : number + 1);
    if (number != fd) Close(number);
    number = higher;
  }
  if (number >= 0 && FileOf(number) != file) { /* the program closed it, and opened another */
    if (number != fd) Close(number);
    errno = EBADF;
    return -1;
  }
  if (number != fd) {
    const int saved = errno;
    Close(fd);
    errno = saved;
  }
  uint64_t* entry = EntryOf(number);
  if (entry) Remember(number, entry);
  return number;
}

void net_tracer_receives(struct msghdr* message) {
  int failed = 0;
  for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int* fds = (int*)(void*)CMSG_DATA(part);
    for (size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof *fds; i++) {
      fds[i] = net_tracer_opens(fds[i]);
      failed |= fds[i] < 0;
      received[1] = received[0];
      received[0] = EntryOf(fds[i]) ? (uint16_t)fds[i] : 0;
    }
  }
  if (failed) message->msg_controllen = 0; /* it gives the connection up */
}

/* ---- where it lies ---- */

static int IsTracer(struct dl_phdr_info* module, size_t bytes, void* argument) {
  (void)bytes;
  for (int i = 0; i < module->dlpi_phnum; i++) {
    const ElfW(Phdr)* segment = &module->dlpi_phdr[i];
    const uintptr_t begin = module->dlpi_addr + segment->p_vaddr;
    if (segment->p_type != PT_LOAD || (uintptr_t)argument - begin >= segment->p_memsz) continue;
    net_tracer_begin = begin;
    __atomic_store_n(&net_tracer_bytes, segment->p_memsz, __ATOMIC_RELEASE);
    return 1;
  }
  return 0;
}

/* Takes a lock of the loader that is held briefly, never while libraries are set up: the thread
 * that loads LTTng-UST waits for the one that is here. */
static void FindTracer(const void* inside) {
  if (__atomic_load_n(&net_tracer_bytes, __ATOMIC_ACQUIRE) == 0) {
    dl_iterate_phdr(IsTracer, (void*)(uintptr_t)inside);
  }
}

void net_tracer_connected(int fd, const void* caller) {
  struct sockaddr_un peer;
  socklen_t bytes = sizeof peer;
  const size_t before = offsetof(struct sockaddr_un, sun_path);
  const int saved = errno;
  const int failed = getpeername(fd, (struct sockaddr*)&peer, &bytes);
  errno = saved;
  if (failed || bytes <= before || bytes > sizeof peer || peer.sun_family != AF_UNIX) return;
  const size_t room = bytes - before;
  const char* name = peer.sun_path;
  for (size_t i = 0; i < room && peer.sun_path[i]; i++) {
    if (peer.sun_path[i] == '/') name = &peer.sun_path[i + 1];
  }
  const size_t left = room - (size_t)(name - peer.sun_path);
  if (left < sizeof SOCKET_NAME || memcmp(name, SOCKET_NAME, sizeof SOCKET_NAME - 1) != 0) return;
  FindTracer(caller);
  uint64_t* entry = EntryOf(fd);
  if (entry && IsFree(fd)) Remember(fd, entry);
  errno = saved;
}
