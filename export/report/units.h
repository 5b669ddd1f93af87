// Times and counts as people read them.
#ifndef SYNCLINE_EXPORT_REPORT_UNITS_H_
#define SYNCLINE_EXPORT_REPORT_UNITS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/time.h"

namespace syncline::report {

// "0", "870 ns", "12.3 µs", "4.56 ms", "5.000 s": four digits at most before the unit changes.
std::string Time(int64_t ns);
// The same with a sign: "+12.3 µs".
std::string SignedTime(int64_t ns);
// "+12.3 µs ± 4.5 µs", "+12.3 µs ± unknown"; "-" for nullopt.
std::string WithBound(const std::optional<DurationEstimate>& estimate);
// "1 234 567".
std::string Count(uint64_t count);
// "3 tasks", "1 task".
std::string Plural(uint64_t count, const char* singular);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_UNITS_H_
