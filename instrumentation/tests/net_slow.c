// SPDX-License-Identifier: Apache-2.0
/* net_slow.so, for LD_PRELOAD behind the library of messages: in forked children, LTTng-UST learns
 * 200 ms later what descriptors its session daemon sent it; the program closes them meanwhile. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static pid_t first;
static ssize_t (*next_recvmsg)(int fd, struct msghdr* message, int flags);

/* Looked up at once: who calls later may be waited for by a thread that holds the loader's lock. */
__attribute__((constructor)) static void Start(void) {
  first = getpid();
  *(void**)&next_recvmsg = dlsym(RTLD_NEXT, "recvmsg");
}

EXPORT ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  const struct timespec pause = {.tv_nsec = 200000000};
  const ssize_t result = next_recvmsg(fd, message, flags);
  if (result > 0 && message->msg_controllen > 0 && getpid() != first) nanosleep(&pause, NULL);
  return result;
}
