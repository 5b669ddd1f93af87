// SPDX-License-Identifier: Apache-2.0
// From what the devices of a job's ranks did to the answer. Pure: the same input gives the same
// answer, on any machine.
#ifndef SYNCLINE_ANALYSIS_WHY_DEVICE_EXPLAIN_H_
#define SYNCLINE_ANALYSIS_WHY_DEVICE_EXPLAIN_H_

#include <span>

#include "analysis/why/device_model.h"

namespace syncline::analysis::why {

// `ranks`: in any order, at least one.
DeviceAnswer ExplainDevices(std::span<const DeviceRank> ranks);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_DEVICE_EXPLAIN_H_
