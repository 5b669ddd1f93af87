// SPDX-License-Identifier: Apache-2.0
/* What the scenarios of itt_traps share. */
#ifndef SYNCLINE_INSTRUMENTATION_TESTS_TRAPS_H_
#define SYNCLINE_INSTRUMENTATION_TESTS_TRAPS_H_

#include "instrumentation/tests/static_part.h"

/* Says `text` on stdout and waits for a line on stdin: the test switches recording on and off
 * meanwhile. Neither allocates nor locks. */
void TrapSync(const char* text);
void TrapSay(const char* form, ...) __attribute__((format(printf, 1, 2)));

/* A static part with a domain and a string made before the collector is there. */
struct TrapPart {
  struct static_part part;
  struct itt_domain* domain;
  struct itt_string_handle* name;
};
void TrapStart(struct TrapPart* trap, const char* domain, const char* name);
void TrapTask(struct TrapPart* trap);

int TrapFork(void);
int TrapExec(void);
int TrapExecuted(void);
int TrapUnload(const char* plugin);
int TrapExit(void);
int TrapDeepExit(void);
int TrapSignals(void);
int TrapHandler(void);

#endif /* SYNCLINE_INSTRUMENTATION_TESTS_TRAPS_H_ */
