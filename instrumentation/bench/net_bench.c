// SPDX-License-Identifier: Apache-2.0
/* net_bench: what the library before socket calls costs. `net_bench off` needs nothing but the
 * preload; `net_bench on` waits for a line on stdin and expects to be recorded then: net_bench.py
 * does both. What is compared runs interleaved; the thread's own time counts.
 *
 * The calls go to net_bench_stub.c instead of the kernel, so that what is left is the library's. */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "instrumentation/bench/raw_transfer.h"

#define ROUNDS 1001

ssize_t net_bench_floor(int fd, const void* buffer, size_t bytes, int flags);

static int connection, file;

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void Floor(int count) {
  for (int i = 0; i < count; i++) net_bench_floor(connection, "", 1, 0);
}
static void Sends(int count) {
  for (int i = 0; i < count; i++) send(connection, "", 1, 0);
}
static void Files(int count) {
  for (int i = 0; i < count; i++) send(file, "", 1, 0);
}
static void Raw(int count) {
  for (int i = 0; i < count; i++) lttng_ust_tracepoint(syncline_bench_net, send, 1, 2, 3, 4, 5);
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

struct Figure {
  const char* name;
  void (*run)(int count);
  double ns[ROUNDS];
};

static void Measure(struct Figure* figures, int n, int count) {
  for (int i = 0; i < n; i++) figures[i].run(count / 10);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < n; i++) {
      const double begin = Now();
      figures[i].run(count);
      figures[i].ns[round] = (Now() - begin) / count;
    }
  }
  for (int i = 0; i < n; i++) {
    qsort(figures[i].ns, ROUNDS, sizeof(double), Compare);
    printf("%s %.2f %.2f %.2f\n", figures[i].name, figures[i].ns[ROUNDS / 2],
           figures[i].ns[ROUNDS / 4], figures[i].ns[3 * ROUNDS / 4]);
  }
  fflush(stdout);
}

static int Connect(void) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t bytes = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, bytes) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr*)&address, &bytes) ||
      connect(client, (struct sockaddr*)&address, bytes)) {
    perror("net_bench");
    exit(1);
  }
  return client;
}

int main(int argc, char** argv) {
  const int on = argc == 2 && strcmp(argv[1], "on") == 0;
  if (!on && (argc != 2 || strcmp(argv[1], "off") != 0)) {
    fprintf(stderr, "usage: LD_PRELOAD=.../libsyncline_net.so net_bench on|off\n");
    return 2;
  }
  connection = Connect();
  file = dup(0);
  if (on) {
    char line[16];
    if (!fgets(line, sizeof line, stdin)) return 1;
    static struct Figure figures[] = {{"floor", Floor, {0}},
                                      {"raw_event", Raw, {0}},
                                      {"recorded_call", Sends, {0}},
                                      {"recorded_other", Files, {0}}};
    Measure(figures, 4, 1000);
  } else {
    static struct Figure figures[] = {{"floor_off", Floor, {0}}, {"off_call", Sends, {0}}};
    Measure(figures, 2, 10000);
  }
  return 0;
}
