/* The lock under which a tracepoint reads its list of probes (userspace RCU: a store into the
 * thread's own reader), taken here.
 *
 * LTTNG_UST_TRACEPOINT takes, uses and gives it with three calls, each through two libraries, and
 * each asks the loader where the reader of this thread is: a tenth of an event, more where none of
 * that code is in a cache. Where it is does not change while the thread lives, only what is in it.
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

/* Where this thread's reader is kept; the reader itself comes and goes. */
static __thread struct lttng_ust_urcu_reader** syncline_reader
    __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) void syncline_find_reader(void) {
  if (!URCU_TLS(lttng_ust_urcu_reader)) lttng_ust_urcu_register();
  syncline_reader = &URCU_TLS(lttng_ust_urcu_reader);
}

static inline __attribute__((always_inline)) void syncline_read_lock(void) {
  if (__builtin_expect(!syncline_reader || !*syncline_reader, 0)) syncline_find_reader();
  cmm_barrier();
  struct lttng_ust_urcu_reader* reader = *syncline_reader;
  const unsigned long held = reader->ctr;
  if (__builtin_expect((held & LTTNG_UST_URCU_GP_CTR_NEST_MASK) == 0, 1)) {
    CMM_STORE_SHARED(reader->ctr, CMM_LOAD_SHARED(lttng_ust_urcu_gp.ctr));
    lttng_ust_urcu_smp_mb_slave();
  } else {
    CMM_STORE_SHARED(reader->ctr, held + LTTNG_UST_URCU_GP_COUNT);
  }
}

static inline __attribute__((always_inline)) void syncline_read_unlock(void) {
  struct lttng_ust_urcu_reader* reader = *syncline_reader;
  lttng_ust_urcu_smp_mb_slave();
  CMM_STORE_SHARED(reader->ctr, reader->ctr - LTTNG_UST_URCU_GP_COUNT);
  cmm_barrier();
}

#undef LTTNG_UST_TP_RCU_LINK_TEST
#undef lttng_ust_tp_rcu_read_lock
#undef lttng_ust_tp_rcu_read_unlock
#undef lttng_ust_tp_rcu_dereference
#define LTTNG_UST_TP_RCU_LINK_TEST() 1
#define lttng_ust_tp_rcu_read_lock syncline_read_lock
#define lttng_ust_tp_rcu_read_unlock syncline_read_unlock
#define lttng_ust_tp_rcu_dereference(pointer) CMM_LOAD_SHARED(pointer)

#endif /* SYNCLINE_INSTRUMENTATION_BLOCK_READ_LOCK_H_ */
