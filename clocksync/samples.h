// SPDX-License-Identifier: Apache-2.0
// What the clock model is made from: probe samples between nodes, and bracketed readings of one
// host's clocks. Plain values; their files are binary and versioned (sample_file.h).
#ifndef SYNCLINE_CLOCKSYNC_SAMPLES_H_
#define SYNCLINE_CLOCKSYNC_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/time.h"

namespace syncline::clocksync {

// How a probe's timestamps were taken, best first. Part of the sample format: never renumber.
enum class StampSource : uint8_t {
  kHardware = 0,
  kKernel = 1,
  kUserSpin = 2,
  kUserBlocking = 3,
  kGrpc = 4,
};
inline constexpr size_t kStampSources = 5;

// One exchange: local sends at t1, remote receives at t2, remote answers at t3, local receives at
// t4. All stamps in ns of CLOCK_MONOTONIC_RAW of the side that took them. Soundness rule: a send
// stamp is never late, a receive stamp never early. A stamp of 0 is missing (a one-way sample).
//   remote - local <= t2 - t1     and     remote - local >= t3 - t4
struct ProbeSample {
  int64_t t1_local_ns = 0;
  int64_t t2_remote_ns = 0;
  int64_t t3_remote_ns = 0;
  int64_t t4_local_ns = 0;
  StampSource source = StampSource::kGrpc;

  // When it was taken, by the local clock.
  int64_t local_ns() const { return t1_local_ns != 0 ? t1_local_ns : t4_local_ns; }
  // What it spent on the way, there and back. Of a whole exchange with sane stamps only.
  int64_t round_trip_ns() const {
    return (t4_local_ns - t1_local_ns) - (t3_remote_ns - t2_remote_ns);
  }
};

// Records of a file that were passed over because their bytes are damaged.
struct Damage {
  uint64_t records = 0;
  uint64_t first_byte = 0;  // where in the file the first of them begins
};

// A pair of nodes that probe each other. A node named "coordinator" may take part as a hub.
struct Edge {
  std::string local;
  std::string remote;
  std::vector<ProbeSample> samples;  // in the order they were taken
  uint64_t truncated_bytes = 0;      // cut off the end of the file: the writer was killed
  Damage damage;
};

// A bracketed reading of one host's clocks: RAW was read before and after the others, so each of
// them was read at some RAW instant in [raw_before_ns, raw_after_ns].
struct ClockTuple {
  int64_t raw_before_ns = 0;
  int64_t monotonic_ns = 0;
  int64_t realtime_ns = 0;
  int64_t boottime_ns = 0;
  int64_t raw_after_ns = 0;
  // adjtimex: frequency in 2^-16 ppm, tick in us, status bits, time constant; a change between two
  // tuples means that MONOTONIC's rate changed somewhere between them.
  int64_t adjtimex_freq = 0;
  int32_t adjtimex_tick_us = 0;
  int32_t adjtimex_status = 0;
};

struct HostClocks {
  std::string node;
  std::vector<ClockTuple> tuples;  // by raw_before_ns
  uint64_t truncated_bytes = 0;    // cut off the end of the file: the writer was killed
  Damage damage;
};

}  // namespace syncline::clocksync

#endif  // SYNCLINE_CLOCKSYNC_SAMPLES_H_
