// SPDX-License-Identifier: Apache-2.0
// Uninterruptible sleep, as that for storage is: of whoever made a child by vfork, until it ends.
#define _GNU_SOURCE
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int block(int milliseconds) {
  const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  const pid_t child = vfork();
  if (child == 0) {
    nanosleep(&pause, NULL);
    _exit(0);
  }
  return child < 0 ? -1 : waitpid(child, NULL, 0) == child ? 0 : -1;
}
