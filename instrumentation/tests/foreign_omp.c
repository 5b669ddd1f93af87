// SPDX-License-Identifier: Apache-2.0
/* An OpenMP program of GCC's: run on LLVM's libomp (LD_PRELOAD), which speaks ITT where libgomp
 * does not. */
#include <time.h>

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void) {
  double sum = 0;
  for (double until = Now() + 3; Now() < until;) {
#pragma omp parallel for reduction(+ : sum) num_threads(2)
    for (int i = 0; i < 2000; i++) sum += i;
  }
  return sum > 0 ? 0 : 1;
}
