// SPDX-License-Identifier: Apache-2.0
/* libsyncline_torch_provider.so: the events of the provider `syncline_torch`. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "instrumentation/torch/provider.h"

#include "instrumentation/torch/tracepoints.h"

#define EMIT(event, ...)                                                \
  do {                                                                  \
    if (!lttng_ust_tracepoint_enabled(syncline_torch, event)) return 0; \
    lttng_ust_do_tracepoint(syncline_torch, event, __VA_ARGS__);        \
    return 1;                                                           \
  } while (0)

static int Operators(uint32_t thread, uint8_t on) { EMIT(operators, thread, on); }
static int Group(uint32_t thread, const struct syncline_torch_group* g) { EMIT(group, thread, g); }
static int Collective(uint32_t thread, uint32_t group, uint32_t name, uint64_t sequence,
                      uint64_t bytes) {
  EMIT(collective, thread, group, name, sequence, bytes);
}
static int Root(uint32_t thread, uint32_t group, int32_t root) { EMIT(root, thread, group, root); }
static int TransferBegin(uint32_t thread, const struct syncline_torch_transfer* t) {
  EMIT(transfer_begin, thread, t);
}
static int TransferEnd(uint32_t thread, uint64_t id, int32_t peer, uint64_t waited) {
  EMIT(transfer_end, thread, id, peer, waited);
}

__attribute__((visibility("default"))) const struct syncline_torch_emit syncline_torch_emit = {
    .operators = Operators,
    .group = Group,
    .collective = Collective,
    .root = Root,
    .transfer_begin = TransferBegin,
    .transfer_end = TransferEnd,
};
