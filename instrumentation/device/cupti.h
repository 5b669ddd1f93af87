// SPDX-License-Identifier: Apache-2.0
/* What is used of CUPTI, which is found at run time: neither its headers nor its library are needed
 * to build or to start. From its interface for the versions 12 and 13 of CUDA (checked on 13.0; the
 * places of what is read here are the same in both). Every function returns 0, or an error. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_CUPTI_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_CUPTI_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* CUpti_CallbackDomain, of the driver's calls. Those of the runtime library are made of these, and
 * have the same correlation id. */
#define CUPTI_DRIVER_API 1
#define CUPTI_ENTER 0 /* CUpti_ApiCallbackSite */

/* CUpti_ActivityKind. Not 3, of kernels too: it lets them run one by one. */
#define CUPTI_COPY 1u
#define CUPTI_FILL 2u
#define CUPTI_KERNEL 10u
#define CUPTI_PEER_COPY 22u /* from one device to another */

#define CUPTI_BUSY 39 /* CUptiResult: another tool has subscribed */

struct cupti_callback_data {
  int site;
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol; /* of a launch: the kernel's name */
  void* context;
  uint32_t context_number;
  uint64_t* data;
  uint32_t correlation;
};

typedef void (*cupti_callback)(void* user, int domain, uint32_t id,
                               const struct cupti_callback_data* data);
typedef void (*cupti_wants_buffer)(uint8_t** buffer, size_t* bytes, size_t* most_records);
typedef void (*cupti_has_buffer)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                                 size_t filled);
typedef uint64_t (*cupti_clock)(void);

struct cupti {
  int (*subscribe)(void** subscriber, cupti_callback callback, void* user);
  int (*unsubscribe)(void* subscriber);
  int (*enable_callback)(uint32_t on, void* subscriber, int domain, uint32_t id);
  int (*callback_name)(int domain, uint32_t id, const char** name);
  int (*enable)(uint32_t kind);
  int (*disable)(uint32_t kind);
  int (*register_callbacks)(cupti_wants_buffer wants, cupti_has_buffer has);
  int (*register_clock)(cupti_clock clock);
  int (*next_record)(uint8_t* buffer, size_t filled, uint8_t** record);
  int (*flush)(uint32_t flag);
  int (*dropped)(void* context, uint32_t stream, size_t* count);
};

/* A record of CUPTI_COPY, _FILL, _KERNEL or _PEER_COPY. */
struct cupti_record {
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t bytes; /* 0: a kernel's */
  const char* name;
  uint32_t device; /* where it was done */
  uint32_t stream;
  uint32_t from; /* of a copy from one device to another: these two */
  uint32_t to;
  uint32_t correlation;
  uint8_t copy_kind; /* 1: from the host to the device, 2: back, 8: on the device, 10: to another */
};

static inline uint32_t CuptiKind(const uint8_t* record) {
  uint32_t kind = 0;
  memcpy(&kind, record, sizeof kind);
  return kind;
}

/* 0: it is of another kind. */
static inline int CuptiRead(const uint8_t* record, struct cupti_record* read) {
  const uint32_t kind = CuptiKind(record);
  memset(read, 0, sizeof *read);
#define CUPTI_TAKE(field, place) memcpy(&read->field, record + (place), sizeof read->field)
  if (kind == CUPTI_KERNEL) {
    CUPTI_TAKE(device, 40);
    CUPTI_TAKE(stream, 48);
    CUPTI_TAKE(correlation, 92);
    CUPTI_TAKE(name, 104);
  } else if (kind == CUPTI_COPY) {
    CUPTI_TAKE(copy_kind, 4);
    CUPTI_TAKE(bytes, 8);
    CUPTI_TAKE(device, 32);
    CUPTI_TAKE(stream, 40);
    CUPTI_TAKE(correlation, 44);
  } else if (kind == CUPTI_FILL) {
    CUPTI_TAKE(bytes, 8);
    CUPTI_TAKE(device, 32);
    CUPTI_TAKE(stream, 40);
    CUPTI_TAKE(correlation, 44);
  } else if (kind == CUPTI_PEER_COPY) {
    CUPTI_TAKE(bytes, 8);
    CUPTI_TAKE(device, 32);
    CUPTI_TAKE(stream, 40);
    CUPTI_TAKE(from, 44);
    CUPTI_TAKE(to, 52);
    CUPTI_TAKE(correlation, 60);
  } else {
    return 0;
  }
  CUPTI_TAKE(begin_ns, 16);
  CUPTI_TAKE(end_ns, 24);
#undef CUPTI_TAKE
  return 1;
}

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_CUPTI_H_ */
