// SPDX-License-Identifier: Apache-2.0
/* The lock under which a tracepoint reads its list of probes (userspace RCU: a store into the
 * thread's own reader), taken here.
 *
 * LTTNG_UST_TRACEPOINT takes, uses and gives it with three calls, each through two libraries, and
 * each asks the loader where the reader of this thread is: a tenth of an event.
 *
 * Everything used here is what LTTng-UST inlines itself in programs that define _LGPL_SOURCE
 * (<lttng/urcu/static/urcu-ust.h>, "intended to be usable by non-LGPL code").
 *
 * Included before the tracepoints of a provider that is linked with LTTng-UST.
 */
#ifndef SYNCLINE_INSTRUMENTATION_BLOCK_READ_LOCK_H_
#define SYNCLINE_INSTRUMENTATION_BLOCK_READ_LOCK_H_

#include <lttng/tracepoint.h>
#include <lttng/urcu/static/urcu-ust.h>

/* The reader that unlocking needs. */
static inline __attribute__((always_inline)) struct lttng_ust_urcu_reader* syncline_read_lock(
    void) {
  struct lttng_ust_urcu_reader** at = &URCU_TLS(lttng_ust_urcu_reader);
  __asm__("" : "+r"(at)); /* or the compiler asks the loader for it each time */
  if (__builtin_expect(!*at, 0)) lttng_ust_urcu_register();
  cmm_barrier();
  struct lttng_ust_urcu_reader* const reader = *at;
  const unsigned long held = reader->ctr;
  if (__builtin_expect((held & LTTNG_UST_URCU_GP_CTR_NEST_MASK) == 0, 1)) {
    CMM_STORE_SHARED(reader->ctr, CMM_LOAD_SHARED(lttng_ust_urcu_gp.ctr));
    lttng_ust_urcu_smp_mb_slave();
  } else {
    CMM_STORE_SHARED(reader->ctr, held + LTTNG_UST_URCU_GP_COUNT);
  }
  return reader;
}

static inline __attribute__((always_inline)) void syncline_read_unlock(
    struct lttng_ust_urcu_reader* reader) {
  lttng_ust_urcu_smp_mb_slave();
  CMM_STORE_SHARED(reader->ctr, reader->ctr - LTTNG_UST_URCU_GP_COUNT);
  cmm_barrier();
}

#undef LTTNG_UST_TP_RCU_LINK_TEST
#undef lttng_ust_tp_rcu_read_lock
#undef lttng_ust_tp_rcu_read_unlock
#undef lttng_ust_tp_rcu_dereference
#define LTTNG_UST_TP_RCU_LINK_TEST() 1
/* Statements of one block. */
#define lttng_ust_tp_rcu_read_lock() \
  struct lttng_ust_urcu_reader* const syncline_reader = syncline_read_lock()
#define lttng_ust_tp_rcu_read_unlock() syncline_read_unlock(syncline_reader)
#define lttng_ust_tp_rcu_dereference(pointer) CMM_LOAD_SHARED(pointer)

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_READ_LOCK_H_ */
