// SPDX-License-Identifier: Apache-2.0
// Where a line of a report may end: not inside of a number with its unit or bound. Pure.
#ifndef SYNCLINE_EXPORT_REPORT_WORDS_H_
#define SYNCLINE_EXPORT_REPORT_WORDS_H_

#include <string>
#include <string_view>
#include <vector>

namespace syncline::report {

// The words of `text`; as one word with its blanks what stays together: "12.3 µs", "1 234",
// "+5 ns ± 1 ns", "[27.6, 31.9]", "rank 3".
std::vector<std::string> WordsOf(std::string_view text);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_WORDS_H_
