// SPDX-License-Identifier: Apache-2.0
/* The table through which the tracers of devices reach LTTng-UST, as in block/provider.h. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_PROVIDER_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_PROVIDER_H_

#include <stdint.h>

#define SYNCLINE_DEVICE_PROVIDER_FILE "libsyncline_device_provider.so"
/* The table's symbol: `const struct syncline_device_emit`. */
#define SYNCLINE_DEVICE_PROVIDER_SYMBOL "syncline_device_emit"

enum syncline_device_kind {
  SYNCLINE_DEVICE_NOTHING = 0, /* it was refused, or ended in an error */
  SYNCLINE_DEVICE_KERNEL = 1,
  SYNCLINE_DEVICE_COPY = 2,
  SYNCLINE_DEVICE_FILL = 3
};

/* Whether what devices do is recorded. */
enum syncline_device_tracing {
  SYNCLINE_DEVICE_NOT_TRACED = 0,
  SYNCLINE_DEVICE_TRACED = 1,
  SYNCLINE_DEVICE_LEFT_TO_FRAMEWORK = 2 /* to its own profiler, which may record it or not */
};

/* What a device did, after it has done it. Names are ids. */
struct syncline_device_work {
  uint32_t device; /* "OpenCL 0 (pthread-cpu)", unique in the process */
  uint32_t queue;  /* "queue 1", unique on the device */
  uint32_t name;   /* of the kernel, or what else it was */
  uint8_t kind;    /* enum syncline_device_kind */
  uint64_t launch; /* the number of the call that asked for it */
  uint64_t begin;  /* these two: the trace clock, ns */
  uint64_t end;
  uint64_t bound; /* both are within so many ns, as far as clocks are concerned */
  uint64_t bytes; /* of a copy or fill; 0: not known */
};

/* What a device did for a collective, or a transfer between two ranks. Names are ids. */
struct syncline_device_collective {
  uint64_t launch; /* the number of the call that asked for it; not of syncline_device_work's */
  uint64_t communicator; /* the same on all of its ranks */
  uint32_t size;         /* ranks of it */
  uint32_t rank;         /* this one's, in it */
  uint32_t name;         /* "AllReduce", "Send" */
  uint32_t description;  /* "RING, LL" */
  uint64_t sequence;     /* by communicator and name, alike on all ranks; UINT64_MAX: none */
  uint32_t peer;         /* the root, or the other side of a transfer; UINT32_MAX: none */
  uint64_t bytes;        /* 0: not known */
  uint64_t since;        /* the trace clock, ns: the device did not begin before; 0: not known */
  uint64_t begin;        /* these two: the device's own clock, ns */
  uint64_t end;
  int64_t ahead;   /* by how many ns the trace clock is ahead of the device's then, at most */
  uint64_t waited; /* ns, from when its first stamp was there to when its last one was */
};

/* Each returns 1 when a session takes the event, 0 when none does. docs/event-schema.md. */
struct syncline_device_emit {
  int (*launch)(uint32_t thread, uint64_t launch, uint32_t name);
  int (*work)(uint32_t thread, const struct syncline_device_work* work);
  int (*collective_call)(uint32_t thread, uint64_t launch, uint32_t name);
  int (*collective)(uint32_t thread, const struct syncline_device_collective* collective);
  int (*tracing)(uint32_t thread, uint32_t source, uint8_t state);
  int (*lost)(uint32_t thread, uint32_t source, uint64_t count);
};

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_PROVIDER_H_ */
