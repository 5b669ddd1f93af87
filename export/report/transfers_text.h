// SPDX-License-Identifier: Apache-2.0
// Sends and receives of process groups as people read them.
#ifndef SYNCLINE_EXPORT_REPORT_TRANSFERS_TEXT_H_
#define SYNCLINE_EXPORT_REPORT_TRANSFERS_TEXT_H_

#include <cstddef>
#include <string>

#include "analysis/report.h"

namespace syncline::report {

// Lines with `indent` blanks before them; empty when there are none.
std::string TransfersText(const analysis::Report& report, size_t width, size_t indent);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_TRANSFERS_TEXT_H_
