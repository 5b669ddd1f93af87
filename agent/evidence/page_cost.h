// SPDX-License-Identifier: Apache-2.0
// What it costs on this node to get a page of memory from the kernel.
#ifndef SYNCLINE_AGENT_EVIDENCE_PAGE_COST_H_
#define SYNCLINE_AGENT_EVIDENCE_PAGE_COST_H_

#include <cstdint>

namespace syncline::agent {

// Gets pages, writes to each once, gives them back: processor time of the calling thread for each,
// ns, the median of a few tries (some 0.5 ms in all). 0: they could not be had. Other page
// faults of a program cost less (copies after a fork, shared memory) or more (huge pages).
int64_t MeasurePageNs();

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_PAGE_COST_H_
