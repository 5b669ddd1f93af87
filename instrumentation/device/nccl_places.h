// SPDX-License-Identifier: Apache-2.0
/* Collectives that are under way, in a pool of places: none is allocated while the program runs.
 * What NCCL holds of one, and of a channel of it, is a number that names the place and its life,
 * never an address. Threads: any. */
#ifndef SYNCLINE_INSTRUMENTATION_DEVICE_NCCL_PLACES_H_
#define SYNCLINE_INSTRUMENTATION_DEVICE_NCCL_PLACES_H_

#include <stdint.h>

#define TEXT_BYTES 24

struct communicator;

struct place {
  /* In the upper half its life, in the lower what is still to come: the end of asking for it, and
   * of each channel. 0 in the lower half: it is free. */
  uint64_t state;
  uint32_t gate; /* of the recording */
  uint32_t peer;
  struct communicator* communicator;
  uint64_t call;
  uint64_t number;
  uint64_t bytes;
  uint64_t since_ns;
  uint64_t begin;
  uint64_t end;
  int64_t ahead_ns;
  uint64_t last_begin; /* these two tell whether its channels worked at the same time */
  uint64_t first_end;
  uint64_t seen_ns; /* the first stamp was in our hands */
  uint64_t over_ns; /* the last one */
  uint32_t stamps;
  char name[TEXT_BYTES];
  char how[2 * TEXT_BYTES];
};

#define LEFT(state) ((uint32_t)(state))
#define LIFE(state) ((uint32_t)((state) >> 32))
#define CHANNELS_LATER 0x80000000u /* while a place is filled in */
#define RECORDED 0x40000000u       /* while what is in it is written */

/* The number of a call, of all of the process. */
uint64_t NcclNextCall(void);

/* A free place, CHANNELS_LATER, which nobody else fills in; NULL: there is none. What an earlier
 * recording left under way counts as over, and what is older than half of all places: NCCL does not
 * tell of all channels that it announces. */
struct place* NcclTakePlace(uint32_t gate, uint32_t* at, uint32_t* life);
/* If its state is still that. */
void NcclFreePlace(struct place* place, uint32_t life, uint32_t left);

void* NcclHandleOf(uint32_t at, uint32_t life);
void* NcclChannelOf(const void* handle);
int NcclIsChannel(const void* handle);
/* NULL: it is over. Its life goes to `life`. */
struct place* NcclPlaceOf(const void* handle, uint32_t* life);

#endif /* SYNCLINE_INSTRUMENTATION_DEVICE_NCCL_PLACES_H_ */
