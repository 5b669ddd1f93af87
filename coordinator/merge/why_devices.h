// SPDX-License-Identifier: Apache-2.0
// From a job of a recording that computes on devices to the answer of `syncline why`: of each rank
// what its devices did, with steps that all ranks call by the same names.
#ifndef SYNCLINE_COORDINATOR_MERGE_WHY_DEVICES_H_
#define SYNCLINE_COORDINATOR_MERGE_WHY_DEVICES_H_

#include <optional>

#include "analysis/why/device_model.h"
#include "analysis/why/device_side.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/why_input.h"
#include "timeline/builder.h"

namespace syncline::merge {

// What was recorded of the devices of `process`; nullptr: nothing.
timeline::ProcessDevices* DevicesOf(const ProcessKey& process, timeline::BuiltTimeline* built);

// What the devices of `job` say of its ranks; steps of their optimizers are named anew in `built`.
// nullopt: nothing that they did was recorded.
std::optional<analysis::why::DeviceAnswer> ExplainDevicesOf(const WhyJob& job,
                                                            const OpenedInputs& inputs,
                                                            timeline::BuiltTimeline* built);

// The same as one side of a comparison.
std::optional<analysis::why::DeviceSide> DeviceSideOf(const WhyJob& job, const OpenedInputs& inputs,
                                                      timeline::BuiltTimeline* built);

// Of ranks that take longer for the same kernels: what held their devices back more than the
// others', by inputs.facts.
void AddHeldBack(const WhyJob& job, const OpenedInputs& inputs,
                 analysis::why::DeviceAnswer* answer);

// How the one device was that the process used; nullptr: it used several, or it is not known.
const analysis::DeviceHealth* HealthOf(const ProcessKey& process, const OpenedInputs& inputs);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WHY_DEVICES_H_
