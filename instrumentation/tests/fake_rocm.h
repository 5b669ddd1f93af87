// SPDX-License-Identifier: Apache-2.0
/* The ROCm that fake_rocm.c is, as its program and its three libraries see it. */
#ifndef SYNCLINE_INSTRUMENTATION_TESTS_FAKE_ROCM_H_
#define SYNCLINE_INSTRUMENTATION_TESTS_FAKE_ROCM_H_

#include <stdint.h>

enum fake_kernel { FAKE_MULTIPLY_0 = 1, FAKE_MULTIPLY_1, FAKE_ADD_0, FAKE_ADD_1 };

/* What the registry gives to the SDK in the place of the runtime's table of functions. */
struct fake_table {
  void (*kernel)(uint64_t kernel, uint64_t queue, uint64_t length_ns);
  void (*copy)(uint32_t operation, uint64_t bytes);
};

int hsa_init(void);
void fake_kernel(uint64_t kernel, uint64_t queue, uint64_t length_ns);
void fake_copy(uint32_t operation, uint64_t bytes);

#endif /* SYNCLINE_INSTRUMENTATION_TESTS_FAKE_ROCM_H_ */
