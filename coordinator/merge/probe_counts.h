// SPDX-License-Identifier: Apache-2.0
// What the nodes of a recording counted of their clock probes, for the report.
#ifndef SYNCLINE_COORDINATOR_MERGE_PROBE_COUNTS_H_
#define SYNCLINE_COORDINATOR_MERGE_PROBE_COUNTS_H_

#include "analysis/report.h"
#include "coordinator/recording/recording.h"

namespace syncline::merge {

// From clocks/probes.json into the receipt. A recording without that file is complete; where it
// cannot be read, a note says so.
void AddProbeCounts(const recording::Layout& layout, analysis::Report* report);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_PROBE_COUNTS_H_
