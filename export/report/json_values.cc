// SPDX-License-Identifier: Apache-2.0
#include "export/report/json_values.h"

namespace syncline::report {

Json OrNull(const std::optional<TimelineTime>& time) {
  return time.has_value() ? Json(time->ns) : Json();
}

Json OrNull(const std::optional<analysis::FullGroup>& group) {
  if (!group.has_value()) return nullptr;
  return {{"group", group->path},
          {"group_version", group->version},
          {"limit_bytes", group->limit_bytes >= 0 ? Json(group->limit_bytes) : Json()},
          {"times", group->times},
          {"time_ns", group->time_ns}};
}

Json Interval(const std::optional<DurationEstimate>& estimate) {
  if (!estimate.has_value()) return nullptr;
  const bool bounded = estimate->bounded();
  return {{"est_ns", estimate->est_ns},
          {"lo_ns", bounded ? Json(estimate->lo_ns) : Json()},
          {"hi_ns", bounded ? Json(estimate->hi_ns) : Json()},
          {"bound_ns", bounded ? Json(estimate->bound_ns()) : Json()}};
}

Json Interval(const std::optional<analysis::LevelledDuration>& estimate) {
  if (!estimate.has_value()) return nullptr;
  Json json = Interval(std::optional<DurationEstimate>(*estimate));
  const auto& likely = estimate->likely;
  const bool bounded = likely.has_value() && likely->bounded();
  json["likely_lo_ns"] = bounded ? Json(likely->lo_ns) : Json();
  json["likely_hi_ns"] = bounded ? Json(likely->hi_ns) : Json();
  return json;
}

}  // namespace syncline::report
