// SPDX-License-Identifier: Apache-2.0
/* Writes one event, syncline:canary, and ends. The agent runs it as each user to be traced: when
 * its nonce comes back through the session, everything between a process of that user and the disk
 * works. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/canary/tracepoints.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr,
            "usage: syncline-canary NONCE\nWrites the event syncline:canary; the agent runs it.\n");
    return 2;
  }
  char* end = NULL;
  errno = 0;
  const uint64_t nonce = strtoull(argv[1], &end, 10);
  if (errno != 0 || *end != '\0') {
    fprintf(stderr, "syncline-canary: not a number: %s\n", argv[1]);
    return 2;
  }
  lttng_ust_tracepoint(syncline, canary, nonce);
  /* 3: nobody listens. No session daemon in reach of this user, or no session with the event. */
  return lttng_ust_tracepoint_enabled(syncline, canary) ? 0 : 3;
}
