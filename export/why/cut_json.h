// SPDX-License-Identifier: Apache-2.0
// The answer of `syncline why` of a model that is cut into partitions, as JSON: docs/why-json.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_CUT_JSON_H_
#define SYNCLINE_EXPORT_WHY_CUT_JSON_H_

#include <string>
#include <vector>

#include "analysis/why/cut_model.h"

namespace syncline::report {

// `inputs`: as the caller named them.
std::string CutWhyJson(const analysis::why::CutAnswer& answer,
                       const std::vector<std::string>& inputs);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_CUT_JSON_H_
