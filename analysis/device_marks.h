// SPDX-License-Identifier: Apache-2.0
// The steps of a program whose devices a tracer recorded (StepsBy::kTask): a profile brings its
// own, here they are the tasks that the report takes for steps.
#ifndef SYNCLINE_ANALYSIS_DEVICE_MARKS_H_
#define SYNCLINE_ANALYSIS_DEVICE_MARKS_H_

#include <span>

#include "analysis/summary_sink.h"
#include "timeline/node_input.h"

namespace syncline::analysis {

// Of several threads of a process that mark steps, those of the report's likeliest. Where none
// marks any, nothing changes.
void TakeStepsFrom(const SummarySink& summary, std::span<timeline::NodeResult> nodes);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_DEVICE_MARKS_H_
