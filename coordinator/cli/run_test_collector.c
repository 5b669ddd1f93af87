// SPDX-License-Identifier: Apache-2.0
// For run_test: stands for a library of ours. A process that loads it while LTTng-UST would wait
// for a session daemon ends.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void EndWhereLttngWouldWait(void) {
  const char* timeout = getenv("LTTNG_UST_REGISTER_TIMEOUT");
  if (timeout == NULL || strcmp(timeout, "0") != 0) _exit(99);
}
