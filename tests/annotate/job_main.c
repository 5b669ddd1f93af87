// SPDX-License-Identifier: Apache-2.0
/* For a program of docs/annotate.md that is only functions: requests are made by one thread, and
 * arrive on another, three later. */
#include <pthread.h>

#include "job.h"

static uint64_t requested, arrived;

double batches_in_flight(void) {
  return (double)(__atomic_load_n(&requested, __ATOMIC_ACQUIRE) -
                  __atomic_load_n(&arrived, __ATOMIC_ACQUIRE));
}

static void* Reader(void* unused) {
  while (more_steps()) {
    load_batch();
    if (batches_in_flight() >= 3) batch_arrived(__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL));
  }
  return unused;
}

int main(void) {
  pthread_t reader;
  if (pthread_create(&reader, NULL, Reader, NULL) != 0) return 1;
  while (more_steps()) {
    if (batches_in_flight() < 4)
      batch_requested(__atomic_add_fetch(&requested, 1, __ATOMIC_ACQ_REL));
    train();
  }
  pthread_join(reader, NULL);
  return 0;
}
