// SPDX-License-Identifier: Apache-2.0
// What comparisons of all kinds of jobs have in common as JSON, format_version 1:
// docs/why-json.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_CHANGE_JSON_H_
#define SYNCLINE_EXPORT_WHY_CHANGE_JSON_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/why/changes.h"
#include "analysis/why/compared_sides.h"
#include "export/why/compared.h"

namespace syncline::report {

inline constexpr int kComparisonFormatVersion = 1;

nlohmann::ordered_json ChangeJson(const analysis::why::Change& change);

// One recording, or all before together, and where it lies.
using SideToJson = std::function<nlohmann::ordered_json(const analysis::why::ComparedSide& side,
                                                        const std::string& recording)>;

// Of a job that has ranks.
nlohmann::ordered_json RanksSideJson(const analysis::why::ComparedSide& side,
                                     const std::string& recording);

// Down to the limits. `refusal`: of `why`; "": it has an answer for both.
nlohmann::ordered_json ComparedJson(const analysis::why::ComparedSides& comparison,
                                    const ComparedNames& names, const char* refusal,
                                    const SideToJson& side);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_CHANGE_JSON_H_
