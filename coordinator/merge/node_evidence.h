// SPDX-License-Identifier: Apache-2.0
// The samples that a recording has of its nodes: read, and as counters of the timeline.
#ifndef SYNCLINE_COORDINATOR_MERGE_NODE_EVIDENCE_H_
#define SYNCLINE_COORDINATOR_MERGE_NODE_EVIDENCE_H_

#include <deque>
#include <optional>
#include <vector>

#include "coordinator/merge/inputs.h"
#include "evidence/evidence.h"
#include "timeline/counter_series.h"

namespace syncline::merge {

// Of each of inputs->nodes, in their order; nullopt: the node was recorded without, or what there
// is cannot be read, which is then a complaint.
std::deque<std::optional<evidence::Evidence>> ReadEvidence(OpenedInputs* inputs);

// What grew from each sample to the next, a second: of every sampled thread the processor time
// ("on CPU", %) and the time in the run queue ("run queue", ms/s; throttled time is in it), of
// every control group the throttled time ("throttled", ms/s, added up over processors), and of
// every process that is not recorded its processor time ("CPU", %). A point's value holds until the
// next one; the last is 0. Series in which nothing grew are left out.
std::vector<timeline::CounterSeries> CountersOf(const evidence::Evidence& evidence);

// What the samples of every node say, added up over `counted`, into inputs->facts; with `draw` also
// their counters, into inputs->nodes.
void AddSamples(timeline::Interval counted, bool draw, OpenedInputs* inputs);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_NODE_EVIDENCE_H_
