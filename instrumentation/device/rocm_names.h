// SPDX-License-Identifier: Apache-2.0
/* What ROCm's ids are called: its kernels, GPUs and their queues. Threads: any. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_ROCM_NAMES_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_ROCM_NAMES_H_

#include <stddef.h>
#include <stdint.h>

#include "instrumentation/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel is there: `name` as the code object has it ("_Z5scalePf.kd"). The latest one counts. */
DEVICE_HIDDEN void RocmNamesAdd(uint64_t kernel, const char* name);
/* Its name, to be freed; NULL: it is not known. */
DEVICE_HIDDEN char* RocmNamesKernel(uint64_t kernel);

/* In a forked child: another thread may have been in here. */
DEVICE_HIDDEN void RocmNamesAreForked(void);

/* A GPU, in the order in which ROCm counts them. */
DEVICE_HIDDEN void RocmNamesAddDevice(uint64_t agent);
/* "GPU 1", or "unknown device". */
DEVICE_HIDDEN void RocmNamesDevice(uint64_t agent, char* text, size_t bytes);
/* "queue 1", in the order of their first work on the device, or "further queues". */
DEVICE_HIDDEN void RocmNamesQueue(uint64_t agent, uint64_t queue, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_ROCM_NAMES_H_ */
