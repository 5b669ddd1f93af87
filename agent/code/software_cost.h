// SPDX-License-Identifier: Apache-2.0
// What watching page faults and switches costs the threads that are watched.
#ifndef SYNCLINE_AGENT_CODE_SOFTWARE_COST_H_
#define SYNCLINE_AGENT_CODE_SOFTWARE_COST_H_

#include <cstdint>

#include "agent/code/software_ring.h"

namespace syncline::agent {

// Of a thread's processor time. The numbers here are of a virtual machine of 2 processors, Linux
// 6.18 (docs/hot-code.md).
struct SoftwareCost {
  int64_t fault_ns = 55;      // that is counted
  int64_t note_ns = 500;      // more, for one that is noted
  int64_t switch_ns = 1'200;  // away and back
};

// The first two as they are here and now: the calling thread touches some hundred new pages, with
// and without being watched. Some 10 ms of processor time.
SoftwareCost MeasureSoftwareCost(const OpenSoftwareRing& open, bool kernel);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_SOFTWARE_COST_H_
