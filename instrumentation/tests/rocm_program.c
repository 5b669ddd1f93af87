// SPDX-License-Identifier: Apache-2.0
/* A program on the ROCm that fake_rocm.c is.
 *
 *   rocm_program FOLDER [TORCH | late]
 *
 * Two threads with a queue each; in a step a thread copies to the device and back, and launches a
 * kernel in each of the tasks "multiply" and "add", named after the task and the thread. It goes on
 * until FOLDER/stop is there. TORCH: a library to be loaded first. late: it begins once FOLDER/go
 * is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "instrumentation/device/rocprofiler.h"
#include "instrumentation/tests/fake_rocm.h"
#include "syncline/annotate.h"

static char stop[4200];

static void* Work(void* number_as_pointer) {
  const uint64_t number = (uint64_t)(uintptr_t)number_as_pointer;
  for (uint64_t step = 0; access(stop, F_OK) != 0; step++) {
    syncline_step_begin(step);
    fake_copy(ROCPROFILER_HOST_TO_DEVICE, 4096);
    syncline_phase_begin("multiply");
    fake_kernel(FAKE_MULTIPLY_0 + number, 41 + number, 300000);
    syncline_phase_end();
    syncline_phase_begin("add");
    fake_kernel(FAKE_ADD_0 + number, 41 + number, 100000);
    syncline_phase_end();
    fake_copy(ROCPROFILER_DEVICE_TO_HOST, 64);
    syncline_step_end();
    usleep(2000);
  }
  return NULL;
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  snprintf(stop, sizeof stop, "%s/stop", arguments[1]);
  const int late = count > 2 && strcmp(arguments[2], "late") == 0;
  if (count > 2 && !late && !dlopen(arguments[2], RTLD_NOW)) return 2;
  char path[4200];
  snprintf(path, sizeof path, "%s/ready", arguments[1]);
  if (late) {
    fclose(fopen(path, "w"));
    snprintf(path, sizeof path, "%s/go", arguments[1]);
    while (access(path, F_OK) != 0) usleep(1000);
  }
  hsa_init();
  /* What programs below this one would have to take. */
  if (!getenv("FAKE_ROCM_IS_THEIRS") && getenv("ROCPROFILER_REGISTER_LIBRARY")) return 3;
  if (getenv("ROCPROFILER_LOG_LEVEL") || getenv("GLOG_minloglevel")) {
    return 3;
  }
  pthread_t threads[2];
  for (uintptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, Work, (void*)i);
  if (!late) fclose(fopen(path, "w"));
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
