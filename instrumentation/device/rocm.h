// SPDX-License-Identifier: Apache-2.0
/* Between libsyncline_rocm.so and libsyncline_rocm_tool.so. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_ROCM_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_ROCM_H_

#define SYNCLINE_ROCM_TOOL_FILE "libsyncline_rocm_tool.so"
#define SYNCLINE_ROCM_START "syncline_rocm_start"

/* Before the program's main. `registry`: the path of ROCm's librocprofiler-register.so, NULL if it
 * is not loaded. */
typedef void syncline_rocm_start_function(const char* registry);

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_ROCM_H_ */
