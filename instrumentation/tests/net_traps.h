// SPDX-License-Identifier: Apache-2.0
/* What the scenarios of net_traps share: TCP connections over loopback, and calls that are written
 * down: a line "send|receive tid local_port remote_port begin bytes t0 t1" each, times of
 * CLOCK_MONOTONIC around the call, positions since the connection began. */
#ifndef SYNCLINE_INSTRUMENTATION_TESTS_NET_TRAPS_H_
#define SYNCLINE_INSTRUMENTATION_TESTS_NET_TRAPS_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One end of a connection. */
struct End {
  int fd;
  unsigned local_port, remote_port;
  uint64_t moved[2]; /* bytes sent, received */
};
struct Link {
  struct End ends[2];
};

void NetSync(const char* text);
void NetSay(const char* form, ...) __attribute__((format(printf, 1, 2)));
uint64_t NetNow(void);
/* A connection, both ends here. `family`: AF_INET or AF_INET6. */
void NetConnect(struct Link* link, int family);
/* What the calls did goes to this file when the program ends. */
void NetTruth(const char* path);
/* Writes down a call that moved bytes; its position follows from what the end moved before. */
void NetFact(struct End* end, int receive, ssize_t bytes, uint64_t t0);
/* The same with a position of its own. */
void NetFactAt(const struct End* end, int receive, uint64_t begin, ssize_t bytes, uint64_t t0);
void NetSend(struct End* end, size_t bytes);
/* Reads `bytes`, in whatever portions. */
void NetReceive(struct End* end, size_t bytes);

int NetStream(const char* truth);
int NetShared(const char* truth);
int NetFiles(void);
int NetReuse(void);
int NetBypass(void);
int NetHalfClosed(const char* truth);
int NetErrors(void);
int NetSignals(const char* truth);
int NetFork(const char* truth);
int NetChildren(void);
int NetThreads(const char* truth);
int NetDescriptors(const char* truth);
int NetClosed(const char* form);

#endif /* SYNCLINE_INSTRUMENTATION_TESTS_NET_TRAPS_H_ */
