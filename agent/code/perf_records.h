// SPDX-License-Identifier: Apache-2.0
// The records of a perf_event ring, as perf_event_open(2) describes them, of events that ask for
// IP, TID, TIME and CALLCHAIN with sample_id_all. Pure.
//
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_CODE_PERF_RECORDS_H_
#define SYNCLINE_AGENT_CODE_PERF_RECORDS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace syncline::agent {

struct PerfSample {
  int64_t time_ns = 0;
  // Innermost first. Those of `user` behind the first are return addresses.
  std::vector<uint64_t> kernel;
  std::vector<uint64_t> user;
};

struct PerfLoss {
  int64_t time_ns = 0;  // of the first record behind the loss
  uint64_t count = 0;
};

struct PerfRecords {
  std::vector<PerfSample> samples;
  std::vector<PerfLoss> losses;
  bool throttled = false;          // the kernel has suspended the event for a while
  bool damaged = false;            // a record that cannot be: nothing behind it is read
  std::vector<int64_t> mapped_ns;  // when the thread has mapped code
};

// `bytes`: whole records, from the oldest on.
PerfRecords ParsePerfRecords(std::span<const uint8_t> bytes);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_PERF_RECORDS_H_
