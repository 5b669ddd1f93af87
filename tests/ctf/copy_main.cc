// SPDX-License-Identifier: Apache-2.0
// ctf_copy TRACE OUT [SHIFT_NS [THREADS]]: the trace again with every time moved, on one thread or
// more; prints how much that was and how long it took (the rate is per second of processor time).
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "export/ctf/trace_copy.h"

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    std::fprintf(stderr, "usage: %s TRACE OUT [SHIFT_NS [THREADS]]\n", argv[0]);
    return 2;
  }
  const int64_t shift_ns = argc >= 4 ? std::atoll(argv[3]) : 0;
  syncline::ctf_export::CopyOptions options{"node", argv[1]};
  if (argc == 5) options.threads = static_cast<unsigned>(std::atoi(argv[4]));
  const auto begin = std::chrono::steady_clock::now();
  const auto placement = syncline::timeline::ShiftPlacement({}, shift_ns);
  const auto copied = syncline::ctf_export::CopyTrace(argv[1], argv[2], *placement, options);
  if (!copied.ok()) {
    std::fprintf(stderr, "%s\n", std::string(copied.status().message()).c_str());
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double cpu = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  std::printf("events %" PRIu64 " bytes %" PRIu64 " seconds %.3f cpu %.3f rate %.1f M/s\n",
              copied->events, copied->bytes, took.count(), cpu,
              static_cast<double>(copied->events) / cpu / 1e6);
  return 0;
}
