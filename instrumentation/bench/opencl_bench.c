// SPDX-License-Identifier: Apache-2.0
/* What an enqueue of OpenCL takes: a kernel that does nothing, in batches of 64, each waited for.
 *
 *   opencl_bench FILE
 *
 * Prints the median of the batches begun while FILE is there, ns for each enqueue, without the
 * waiting; ends when FILE is gone again. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { kBatch = 64, kBatchesMax = 1 << 20 };

static uint64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int count, char** arguments) {
  void* library = count == 2 ? dlopen("libOpenCL.so.1", RTLD_NOW) : NULL;
  if (!library) return 2;
#define TAKE(name)                            \
  __typeof__(&(name)) p_##name = NULL;        \
  *(void**)&p_##name = dlsym(library, #name); \
  if (!p_##name) return 2;
  TAKE(clGetPlatformIDs)
  TAKE(clGetDeviceIDs)
  TAKE(clCreateContext)
  TAKE(clCreateCommandQueue)
  TAKE(clCreateProgramWithSource)
  TAKE(clBuildProgram)
  TAKE(clCreateKernel)
  TAKE(clEnqueueNDRangeKernel)
  TAKE(clFinish)
  cl_platform_id platform;
  cl_device_id device;
  cl_int error = 0;
  if (p_clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS) return 2;
  if (p_clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return 2;
  cl_context context = p_clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  cl_command_queue queue = p_clCreateCommandQueue(context, device, 0, &error);
  const char* source = "kernel void nothing(void) {}";
  cl_program program = p_clCreateProgramWithSource(context, 1, &source, NULL, &error);
  if (p_clBuildProgram(program, 1, &device, "", NULL, NULL) != CL_SUCCESS) return 2;
  cl_kernel kernel = p_clCreateKernel(program, "nothing", &error);
  double* batches = malloc(kBatchesMax * sizeof(double));
  size_t done = 0;
  const size_t global = 1;
  printf("ready\n");
  fflush(stdout);
  while (done < kBatchesMax) {
    const int counts = access(arguments[1], F_OK) == 0;
    if (!counts && done > 0) break;
    const uint64_t begin = Now();
    for (int i = 0; i < kBatch; i++) {
      p_clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
    }
    const uint64_t end = Now();
    p_clFinish(queue);
    if (counts) batches[done++] = (double)(end - begin) / kBatch;
  }
  qsort(batches, done, sizeof(double), Compare);
  printf("%.1f\n", done ? batches[done / 2] : 0.0);
  return 0;
}
