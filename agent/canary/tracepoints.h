// SPDX-License-Identifier: Apache-2.0
/* The canary's own definition of `syncline:canary` (docs/event-schema.md). Providers are per
 * process, so this one and that of the instrumentation never meet. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syncline

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "agent/canary/tracepoints.h"

#if !defined(SYNCLINE_AGENT_CANARY_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SYNCLINE_AGENT_CANARY_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(syncline, canary, LTTNG_UST_TP_ARGS(uint64_t, nonce),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, nonce, nonce)))

#endif /* SYNCLINE_AGENT_CANARY_TRACEPOINTS_H_ */

#include <lttng/tracepoint-event.h>
