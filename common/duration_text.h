// SPDX-License-Identifier: Apache-2.0
// A length of time as people read it: the one spelling of the whole project ("µs", never "us").
#ifndef SYNCLINE_COMMON_DURATION_TEXT_H_
#define SYNCLINE_COMMON_DURATION_TEXT_H_

#include <cstdint>
#include <string>

namespace syncline {

// "0 ns", "870 ns", "12.3 µs", "4.56 ms", "5.000 s", "12.5 min"; a leading "-" below 0. Three
// significant digits; seconds have milliseconds, so that 4.998 s are not 5 s.
std::string DurationText(int64_t ns);

// The same with "+" above 0.
std::string SignedDurationText(int64_t ns);

}  // namespace syncline

#endif  // SYNCLINE_COMMON_DURATION_TEXT_H_
