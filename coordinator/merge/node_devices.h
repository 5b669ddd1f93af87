// SPDX-License-Identifier: Apache-2.0
// What the drivers of a recording's nodes said of their devices (evidence/device_samples.h): for
// the report, and as counters of the timeline.
#ifndef SYNCLINE_COORDINATOR_MERGE_NODE_DEVICES_H_
#define SYNCLINE_COORDINATOR_MERGE_NODE_DEVICES_H_

#include <vector>

#include "coordinator/merge/inputs.h"
#include "evidence/device_samples.h"
#include "timeline/counter_series.h"

namespace syncline::merge {

// Of every device what its driver says: clock of its SMs, power, temperature, in how much of the
// time it was busy, memory used; and, where a counter of it grew, in how much of the time from one
// sample to the next it was held back, by reason.
std::vector<timeline::CounterSeries> DeviceCounters(const evidence::DeviceSamples& samples);

// What the samples of every node say of `counted`, into inputs->facts; with `draw` also their
// counters, into inputs->nodes. Samples that cannot be read are a complaint; what they note of
// themselves is a note.
void AddDeviceSamples(timeline::Interval counted, bool draw, OpenedInputs* inputs);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_NODE_DEVICES_H_
