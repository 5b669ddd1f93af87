// SPDX-License-Identifier: Apache-2.0
/* Scenario of net_traps: a program that closes all descriptors but the first three, LTTng's among
 * them, and uses their numbers for itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/tests/net_traps.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define DESCRIPTORS 1024 /* numbers that are looked at */
#define FILES 100        /* more than LTTng had open */

static void Must(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  _exit(5);
}

static void CloseAll(const char* form) {
  if (!strcmp(form, "closefrom")) {
    closefrom(3);
  } else if (!strcmp(form, "close_range")) {
    Must(close_range(3, ~0U, 0) == 0, "close_range");
  } else if (!strcmp(form, "raw")) {
    Must(syscall(SYS_close_range, 3, ~0U, 0) == 0, "close_range");
  } else {
    for (int fd = 3; fd < DESCRIPTORS; fd++) close(fd);
  }
}

static struct File {
  int fd;
  ino_t inode;
} files[FILES];

/* Files of the program's own, at the numbers that were LTTng's. */
static void Fill(void) {
  struct stat status;
  for (int i = 0; i < FILES; i++) {
    files[i].fd = memfd_create("closed", MFD_CLOEXEC);
    Must(fstat(files[i].fd, &status) == 0, "memfd_create");
    files[i].inode = status.st_ino;
  }
}

static void CheckFiles(void) {
  struct stat status;
  for (int i = 0; i < FILES && files[i].fd; i++) {
    Must(fstat(files[i].fd, &status) == 0, "a file of the program was closed");
    Must(status.st_ino == files[i].inode && status.st_size == 0, "a file is another one");
    Must((fcntl(files[i].fd, F_GETFL) & O_NONBLOCK) == 0, "the mode of a file was changed");
  }
}

static void Talk(struct Link* link) {
  for (int i = 0; i < 10; i++) {
    NetSend(&link->ends[i % 2], 100);
    NetReceive(&link->ends[1 - i % 2], 100);
  }
}

static void Pause(int milliseconds) {
  const struct timespec pause = {.tv_nsec = milliseconds * 1000000L};
  nanosleep(&pause, NULL);
}

/* How a forked process ended. */
static int Await(pid_t child) {
  int status = 0;
  Must(waitpid(child, &status, 0) == child, "waitpid");
  if (status != 0) fprintf(stderr, "the child's status: %d\n", status);
  return status == 0 ? 0 : 6;
}

/* Children that end at once; LTTng opens what has the next free number in each. */
static int ForkMany(void) {
  int failed = 0;
  for (int i = 0; i < 20; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    failed |= Await(child);
    Must(memfd_create("taken", MFD_CLOEXEC) >= 0, "memfd_create");
  }
  return failed;
}

int NetClosed(const char* form) {
  struct Link link;
  const int fill = !strcmp(form, "filled");
  NetConnect(&link, AF_INET); /* so that the library is awake */
  NetSync("awake");
  const int late = !strcmp(form, "late-child") || !strcmp(form, "late-children");
  if (!strcmp(form, "child") || late) {
    const pid_t child = fork();
    if (child != 0) return Await(child);
  }
  if (late) Pause(100); /* LTTng is sent its first descriptors: net_slow.c */
  CloseAll(form);       /* between recordings: LTTng's connection to its daemon */
  if (late) Pause(300); /* and it gives up what it was doing */
  if (!strcmp(form, "late-children") && ForkMany() != 0) return 7;
  if (!strcmp(form, "daemon")) {
    const pid_t child = fork();
    if (child != 0) return Await(child);
    setsid();
  }
  if (fill) Fill();
  NetConnect(&link, AF_INET);
  NetSync("ready");
  Talk(&link);
  CheckFiles();
  memset(files, 0, sizeof files);
  CloseAll(form); /* in a recording: its buffers, too */
  if (fill) Fill();
  NetConnect(&link, AF_INET);
  Talk(&link);
  NetSync("closed");
  CheckFiles();
  Talk(&link);
  NetSync("done");
  CheckFiles();
  CloseAll(form); /* and it ends as it would have ended */
  return 0;
}
