// SPDX-License-Identifier: Apache-2.0
// Stands in for libnvidia-ml.so.1: two devices, the second one held back by its temperature in 41 %
// of the time. FAKE_NVML says what else it does: "hang" (a call never returns, from the third
// reading on), "crash" (then), "none" (no driver), "xid" (one error), "lost" (the second device
// goes away), "fallen" (likewise, with an error), "events" (there is always one of another kind).
// FAKE_NVML_USER is the number of a process that uses the second device.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { kSuccess = 0, kNotSupported = 3, kDriverNotLoaded = 9, kTimeout = 10, kGpuIsLost = 15 };

struct device {
  unsigned index;
  unsigned readings;
};
static struct device devices[2] = {{0, 0}, {1, 0}};
static int errors_told = 0;

static int does(const char* what) {
  const char* said = getenv("FAKE_NVML");
  return said != NULL && strcmp(said, what) == 0;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void) {
  printf("the library prints\n");
  fflush(stdout);
  return does("none") ? kDriverNotLoaded : kSuccess;
}

EXPORT const char* nvmlErrorString(int result);
EXPORT const char* nvmlErrorString(int result) {
  return result == kDriverNotLoaded ? "Driver Not Loaded" : "GPU is lost";
}

EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned length);
EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  snprintf(text, length, "580.65.06");
  return kSuccess;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned* count);
EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = &devices[index];
  return kSuccess;
}

EXPORT int nvmlDeviceGetName(void* handle, char* text, unsigned length);
EXPORT int nvmlDeviceGetName(void* handle, char* text, unsigned length) {
  (void)handle;
  snprintf(text, length, "NVIDIA H100 80GB HBM3");
  return kSuccess;
}

EXPORT int nvmlDeviceGetUUID(void* handle, char* text, unsigned length);
EXPORT int nvmlDeviceGetUUID(void* handle, char* text, unsigned length) {
  snprintf(text, length, "GPU-%u", ((struct device*)handle)->index);
  return kSuccess;
}

struct memory {
  unsigned long long total, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo(void* handle, struct memory* memory);
EXPORT int nvmlDeviceGetMemoryInfo(void* handle, struct memory* memory) {
  (void)handle;
  memory->total = 80ull << 30;
  memory->used = 4ull << 30;
  memory->free = memory->total - memory->used;
  return kSuccess;
}

EXPORT int nvmlDeviceGetClockInfo(void* handle, unsigned type, unsigned* mhz);
EXPORT int nvmlDeviceGetClockInfo(void* handle, unsigned type, unsigned* mhz) {
  struct device* device = handle;
  if (type == 1) ++device->readings;
  if (device->readings > 4 && does("crash")) abort();
  while (device->readings > 4 && does("hang")) pause();
  if (device->index == 1 && device->readings > 4 && (does("lost") || does("fallen"))) {
    return kGpuIsLost;
  }
  *mhz = type == 2 ? 2619 : device->index == 0 ? 1980 : 1170;
  return kSuccess;
}

EXPORT int nvmlDeviceGetMaxClockInfo(void* handle, unsigned type, unsigned* mhz);
EXPORT int nvmlDeviceGetMaxClockInfo(void* handle, unsigned type, unsigned* mhz) {
  (void)handle;
  (void)type;
  *mhz = 1980;
  return kSuccess;
}

struct pci {
  char bus_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
EXPORT int nvmlDeviceGetPciInfo_v3(void* handle, struct pci* pci);
EXPORT int nvmlDeviceGetPciInfo_v3(void* handle, struct pci* pci) {
  memset(pci, 'x', sizeof *pci);
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", ((struct device*)handle)->index);
  return kSuccess;
}

struct utilization {
  unsigned gpu, memory;
};
EXPORT int nvmlDeviceGetUtilizationRates(void* handle, struct utilization* use);
EXPORT int nvmlDeviceGetUtilizationRates(void* handle, struct utilization* use) {
  (void)handle;
  use->gpu = 97;
  use->memory = 31;
  return kSuccess;
}

struct process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count,
                                                   struct process* processes);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count,
                                                   struct process* processes) {
  const char* user = getenv("FAKE_NVML_USER");
  if (*count < 2) return kNotSupported;
  *count = 0;
  if (user == NULL || ((struct device*)handle)->index == 0) return kSuccess;
  const unsigned gone = 0x7ffffffe;  // no process has such a number
  const unsigned pids[2] = {gone, (unsigned)atoi(user)};
  for (; *count < 2; ++*count) {
    memset(&processes[*count], 0xff, sizeof *processes);
    processes[*count].pid = pids[*count];
  }
  return kSuccess;
}

struct violation {
  unsigned long long reference_us, violation_ns;
};
EXPORT int nvmlDeviceGetViolationStatus(void* handle, unsigned policy, struct violation* time);
EXPORT int nvmlDeviceGetViolationStatus(void* handle, unsigned policy, struct violation* time) {
  const int hot = policy == 1 && ((struct device*)handle)->index == 1;
  if (policy > 1) return kNotSupported;
  time->reference_us = 0;
  time->violation_ns = hot ? now_ns() / 100 * 41 : 5;
  return kSuccess;
}

struct field {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  unsigned type;
  int result;
  union {
    double real;
    unsigned number;
    unsigned long long large;
  } value;
};
EXPORT int nvmlDeviceGetFieldValues(void* handle, int count, struct field* fields);
EXPORT int nvmlDeviceGetFieldValues(void* handle, int count, struct field* fields) {
  (void)handle;
  for (int i = 0; i < count; ++i) {
    fields[i].result = kNotSupported;
    if (fields[i].field == 186) {  // power, now
      fields[i].result = kSuccess;
      fields[i].type = 1;
      fields[i].value.number = 345678;
    } else if (fields[i].field == 138 && fields[i].scope == UINT32_MAX) {  // NVLink, sent
      fields[i].result = kSuccess;
      fields[i].type = 3;
      fields[i].value.large = 1ull << 40;
    }
  }
  return kSuccess;
}

EXPORT int nvmlEventSetCreate(void** set);
EXPORT int nvmlEventSetCreate(void** set) {
  *set = &errors_told;
  return kSuccess;
}

EXPORT int nvmlDeviceRegisterEvents(void* handle, unsigned long long types, void* set);
EXPORT int nvmlDeviceRegisterEvents(void* handle, unsigned long long types, void* set) {
  (void)handle;
  (void)set;
  return types == 8 ? kSuccess : kNotSupported;
}

struct event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
EXPORT int nvmlEventSetWait_v2(void* set, struct event* event, unsigned timeout_ms);
EXPORT int nvmlEventSetWait_v2(void* set, struct event* event, unsigned timeout_ms) {
  (void)set;
  (void)timeout_ms;
  const int is_time = does("xid") || (does("fallen") && devices[1].readings > 4);
  const int has_error = is_time && errors_told++ == 0;
  if (!has_error && !does("events")) return kTimeout;
  event->device = has_error ? &devices[1] : NULL;
  event->type = has_error ? 8 : 1;
  event->data = 79;
  return kSuccess;
}
