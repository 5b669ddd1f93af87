// SPDX-License-Identifier: Apache-2.0
// What is said of few steps that take far longer than the others.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_STALLS_TEXT_H_
#define SYNCLINE_EXPORT_WHY_STALLS_TEXT_H_

#include <string>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::report {

// A paragraph each; empty: there are none.
std::vector<std::string> StallSentences(const analysis::why::Answer& answer);

// What to do about them; empty likewise.
std::vector<std::string> StallNext(const analysis::why::Answer& answer);

// Behind a lead, of a rank: "; without the 4 stalls among these steps by 0.4 ms [0.1, 0.7]"; empty:
// there are none.
std::string WithoutStalls(const analysis::why::Answer& answer,
                          const analysis::why::RankFinding& finding);

// Whether stalls make most of a rank's lead, and StallSentences name it for them.
bool MostInStalls(const analysis::why::Answer& answer, const analysis::why::RankFinding& finding);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_STALLS_TEXT_H_
