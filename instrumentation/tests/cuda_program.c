// SPDX-License-Identifier: Apache-2.0
/* A program on the driver that fake_cuda.c is.
 *
 *   cuda_program FOLDER [TORCH]
 *
 * Two threads with a stream each; in a step a thread copies (the second one to another device),
 * fills, and launches a kernel in each of the tasks "multiply" and "add", named after the task and
 * the thread. It goes on until FOLDER/stop is there. TORCH: a library to be loaded first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "instrumentation/tests/fake_cuda.h"
#include "syncline/annotate.h"

static char stop[4200];

static void* Work(void* number_as_pointer) {
  static const char* const kKernels[2][2] = {{"multiply_0", "add_0"}, {"multiply_1", "add_1"}};
  const unsigned number = (unsigned)(uintptr_t)number_as_pointer;
  for (uint64_t step = 0; access(stop, F_OK) != 0; step++) {
    syncline_step_begin(step);
    if (number == 0) cuMemcpyHtoDAsync_v2(4096, number + 7);
    if (number == 1) cuMemcpyPeerAsync(8192, number + 7);
    cuMemsetD8Async(64, number + 7);
    syncline_phase_begin("multiply");
    cuLaunchKernel(kKernels[number][0], number + 7, 300000);
    syncline_phase_end();
    syncline_phase_begin("add");
    cuLaunchKernel(kKernels[number][1], number + 7, 100000);
    syncline_phase_end();
    cuCtxSynchronize();
    syncline_step_end();
    usleep(2000);
  }
  return NULL;
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  snprintf(stop, sizeof stop, "%s/stop", arguments[1]);
  if (count > 2 && !dlopen(arguments[2], RTLD_NOW)) return 2;
  cuInit(0);
  pthread_t threads[2];
  for (uintptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, Work, (void*)i);
  char ready[4200];
  snprintf(ready, sizeof ready, "%s/ready", arguments[1]);
  fclose(fopen(ready, "w"));
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
