// SPDX-License-Identifier: Apache-2.0
#include "instrumentation/device/nccl_places.h"

#include <pthread.h>
#include <stddef.h>

#include "instrumentation/block/block.h"

#define PLACES 4096u
#define TRIES 16u
/* Of a handle: bit 0 is set, PLACES of place, one that tells a channel, and the life. */
#define CHANNEL_BIT ((uintptr_t)1 << 21)
#define LIFE_SHIFT 22

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct place* places; /* PLACES of them */
static uint32_t next_place;
static uint64_t last_call;

uint64_t NcclNextCall(void) { return __atomic_add_fetch(&last_call, 1, __ATOMIC_RELAXED); }

void* NcclHandleOf(uint32_t at, uint32_t life) {
  return (void*)(uintptr_t)((uint64_t)life << LIFE_SHIFT | (uint64_t)at << 1 | 1u);
}
void* NcclChannelOf(const void* handle) { return (void*)((uintptr_t)handle | CHANNEL_BIT); }
int NcclIsChannel(const void* handle) { return ((uintptr_t)handle & CHANNEL_BIT) != 0; }

struct place* NcclPlaceOf(const void* handle, uint32_t* life) {
  const uint64_t bits = (uint64_t)(uintptr_t)handle;
  struct place* all = __atomic_load_n(&places, __ATOMIC_ACQUIRE);
  if (!all || !(bits & 1u)) return NULL;
  struct place* place = &all[bits >> 1 & (PLACES - 1)];
  *life = (uint32_t)(bits >> LIFE_SHIFT);
  const uint64_t state = __atomic_load_n(&place->state, __ATOMIC_ACQUIRE);
  return LEFT(state) != 0 && LIFE(state) == *life ? place : NULL;
}

struct place* NcclTakePlace(uint32_t gate, uint32_t* at, uint32_t* life) {
  struct place* all = __atomic_load_n(&places, __ATOMIC_ACQUIRE);
  if (!all) {
    pthread_mutex_lock(&mutex);
    if (!places) {
      __atomic_store_n(&places, syncline_reserve(PLACES * sizeof *places), __ATOMIC_RELEASE);
    }
    all = places;
    pthread_mutex_unlock(&mutex);
    if (!all) return NULL;
  }
  for (uint32_t i = 0; i < TRIES; i++) {
    *at = __atomic_fetch_add(&next_place, 1, __ATOMIC_RELAXED) & (PLACES - 1);
    struct place* place = &all[*at];
    uint64_t state = __atomic_load_n(&place->state, __ATOMIC_ACQUIRE);
    const uint64_t newest = __atomic_load_n(&last_call, __ATOMIC_RELAXED);
    if (LEFT(state) != 0 && __atomic_load_n(&place->gate, __ATOMIC_RELAXED) == gate &&
        __atomic_load_n(&place->call, __ATOMIC_RELAXED) + PLACES / 2 > newest) {
      continue;
    }
    *life = (LIFE(state) + 1) & 0x3FFFFFFFu;
    if (__atomic_compare_exchange_n(&place->state, &state, (uint64_t)*life << 32 | CHANNELS_LATER,
                                    0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      __atomic_store_n(&place->gate, gate, __ATOMIC_RELAXED);
      return place;
    }
  }
  return NULL;
}

void NcclFreePlace(struct place* place, uint32_t life, uint32_t left) {
  uint64_t state = (uint64_t)life << 32 | left;
  __atomic_compare_exchange_n(&place->state, &state, (uint64_t)life << 32, 0, __ATOMIC_RELEASE,
                              __ATOMIC_RELAXED);
}
