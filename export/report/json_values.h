// SPDX-License-Identifier: Apache-2.0
// Values of the report's JSON: null where something is unknown, and estimates with their bounds.
#ifndef SYNCLINE_EXPORT_REPORT_JSON_VALUES_H_
#define SYNCLINE_EXPORT_REPORT_JSON_VALUES_H_

#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/full_group.h"
#include "analysis/levels.h"
#include "common/time.h"

namespace syncline::report {

using Json = nlohmann::ordered_json;

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json();
}
Json OrNull(const std::optional<TimelineTime>& time);
Json OrNull(const std::optional<analysis::FullGroup>& group);

// {"est_ns", "lo_ns", "hi_ns", "bound_ns"}.
Json Interval(const std::optional<DurationEstimate>& estimate);
// Proven, and beside it what is likely under the report's assumption; null: nothing more is.
Json Interval(const std::optional<analysis::LevelledDuration>& estimate);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_JSON_VALUES_H_
