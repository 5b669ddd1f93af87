// SPDX-License-Identifier: Apache-2.0
// Times and counts as people read them.
#ifndef SYNCLINE_EXPORT_REPORT_UNITS_H_
#define SYNCLINE_EXPORT_REPORT_UNITS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/time.h"

namespace syncline::report {

// "99.9 %": never 100 for less than all, nor 0 for more than nothing. "-" when the whole is 0.
std::string Percent(int64_t part, int64_t whole);
// The same of millionths.
std::string PercentOfPpm(int64_t ppm);
// "+12.3 µs ± 4.5 µs", "+12.3 µs ± unknown"; "-" for nullopt.
std::string WithBound(const std::optional<DurationEstimate>& estimate);
// "1 234 567".
std::string Count(uint64_t count);
// "349.1 kB", "20.2 MB".
std::string BytesText(double bytes);
// "3 tasks", "1 task".
std::string Plural(uint64_t count, const char* singular);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_UNITS_H_
