// SPDX-License-Identifier: Apache-2.0
// ctf_generate_streams DIRECTORY STREAMS EVENTS: a trace with that many streams and events in all.
// Prints the sum of all fields, which ctf_scan must find again.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ctf/generator.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s DIRECTORY STREAMS EVENTS\n", argv[0]);
    return 2;
  }
  syncline::ctf::GeneratorOptions options;
  options.streams = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  if (options.streams == 0) return 2;
  options.events_per_stream = std::strtoull(argv[3], nullptr, 10) / options.streams;
  options.gap_ns_mean = uint64_t{250} * options.streams;
  const auto trace = syncline::ctf::GenerateTrace(argv[1], options);
  if (!trace.ok()) {
    std::fprintf(stderr, "%s\n", std::string(trace.status().message()).c_str());
    return 1;
  }
  std::printf("events %" PRIu64 " bytes %" PRIu64 " sum %" PRIu64 "\n", trace->events, trace->bytes,
              trace->sum);
  return 0;
}
