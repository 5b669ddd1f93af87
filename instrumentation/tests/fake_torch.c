// SPDX-License-Identifier: Apache-2.0
/* libtorch_fake.so: its name is all that is wanted of it; and that it is a tool of ROCm's that
 * wants nothing, as PyTorch is. */
#include <stddef.h>
__attribute__((visibility("default"))) int torch_fake(void) { return 0; }
__attribute__((visibility("default"))) void* rocprofiler_configure(unsigned version,
                                                                   const char* name,
                                                                   unsigned priority,
                                                                   void* client) {
  (void)version, (void)name, (void)priority, (void)client;
  return NULL;
}
