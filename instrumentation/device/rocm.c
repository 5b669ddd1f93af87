// SPDX-License-Identifier: Apache-2.0
/* libsyncline_rocm.so: preloaded. If the program is linked with ROCm's runtime it brings in
 * libsyncline_rocm_tool.so (rocm_tool.c), else it does nothing.
 *
 * Not by ROCP_TOOL_LIBRARIES, which ROCm has for it: every program below would inherit it, and
 * where one finds the variable but no rocprofiler-sdk, ROCm's rocprofiler-register aborts it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "instrumentation/block/block.h"
#include "instrumentation/device/rocm.h"

struct found {
  int runtime;
  const char* registry; /* the path of librocprofiler-register.so; NULL: it is not loaded */
};

static int Look(struct dl_phdr_info* object, size_t bytes, void* found_as_pointer) {
  (void)bytes;
  struct found* const found = found_as_pointer;
  const char* const slash = strrchr(object->dlpi_name, '/');
  const char* const name = slash ? slash + 1 : object->dlpi_name;
  static const char kRuntime[] = "libhsa-runtime64.so";
  static const char kRegistry[] = "librocprofiler-register.so";
  if (strncmp(name, kRuntime, sizeof kRuntime - 1) == 0) found->runtime = 1;
  if (slash && strncmp(name, kRegistry, sizeof kRegistry - 1) == 0) {
    found->registry = object->dlpi_name;
  }
  return 0;
}

__attribute__((constructor)) static void LookForRocm(void) {
  struct found found = {0, NULL};
  dl_iterate_phdr(Look, &found);
  void* const tool = found.runtime ? syncline_load_sibling(SYNCLINE_ROCM_TOOL_FILE) : NULL;
  syncline_rocm_start_function* const start =
      tool ? (syncline_rocm_start_function*)dlsym(tool, SYNCLINE_ROCM_START) : NULL;
  if (start) start(found.registry);
}
