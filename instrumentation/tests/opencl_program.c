// SPDX-License-Identifier: Apache-2.0
/* A program that uses OpenCL and nothing else, for tests of the layer. It finds OpenCL at run time,
 * so that it is built everywhere.
 *
 *   opencl_program FOLDER STEPS RANK
 *
 * Two threads with a queue each; in a step a thread writes a buffer, runs a kernel in the task
 * "scale" and one in the task "shift", and reads the buffer, all inside of a task "step N". It
 * begins when FOLDER/go is there, and goes on until FOLDER/stop is. FOLDER/truth-RANK.txt says how
 * many steps it made, how many values were wrong, and how many events were not as a program expects
 * them. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "syncline/annotate.h"

#define COUNT (1 << 16)
#define THREADS 2

#define NEED(function) static __typeof__(&(function)) p_##function;
/* clang-format off */
#define ALL(X)                                                                     \
  X(clGetPlatformIDs) X(clGetDeviceIDs) X(clCreateContext) X(clCreateCommandQueue) \
  X(clCreateProgramWithSource) X(clBuildProgram) X(clCreateKernel) X(clCreateBuffer) \
  X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clEnqueueWriteBuffer) \
  X(clEnqueueReadBuffer) X(clFinish) X(clReleaseEvent) X(clGetEventInfo)
/* clang-format on */
ALL(NEED)

static const char kSource[] =
    "kernel void scale_kernel(global float* a) { size_t i = get_global_id(0);"
    "  float x = a[i]; for (int k = 0; k < 200; ++k) x = x * 1.0f + 0.0f; a[i] = x * 2.0f; }"
    "kernel void shift_kernel(global float* a) { a[get_global_id(0)] += 1.0f; }";

static cl_context context;
static cl_device_id device;
static cl_program program;
static char folder[4096];
static unsigned long steps[THREADS], wrong[THREADS], odd_events[THREADS];
static unsigned long most_steps;

static int Is(const char* name) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

static void Check(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  fprintf(stderr, "opencl_program: %s: %d\n", what, error);
  exit(1);
}

static void* Thread(void* number_as_pointer) {
  const long number = (long)number_as_pointer;
  cl_int error = 0;
  cl_command_queue queue = p_clCreateCommandQueue(context, device, 0, &error);
  Check(error, "clCreateCommandQueue");
  cl_kernel scale = p_clCreateKernel(program, "scale_kernel", &error);
  Check(error, "clCreateKernel");
  cl_kernel shift = p_clCreateKernel(program, "shift_kernel", &error);
  Check(error, "clCreateKernel");
  cl_mem buffer = p_clCreateBuffer(context, CL_MEM_READ_WRITE, COUNT * sizeof(float), NULL, &error);
  Check(error, "clCreateBuffer");
  p_clSetKernelArg(scale, 0, sizeof buffer, &buffer);
  p_clSetKernelArg(shift, 0, sizeof buffer, &buffer);
  float* values = malloc(COUNT * sizeof(float));
  const size_t global = COUNT;
  while (!Is("go")) usleep(1000);
  for (unsigned long step = 0; step < most_steps && !Is("stop"); step++) {
    for (size_t i = 0; i < COUNT; i++) values[i] = (float)(i % 100);
    syncline_step_begin(step);
    Check(p_clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, COUNT * sizeof(float), values, 0, NULL,
                                 NULL),
          "write");
    cl_event done = NULL;
    syncline_phase_begin("scale");
    Check(p_clEnqueueNDRangeKernel(queue, scale, 1, NULL, &global, NULL, 0, NULL, &done), "scale");
    syncline_phase_end();
    syncline_phase_begin("shift");
    Check(p_clEnqueueNDRangeKernel(queue, shift, 1, NULL, &global, NULL, 1, &done, NULL), "shift");
    syncline_phase_end();
    Check(p_clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, COUNT * sizeof(float), values, 0, NULL,
                                NULL),
          "read");
    syncline_step_end();
    cl_int status = -1;
    p_clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    odd_events[number] += status != CL_COMPLETE;
    p_clReleaseEvent(done);
    for (size_t i = 0; i < COUNT; i++) wrong[number] += values[i] != (float)(i % 100) * 2 + 1;
    steps[number]++;
    usleep(2000);
  }
  p_clFinish(queue);
  free(values);
  return NULL;
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  snprintf(folder, sizeof folder, "%s", arguments[1]);
  most_steps = strtoul(arguments[2], NULL, 10);
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (!library) return 77;
#define TAKE(function)                                \
  *(void**)&p_##function = dlsym(library, #function); \
  if (!p_##function) return 77;
  ALL(TAKE)
  cl_platform_id platform;
  cl_uint found = 0;
  if (p_clGetPlatformIDs(1, &platform, &found) != CL_SUCCESS || found == 0) return 77;
  if (p_clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &found) != CL_SUCCESS) return 77;
  cl_int error = 0;
  context = p_clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  Check(error, "clCreateContext");
  const char* source = kSource;
  program = p_clCreateProgramWithSource(context, 1, &source, NULL, &error);
  Check(error, "clCreateProgramWithSource");
  Check(p_clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, Thread, (void*)i);
  char path[4200];
  snprintf(path, sizeof path, "%s/ready-%s", folder, arguments[3]);
  fclose(fopen(path, "w"));
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  snprintf(path, sizeof path, "%s/truth-%s.txt", folder, arguments[3]);
  FILE* truth = fopen(path, "w");
  fprintf(truth, "steps %lu wrong %lu odd %lu\n", steps[0] + steps[1], wrong[0] + wrong[1],
          odd_events[0] + odd_events[1]);
  fclose(truth);
  return 0;
}
