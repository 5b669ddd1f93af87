// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "instrumentation/device/level_zero_events.h"

#include <stdio.h>
#include <stdlib.h>

#include "instrumentation/block/block.h"

#define POOL_EVENTS 256
#define OWN_EVENTS_MAX 65536
#define PAIR_NS 5000000u     /* a device's clock and ours are compared anew after so long */
#define SHORT_PAIR_NS 20000u /* tried again if it took longer */
#define PAIR_TRIES 3
#define TICKS_A_SECOND_MIN 1000000u /* below: the driver gives ns a tick, though asked for Hz */
#define HZ_PPM 100u                 /* how far a timer may be off its rate */
#define NS_PPM 10000u               /* of one that is given in whole ns a tick */

struct level_zero_calls level_zero;

/* ---- handles */

size_t LevelZeroBucket(const void* handle) {
  return ((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15ull >> 54;
}

struct level_zero_member {
  struct level_zero_member* next;
  const void* handle;
};

static struct level_zero_member** Find(struct level_zero_set* set, const void* handle) {
  struct level_zero_member** place = &set->members[LevelZeroBucket(handle)];
  while (*place && (*place)->handle != handle) place = &(*place)->next;
  return place;
}

int LevelZeroHas(struct level_zero_set* set, const void* handle) {
  return *Find(set, handle) != NULL;
}

void LevelZeroPut(struct level_zero_set* set, const void* handle, int is_member) {
  struct level_zero_member** const place = Find(set, handle);
  struct level_zero_member* const known = *place;
  if (known && !is_member) {
    *place = known->next;
    free(known);
  } else if (!known && is_member && (*place = calloc(1, sizeof **place))) {
    (*place)->handle = handle;
  }
}

/* ---- devices and their clocks */

static struct level_zero_device* devices;

struct level_zero_device* LevelZeroDeviceOf(ze_device_handle_t handle) {
  static unsigned count;
  for (struct level_zero_device* device = devices; device; device = device->next) {
    if (device->handle == handle) return device;
  }
  ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2};
  if (level_zero.device_properties(handle, &properties) != ZE_RESULT_SUCCESS ||
      properties.timerResolution == 0) {
    return NULL;
  }
  struct level_zero_device* device = calloc(1, sizeof *device);
  if (!device) return NULL;
  device->handle = handle;
  const uint32_t of_kernels = properties.kernelTimestampValidBits;
  const uint32_t of_device = properties.timestampValidBits;
  const uint32_t bits = of_device != 0 && of_device < of_kernels ? of_device : of_kernels;
  device->mask = bits == 0 || bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
  const int is_hz = properties.timerResolution >= TICKS_A_SECOND_MIN;
  device->tick_ns =
      is_hz ? 1e9 / (double)properties.timerResolution : (double)properties.timerResolution;
  device->turn_ns = (double)device->mask * device->tick_ns;
  device->ppm = is_hz ? HZ_PPM : NS_PPM;
  snprintf(device->name, sizeof device->name, LEVEL_ZERO " %u %.40s", count++, properties.name);
  device->next = devices;
  devices = device;
  return device;
}

static int Compare(struct level_zero_device* device) {
  uint64_t now_ns = syncline_clock_ns();
  if (device->paired_ns && now_ns - device->paired_ns < PAIR_NS) return 1;
  device->paired_ns = 0;
  for (int tries = 0; tries < PAIR_TRIES; tries++) {
    uint64_t host = 0;
    uint64_t ticks = 0;
    const uint64_t before_ns = syncline_clock_ns();
    if (level_zero.device_times(device->handle, &host, &ticks) != ZE_RESULT_SUCCESS) break;
    const uint64_t took_ns = syncline_clock_ns() - before_ns;
    if (device->paired_ns && took_ns / 2 >= device->half_ns) continue;
    device->paired_ns = before_ns + took_ns / 2;
    device->half_ns = took_ns / 2;
    device->ticks = ticks;
    if (took_ns < SHORT_PAIR_NS) break;
  }
  return device->paired_ns != 0;
}

int64_t LevelZeroTicksFrom(const struct level_zero_device* device, uint64_t earlier,
                           uint64_t later) {
  const uint64_t forward = (later - earlier) & device->mask;
  const uint64_t back = (earlier - later) & device->mask;
  return forward <= back ? (int64_t)forward : -(int64_t)back;
}

int LevelZeroPlace(struct level_zero_device* device, ze_event_handle_t event,
                   struct level_zero_span* span) {
  ze_kernel_timestamp_result_t times;
  if (level_zero.event_times(event, &times) != ZE_RESULT_SUCCESS || !Compare(device)) return -1;
  const uint64_t ran = (times.global.kernelEnd - times.global.kernelStart) & device->mask;
  const uint64_t ran_ns = (uint64_t)((double)ran * device->tick_ns);
  const int64_t behind = LevelZeroTicksFrom(device, times.global.kernelEnd, device->ticks);
  const int64_t behind_ns = (int64_t)((double)behind * device->tick_ns);
  const uint64_t since_ns = (uint64_t)llabs(behind_ns) + ran_ns;
  span->begin_ticks = times.global.kernelStart & device->mask;
  span->end_ticks = times.global.kernelEnd & device->mask;
  span->end_ns = device->paired_ns - (uint64_t)behind_ns;
  span->begin_ns = span->end_ns - ran_ns;
  span->bound_ns = device->half_ns + (uint64_t)device->tick_ns + 1 +
                   since_ns / 1000000 * device->ppm + since_ns % 1000000 * device->ppm / 1000000;
  return 0;
}

/* ---- events of our own. An event goes with its pool, and that with the context. */

static struct level_zero_pool {
  struct level_zero_pool* next;
  ze_context_handle_t context;
  ze_device_handle_t device;
  ze_event_pool_handle_t handle;
  struct level_zero_own_event* unused;
  struct level_zero_own_event events[POOL_EVENTS];
} * pools;
static uint32_t own_events;

static struct level_zero_pool* MakePool(ze_context_handle_t context, ze_device_handle_t device) {
  if (own_events + POOL_EVENTS > OWN_EVENTS_MAX) return NULL;
  struct level_zero_pool* pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  const ze_event_pool_desc_t description = {
      .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
      .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP,
      .count = POOL_EVENTS};
  if (level_zero.pool_create(context, &description, 1, &device, &pool->handle) !=
      ZE_RESULT_SUCCESS) {
    free(pool);
    return NULL;
  }
  for (uint32_t i = 0; i < POOL_EVENTS; i++) {
    const ze_event_desc_t of = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                                .index = i,
                                .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                                .wait = ZE_EVENT_SCOPE_FLAG_HOST};
    struct level_zero_own_event* event = &pool->events[i];
    if (level_zero.event_create(pool->handle, &of, &event->handle) != ZE_RESULT_SUCCESS) break;
    event->pool = pool;
    event->next = pool->unused;
    pool->unused = event;
  }
  own_events += POOL_EVENTS;
  pool->context = context;
  pool->device = device;
  pool->next = pools;
  pools = pool;
  return pool;
}

struct level_zero_own_event* LevelZeroTakeEvent(ze_context_handle_t context,
                                                ze_device_handle_t device) {
  struct level_zero_pool* pool = pools;
  while (pool && (pool->context != context || pool->device != device || !pool->unused)) {
    pool = pool->next;
  }
  if (!pool) pool = MakePool(context, device);
  struct level_zero_own_event* event = pool ? pool->unused : NULL;
  if (event) pool->unused = event->next;
  return event;
}

void LevelZeroGiveBack(struct level_zero_own_event* event) {
  if (level_zero.event_reset(event->handle) != ZE_RESULT_SUCCESS) return;
  event->next = event->pool->unused;
  event->pool->unused = event;
}

void LevelZeroEndPools(ze_context_handle_t context) {
  struct level_zero_pool** place = &pools;
  while (*place) {
    struct level_zero_pool* const pool = *place;
    if (pool->context != context) {
      place = &pool->next;
      continue;
    }
    for (size_t i = 0; i < POOL_EVENTS; i++) {
      if (pool->events[i].handle) level_zero.event_destroy(pool->events[i].handle);
    }
    level_zero.pool_destroy(pool->handle);
    *place = pool->next;
    own_events -= POOL_EVENTS;
    free(pool);
  }
}
