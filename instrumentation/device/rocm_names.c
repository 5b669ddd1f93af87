// SPDX-License-Identifier: Apache-2.0
#include "instrumentation/device/rocm_names.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64u
#define QUEUES_MAX 1024u

/* Guards what follows. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* A hash table: places is a power of two, at least a quarter of them is free. A name of NULL is a
 * free place. */
static struct kernel {
  uint64_t id;
  char* name;
} * kernels;
static size_t places;
static size_t kernel_count;

static uint64_t devices[DEVICES_MAX];
static size_t device_count;
static struct queue {
  uint64_t agent;
  uint64_t id;
} queues[QUEUES_MAX];
static size_t queue_count;

/* The place of `id`, or the free one where it belongs. */
static struct kernel* PlaceOf(struct kernel* table, size_t size, uint64_t id) {
  size_t at = (size_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & (size - 1);
  while (table[at].name && table[at].id != id) at = (at + 1) & (size - 1);
  return &table[at];
}

/* 0: there is no memory. */
static int Grow(void) {
  if (kernels && kernel_count * 4 < places * 3) return 1;
  const size_t more = places ? places * 2 : 256;
  struct kernel* const table = calloc(more, sizeof *table);
  if (!table) return 0;
  for (size_t i = 0; i < places; i++) {
    if (kernels[i].name) *PlaceOf(table, more, kernels[i].id) = kernels[i];
  }
  free(kernels);
  kernels = table;
  places = more;
  return 1;
}

void RocmNamesAdd(uint64_t kernel, const char* name) {
  static const char kEnd[] = ".kd"; /* of the kernel's descriptor */
  size_t length = strlen(name);
  const size_t end = sizeof kEnd - 1;
  if (length > end && strcmp(name + length - end, kEnd) == 0) length -= end;
  char* const copy = strndup(name, length);
  pthread_mutex_lock(&mutex);
  if (copy && Grow()) {
    struct kernel* const place = PlaceOf(kernels, places, kernel);
    if (!place->name) kernel_count++;
    free(place->name);
    *place = (struct kernel){kernel, copy};
  } else {
    free(copy);
  }
  pthread_mutex_unlock(&mutex);
}

void RocmNamesAreForked(void) { mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

char* RocmNamesKernel(uint64_t kernel) {
  pthread_mutex_lock(&mutex);
  const char* const name = kernels ? PlaceOf(kernels, places, kernel)->name : NULL;
  char* const copy = name ? strdup(name) : NULL;
  pthread_mutex_unlock(&mutex);
  return copy;
}

void RocmNamesAddDevice(uint64_t agent) {
  pthread_mutex_lock(&mutex);
  if (device_count < DEVICES_MAX) devices[device_count++] = agent;
  pthread_mutex_unlock(&mutex);
}

void RocmNamesDevice(uint64_t agent, char* text, size_t bytes) {
  size_t at = 0;
  pthread_mutex_lock(&mutex);
  while (at < device_count && devices[at] != agent) at++;
  const int known = at < device_count;
  pthread_mutex_unlock(&mutex);
  if (known) {
    snprintf(text, bytes, "GPU %zu", at);
  } else {
    snprintf(text, bytes, "unknown device");
  }
}

void RocmNamesQueue(uint64_t agent, uint64_t queue, char* text, size_t bytes) {
  size_t number = 1;
  size_t at = 0;
  pthread_mutex_lock(&mutex);
  for (; at < queue_count; at++) {
    if (queues[at].agent != agent) continue;
    if (queues[at].id == queue) break;
    number++;
  }
  if (at == queue_count && queue_count < QUEUES_MAX) {
    queues[queue_count++] = (struct queue){agent, queue};
  }
  const int known = at < queue_count;
  pthread_mutex_unlock(&mutex);
  if (known) {
    snprintf(text, bytes, "queue %zu", number);
  } else {
    snprintf(text, bytes, "further queues");
  }
}
