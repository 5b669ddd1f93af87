// SPDX-License-Identifier: Apache-2.0
// Why `syncline why` has no answer.
#ifndef SYNCLINE_ANALYSIS_WHY_REFUSAL_H_
#define SYNCLINE_ANALYSIS_WHY_REFUSAL_H_

#include <cstdint>

namespace syncline::analysis::why {

// Stable: scripts read the names.
enum class Refusal : uint8_t {
  kNone,
  kNothingRecorded,  // no process here was started for recording
  kForeignTrace,     // no recording
  kTensorFlowJob,
  kNoPyTorchOperators,
  kGpuJob,
  kSecondLauncher,  // two threads of a rank launch collectives
  kNoSteps,         // no optimizer step was seen
  kTooFewSteps,
  kRanksDisagree,  // no step has the same collectives on all ranks
  kNotCovered,     // a rank was recorded for less than 95 % of the window
  kRankMissing,    // of the job's ranks not all were recorded
};
const char* RefusalJsonName(Refusal refusal);  // "gpu_job"

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_REFUSAL_H_
