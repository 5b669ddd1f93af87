// SPDX-License-Identifier: Apache-2.0
// Writes traces as LTTng-UST does, with any number of streams and events: for benchmarks, and for
// tests that need a trace of known contents. The same options give the same bytes.
//
// Three events, as a tracer of training jobs would write: "bench:begin" (45 %, 38 bytes),
// "bench:end" (45 %, 26 bytes), "bench:named" with a string and a sequence (10 %). Streams
// interleave at random, which is the worst case for ordering.
#ifndef SYNCLINE_CTF_GENERATOR_H_
#define SYNCLINE_CTF_GENERATOR_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace syncline::ctf {

struct GeneratorOptions {
  uint32_t streams = 2;
  uint64_t events_per_stream = 1000;
  uint32_t packet_bytes = 256 * 1024;  // a multiple of 4096
  uint64_t gap_ns_mean = 1000;         // between events of one stream
  uint64_t seed = 1;
  bool with_index = false;  // GenerateTrace(): LTTng's packet index beside each stream
};

// What decoding must find: the sum of all integer values of contexts and payloads, of the lengths
// of all strings, and of the bits of all reals, modulo 2^64.
struct GeneratedStream {
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> index;  // as LTTng writes it to index/NAME.idx
  uint64_t events = 0;
  uint64_t sum = 0;
};

std::string GeneratedMetadata();
GeneratedStream GenerateStream(const GeneratorOptions& options, uint32_t stream);

struct GeneratedTrace {
  uint64_t bytes = 0;
  uint64_t events = 0;
  uint64_t sum = 0;
};
// A trace directory with `options.streams` files.
absl::StatusOr<GeneratedTrace> GenerateTrace(const std::filesystem::path& directory,
                                             const GeneratorOptions& options);

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_GENERATOR_H_
