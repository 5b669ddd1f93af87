// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why` for jobs of which only the kernels of NCCL's collectives were
// recorded: whom the ranks wait for. Why it comes late they do not show. The definitions:
// docs/findings.md. Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_COLLECTIVE_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_COLLECTIVE_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/why/device_model.h"
#include "analysis/why/held_back.h"
#include "analysis/why/model.h"
#include "common/identity.h"

namespace syncline::analysis::why {

inline constexpr uint64_t kWaitsMin = 30;  // below that many collectives no rank is called late

enum class CollectiveRefusal : uint8_t {
  kNone,
  kNoCommonCommunicator,  // none has all ranks
  kPeerToPeer,            // the stages of a pipeline
  kNoCollectives,         // none that shows who waits was recorded on all ranks
  kSeveralDevices,        // a process works as several ranks
  kSeveralPrograms,       // not all processes are of one communicator
  kClockUnknown,          // of a rank's device
  kContradictions,
};
const char* CollectiveRefusalJsonName(CollectiveRefusal refusal);

struct CollectiveRank {
  int32_t rank = -1;  // of the job; where that is not known, of the largest communicator
  std::string node;
  ProcessKey process;
  int64_t kernels_ns = 0;  // these two of each second
  int64_t waited_ns = 0;
  uint64_t last_in = 0;  // collectives
};

struct CollectiveFinding {
  size_t index = 0;   // into CollectiveAnswer::ranks
  MeanEstimate lead;  // ns of each second: so much longer the others wait
  // Of a late rank: what held its device back more than all others'. It may be late for that, or
  // its device may be warm because it has more to do.
  std::vector<DeviceHeldBack> held_back;
};

struct CollectiveAnswer {
  CollectiveRefusal refusal = CollectiveRefusal::kNone;
  std::string refusal_text;
  std::string job;
  bool incomplete = false;
  uint64_t collectives = 0;           // judged: all ranks wait in them
  uint64_t waited_in = 0;             // of those, in which any rank waits
  uint64_t unmatched = 0;             // recorded, and not known which are one
  int64_t window_ns = 0;              // from the first of them to the last
  std::vector<CollectiveRank> ranks;  // by rank
  DeviceVerdict verdict = DeviceVerdict::kNotJudged;
  std::vector<CollectiveFinding> findings;   // the largest lead first
  std::optional<CollectiveFinding> closest;  // without findings: who is waited for most
  // Of each second, what the ranks wait in the mean because another one comes last each time.
  int64_t rotating_ns = 0;
  std::vector<std::string> notes;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_COLLECTIVE_MODEL_H_
