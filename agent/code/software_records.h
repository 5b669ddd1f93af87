// SPDX-License-Identifier: Apache-2.0
// The records of a perf_event ring, as perf_event_open(2) describes them, of software events that
// ask for IDENTIFIER, TIME, CPU and READ with sample_id_all and context_switch. Pure.
//
// Thread-safety: no state.
#ifndef SYNCLINE_AGENT_CODE_SOFTWARE_RECORDS_H_
#define SYNCLINE_AGENT_CODE_SOFTWARE_RECORDS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace syncline::agent {

struct SoftwareRecord {
  enum class Kind : uint8_t {
    kSample,     // of the event with this id
    kBlocked,    // the thread has left its processor, and waits for something
    kPreempted,  // it has left it, and could run on
    kRuns,       // it has a processor again
    kLost,       // the kernel had no room for `count` records before this one
  };
  Kind kind = Kind::kSample;
  int64_t time_ns = 0;
  int32_t cpu = 0;
  uint64_t id = 0;     // of the event
  uint64_t count = 0;  // of a sample: how often its event has happened so far
};

struct SoftwareRecords {
  std::vector<SoftwareRecord> records;
  bool damaged = false;  // a record that cannot be: nothing behind it is read
};

// `bytes`: whole records, from the oldest on.
SoftwareRecords ParseSoftwareRecords(std::span<const uint8_t> bytes);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_SOFTWARE_RECORDS_H_
