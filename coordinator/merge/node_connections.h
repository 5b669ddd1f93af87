// SPDX-License-Identifier: Apache-2.0
// What the kernels of a recording's nodes said of the job's TCP connections
// (evidence/connection_samples.h): for the report, and as counters of the timeline.
#ifndef SYNCLINE_COORDINATOR_MERGE_NODE_CONNECTIONS_H_
#define SYNCLINE_COORDINATOR_MERGE_NODE_CONNECTIONS_H_

#include <vector>

#include "coordinator/merge/inputs.h"
#include "evidence/connection_samples.h"
#include "timeline/counter_series.h"

namespace syncline::merge {

// Of the connections that sent most what they sent, and of all that did, what they retransmitted:
// in a second, from one reading to the next.
std::vector<timeline::CounterSeries> ConnectionCounters(const evidence::ConnectionSamples& samples);

// What the samples of every node say of `counted`, into inputs->facts; with `draw` also their
// counters, into inputs->nodes. Samples that cannot be read are a complaint; what they note of
// themselves is a note.
void AddConnectionSamples(timeline::Interval counted, bool draw, OpenedInputs* inputs);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_NODE_CONNECTIONS_H_
