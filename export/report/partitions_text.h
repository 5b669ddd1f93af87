// SPDX-License-Identifier: Apache-2.0
// Partitions of TensorFlow's graphs as people read them.
#ifndef SYNCLINE_EXPORT_REPORT_PARTITIONS_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_PARTITIONS_TEXT_H_

#include <cstddef>
#include <string>

#include "analysis/report.h"

namespace syncline::report {

// Lines with `indent` blanks before them; empty when there are none.
std::string PartitionsText(const analysis::Report& report, size_t width, size_t indent);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_PARTITIONS_TEXT_H_
