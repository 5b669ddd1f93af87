// SPDX-License-Identifier: Apache-2.0
// For tests: what a report says beside names.
#ifndef SYNCLINE_COORDINATOR_PACK_REPORT_NUMBERS_H_
#define SYNCLINE_COORDINATOR_PACK_REPORT_NUMBERS_H_

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "coordinator/merge/merge.h"
#include "export/report/json_report.h"
#include "gtest/gtest.h"

namespace syncline::pack {

// All texts alike, and lists in the order of what is left: those that are sorted by names have
// another order.
inline nlohmann::json NumbersOf(const nlohmann::json& json) {
  nlohmann::json numbers;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) numbers[key] = NumbersOf(value);
  } else if (json.is_array()) {
    numbers = nlohmann::json::array();
    for (const nlohmann::json& value : json) numbers.push_back(NumbersOf(value));
    std::sort(numbers.begin(), numbers.end());
  } else {
    numbers = json.is_string() ? nlohmann::json("text") : json;
  }
  return numbers;
}

inline nlohmann::json ReportOf(const std::filesystem::path& run) {
  merge::ReportOptions options;
  options.input.inputs = {run.string()};
  const auto report = merge::MakeReport(options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? nlohmann::json::parse(report::ReportJson(*report)) : nlohmann::json();
}

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_REPORT_NUMBERS_H_
