// SPDX-License-Identifier: Apache-2.0
/* The driver that fake_cuda.c is, as its program and its CUPTI see it. */
#ifndef SYNCLINE_INSTRUMENTATION_TESTS_FAKE_CUDA_H_
#define SYNCLINE_INSTRUMENTATION_TESTS_FAKE_CUDA_H_

#include <stdint.h>

struct fake_call {
  uint32_t id;
  const char* function;
  const char* kernel; /* NULL: it launches none */
  uint32_t correlation;
  uint64_t length_ns; /* of what the device does */
  uint64_t bytes;
  uint32_t stream;
  uint32_t kind; /* CUPTI_KERNEL, ...; 0: the device does nothing */
};
struct fake_hooks {
  void (*call)(const struct fake_call* call);
};

int cuInit(unsigned flags);
int cuLaunchKernel(const char* kernel, uint32_t stream, uint64_t length_ns);
int cuMemcpyHtoDAsync_v2(uint64_t bytes, uint32_t stream);
int cuMemcpyPeerAsync(uint64_t bytes, uint32_t stream);
int cuMemsetD8Async(uint64_t bytes, uint32_t stream);
int cuCtxSynchronize(void);

#endif /* SYNCLINE_INSTRUMENTATION_TESTS_FAKE_CUDA_H_ */
