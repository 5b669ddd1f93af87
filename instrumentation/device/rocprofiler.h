// SPDX-License-Identifier: Apache-2.0
/* What is used of rocprofiler-sdk, which is found at run time: neither its headers nor its library
 * are needed to build or to start. From its public headers for the versions 0.5 (ROCm 6.3) to 1.3;
 * what stands at another place in some of them is looked for. Every function returns 0, or an
 * error; handles are structures of 64 bits, passed by value. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_ROCPROFILER_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_ROCPROFILER_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROCPROFILER_OLDEST 500u /* 100 x minor version + patch; 10000 x major */

struct rocprofiler_handle {
  uint64_t value;
};

/* ---- what a tool returns from rocprofiler_configure */

struct rocprofiler_tool {
  size_t size;
  int (*initialize)(void (*end)(void), void* data); /* what `end` wants differs: it is not called */
  void (*finalize)(void* data);
  void* data;
};

/* ---- records */

#define ROCPROFILER_RECORD_OF_TRACING 1u /* rocprofiler_buffer_category_t */
struct rocprofiler_header {
  uint32_t category;
  uint32_t kind;
  uint8_t* payload;
};

/* rocprofiler_memory_copy_operation_t */
#define ROCPROFILER_HOST_TO_HOST 1u
#define ROCPROFILER_HOST_TO_DEVICE 2u
#define ROCPROFILER_DEVICE_TO_HOST 3u
#define ROCPROFILER_DEVICE_TO_DEVICE 4u

/* A kernel's record, or a copy's. */
struct rocprofiler_record {
  uint32_t operation; /* of a copy */
  uint64_t external;  /* the number that the tool gave it */
  uint64_t begin;     /* these two: the clock of rocprofiler_get_timestamp, ns */
  uint64_t end;
  uint64_t agent;      /* of a copy: its destination */
  uint64_t from_agent; /* of a copy */
  uint64_t queue;      /* of a kernel */
  uint64_t kernel;     /* of a kernel: its id */
  uint64_t bytes;      /* of a copy */
};

/* 0: it is shorter than all that is known. */
static inline int RocprofilerRead(const struct rocprofiler_header* header, int is_copy,
                                  struct rocprofiler_record* read) {
  uint64_t size = 0;
  memset(read, 0, sizeof *read);
#define ROCPROFILER_TAKE(field, place) \
  memcpy(&read->field, header->payload + (place), sizeof read->field)
  memcpy(&size, header->payload, sizeof size);
  if (size < (is_copy ? 80u : 96u)) return 0;
  ROCPROFILER_TAKE(operation, 12);
  ROCPROFILER_TAKE(external, 24);
  ROCPROFILER_TAKE(begin, 40);
  ROCPROFILER_TAKE(end, 48);
  if (is_copy) {
    ROCPROFILER_TAKE(agent, 56);
    ROCPROFILER_TAKE(from_agent, 64);
    ROCPROFILER_TAKE(bytes, 72);
  } else {
    ROCPROFILER_TAKE(agent, 64);
    ROCPROFILER_TAKE(queue, 72);
    ROCPROFILER_TAKE(kernel, 80);
  }
#undef ROCPROFILER_TAKE
  return 1;
}

/* rocprofiler_callback_tracing_record_t: version 1 has 8 bytes more in front of the kind. */
struct rocprofiler_callback_record {
  uint64_t words[8];
};

/* Of a record of code objects (`kind`): the name of the kernel that is there from now on; NULL: it
 * says something else. */
static inline const char* RocprofilerKernelOf(const struct rocprofiler_callback_record* record,
                                              uint32_t kind, uint64_t* kernel) {
  enum { kKernelIsThere = 2, kBefore = 1 }; /* its operation, and phase */
  for (size_t at = 4; at <= 5; at++) {
    if ((uint32_t)record->words[at] != kind || record->words[at] >> 32 != kKernelIsThere) continue;
    if ((uint32_t)record->words[at + 1] != kBefore) continue;
    const uint8_t* const payload = (const uint8_t*)(uintptr_t)record->words[at + 2];
    const char* name = NULL;
    memcpy(kernel, payload + 8, sizeof *kernel);
    memcpy(&name, payload + 24, sizeof name);
    return name;
  }
  return NULL;
}

#define ROCPROFILER_GPU 2u /* rocprofiler_agent_type_t */
struct rocprofiler_agent { /* its begin */
  uint64_t size;
  uint64_t id;
  uint32_t type;
};

/* ---- functions */

/* rocprofiler_buffer_policy_t. If it were to discard, the SDK would have memory for one of its two
 * buffers only: whatever comes while the other one is in use is lost, and said on the standard
 * error. */
#define ROCPROFILER_LOSSLESS 2
#define ROCPROFILER_REQUEST_OF_COPY 10 /* rocprofiler_external_correlation_id_request_kind_t */
#define ROCPROFILER_AGENT_VERSION 1    /* rocprofiler_agent_version_t */

typedef void (*rocprofiler_has_records)(struct rocprofiler_handle context,
                                        struct rocprofiler_handle buffer,
                                        struct rocprofiler_header** headers, size_t count,
                                        void* data, uint64_t dropped);
/* In the thread that asks a device for something, before it does. 0: `*number` is to be its
 * number in the record. */
typedef int (*rocprofiler_asks)(uint64_t thread, struct rocprofiler_handle context, int kind,
                                int32_t operation, uint64_t correlation, uint64_t* number,
                                void* data);
typedef void (*rocprofiler_says)(struct rocprofiler_callback_record record, uint64_t* user,
                                 void* data);
typedef int (*rocprofiler_agents)(int version, const void** agents, size_t count, void* data);

struct rocprofiler {
  int (*create_context)(struct rocprofiler_handle* context); /* which is 0 before */
  int (*start)(struct rocprofiler_handle context);
  int (*stop)(struct rocprofiler_handle context);
  int (*create_buffer)(struct rocprofiler_handle context, size_t bytes, size_t watermark,
                       int policy, rocprofiler_has_records has, void* data,
                       struct rocprofiler_handle* buffer);
  int (*flush)(struct rocprofiler_handle buffer);
  int (*buffer_kind)(struct rocprofiler_handle context, int kind, const int32_t* operations,
                     size_t count, struct rocprofiler_handle buffer);
  int (*callback_kind)(struct rocprofiler_handle context, int kind, const int32_t* operations,
                       size_t count, rocprofiler_says says, void* data);
  int (*request)(struct rocprofiler_handle context, const int* kinds, size_t count,
                 rocprofiler_asks asks, void* data);
  int (*buffer_kind_name)(int kind, const char** name, uint64_t* length);
  int (*callback_kind_name)(int kind, const char** name, uint64_t* length);
  int (*query_agents)(int version, rocprofiler_agents found, size_t bytes, void* data);
  int (*timestamp)(uint64_t* now);
};

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_ROCPROFILER_H_ */
