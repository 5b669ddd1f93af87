// SPDX-License-Identifier: Apache-2.0
// Emits COUNT rounds of events with every field type, for recordings that tests decode.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "every_type_provider.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
  static const char kText[] = "tensor\"s and\\tabs\t, \xc3\xa9";
  for (long i = 0; i < count; ++i) {
    const int32_t values[8] = {(int32_t)i, -(int32_t)i, 7, 1 << 30, -5, 6, 1, 0};
    lttng_ust_tracepoint(syncline_test, integers, (int64_t)i * -1000000007LL);
    lttng_ust_tracepoint(syncline_test, reals_and_texts, (double)i / 3.0, kText + i % 8);
    lttng_ust_tracepoint(syncline_test, arrays, values, (uint32_t)(i % 8), kText);
    lttng_ust_tracepoint(syncline_test, enums, (int)(i % 14) - 3);
    lttng_ust_tracepoint(syncline_test, empty);
  }
  printf("%ld rounds\n", count);
  return 0;
}
