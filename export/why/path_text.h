// SPDX-License-Identifier: Apache-2.0
// The sentences of PATH: what the steps of a job waited for, one thing after the other.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_PATH_TEXT_H_
#define SYNCLINE_EXPORT_WHY_PATH_TEXT_H_

#include <string>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::report {

// One paragraph each; empty without a path.
std::vector<std::string> PathSentences(const analysis::why::Answer& answer);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_PATH_TEXT_H_
