// SPDX-License-Identifier: Apache-2.0
/* What is used of the interface between NCCL (RCCL) and a profiler plugin, in its versions 4 (NCCL
 * 2.27) to 7 (2.31): these lay out alike what is read here, but for the
 * order of what `begin` is given. Neither NCCL's headers nor its library are needed. Every function
 * returns 0, or an error.
 */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_NCCL_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_NCCL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of events, and bits of the mask by which a plugin asks for them. */
#define NCCL_COLLECTIVE (1u << 1) /* enqueued: begins behind its kernel's launch */
#define NCCL_TRANSFER (1u << 2)   /* the same of a send or receive */
#define NCCL_CHANNEL (1u << 6)    /* a kernel works at one of these, on one of its channels */
/* From version 5 on: the program asks for one. Nothing of it is put together or launched yet. */
#define NCCL_COLLECTIVE_CALL (1u << 9)
#define NCCL_TRANSFER_CALL (1u << 10)

#define NCCL_CHANNEL_STOPS 22 /* state of a NCCL_CHANNEL: the kernel is done with it */

struct nccl_collective {
  uint64_t number; /* counted by communicator and function, alike on all ranks */
  const char* function;
  const void* sent;
  void* received;
  size_t count;
  int root;
  const char* type;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct nccl_transfer {
  const char* function; /* "Send", "Recv" */
  void* buffer;
  const char* type;
  size_t count;
  int peer;
  uint8_t channels;
};

struct nccl_call {
  const char* function;
  size_t count;
  const char* type;
  int root;
  void* stream;
  bool captured; /* into a CUDA graph */
};

struct nccl_transfer_call {
  const char* function;
  size_t count;
  const char* type;
  void* stream;
  bool captured;
};

struct nccl_channel {
  uint8_t number;
  uint64_t stamp; /* when its kernel began with it, by the GPU's globaltimer, ns */
};

struct nccl_event {
  uint64_t kind; /* version 4: only the first byte is set */
  void* parent;  /* of a NCCL_CHANNEL: the handle of its collective or transfer */
  int rank;
  union {
    struct nccl_collective collective;
    struct nccl_transfer transfer;
    struct nccl_call call;
    struct nccl_transfer_call transfer_call;
    struct nccl_channel channel;
  };
};

/* What goes with NCCL_CHANNEL_STOPS. */
struct nccl_state {
  uint64_t stamp;
};

struct nccl_functions {
  int (*event_begins)(void* context, void** handle, struct nccl_event* event);
  int (*event_ends)(void* handle);
  int (*event_state)(void* handle, int state, struct nccl_state* arguments);
  int (*end)(void* context);
};

/* `begin`: of a communicator. *mask is NCCL's own and one for the process: it is read for every
 * call, also later. */
struct nccl_profiler_4 {
  const char* name;
  int (*begin)(void** context, int* mask, const char* name, uint64_t communicator, int nodes,
               int ranks, int rank, void* log);
  struct nccl_functions functions;
};
struct nccl_profiler_5 {
  const char* name;
  int (*begin)(void** context, uint64_t communicator, int* mask, const char* name, int nodes,
               int ranks, int rank, void* log);
  struct nccl_functions functions;
};

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_NCCL_H_ */
