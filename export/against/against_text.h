// SPDX-License-Identifier: Apache-2.0
// What `syncline report --against` prints. The numbers are defined in docs/findings.md.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_AGAINST_AGAINST_TEXT_H_
#define SYNCLINE_EXPORT_AGAINST_AGAINST_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/against/comparison.h"

namespace syncline::report {

struct AgainstTextOptions {
  size_t width = 100;
  bool color = false;
  bool full = false;  // all rows, also those that did not change
};

struct ComparedReports {
  std::string now;  // where the recordings lie
  std::vector<std::string> before;
  analysis::against::Comparison comparison;
};

std::string AgainstText(const ComparedReports& compared, const AgainstTextOptions& options);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_AGAINST_AGAINST_TEXT_H_
