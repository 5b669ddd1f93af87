// SPDX-License-Identifier: Apache-2.0
/* The table through which libsyncline_torch.so reaches LTTng-UST, as in block/provider.h. */
#ifndef SYNCLINE_INSTRUMENTATION_TORCH_PROVIDER_H_
#define SYNCLINE_INSTRUMENTATION_TORCH_PROVIDER_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SYNCLINE_TORCH_PROVIDER_FILE "libsyncline_torch_provider.so"
/* The table's symbol: `const struct syncline_torch_emit`. */
#define SYNCLINE_TORCH_PROVIDER_SYMBOL "syncline_torch_emit"

/* A process group as it is now; names are ids. */
struct syncline_torch_group {
  uint32_t group;
  uint32_t description;
  uint32_t ranks; /* the members' global ranks, in the order of their ranks in the group: "0-3,8" */
  int32_t rank;   /* this process's, in the group */
  uint32_t size;
  uint64_t sequence;
};

/* A send or a receive. */
struct syncline_torch_transfer {
  uint64_t id; /* unique in the process */
  uint32_t group;
  uint32_t name; /* "send", "recv", "recv_anysource" */
  int32_t peer;  /* its rank in the group; -1: any */
  int32_t tag;
  uint64_t bytes;
};

/* Each returns 1 when a session takes the event, 0 when none does. docs/event-schema.md. */
struct syncline_torch_emit {
  int (*operators)(uint32_t thread, uint8_t on);
  int (*group)(uint32_t thread, const struct syncline_torch_group* group);
  int (*collective)(uint32_t thread, uint32_t group, uint32_t name, uint64_t sequence,
                    uint64_t bytes);
  int (*root)(uint32_t thread, uint32_t group, int32_t root);
  int (*transfer_begin)(uint32_t thread, const struct syncline_torch_transfer* transfer);
  int (*transfer_end)(uint32_t thread, uint64_t id, int32_t peer, uint64_t waited_ns);
};

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_TORCH_PROVIDER_H_ */
