// SPDX-License-Identifier: Apache-2.0
// The code samples of a recording's nodes (evidence/code_samples.h), for the report and the
// timeline.
#ifndef SYNCLINE_COORDINATOR_MERGE_NODE_CODE_H_
#define SYNCLINE_COORDINATOR_MERGE_NODE_CODE_H_

#include <vector>

#include "analysis/hot_code.h"
#include "coordinator/merge/inputs.h"

namespace syncline::merge {

// Of the nodes that have any. What cannot be read is a complaint; what a node says of its samples,
// and lines that are damaged, are notes.
std::vector<analysis::HotInput> ReadCodeSamples(timeline::Interval counted, OpenedInputs* inputs);

// Those that count, as series of the timeline, into inputs->nodes.
void DrawCodeSamples(const std::vector<analysis::HotInput>& samples, OpenedInputs* inputs);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_NODE_CODE_H_
