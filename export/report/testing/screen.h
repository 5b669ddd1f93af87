// SPDX-License-Identifier: Apache-2.0
// A report on one screen, for tests. Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_REPORT_TESTING_SCREEN_H_
#define SYNCLINE_EXPORT_REPORT_TESTING_SCREEN_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>

namespace syncline::report::testing {

inline constexpr size_t kScreenLines = 47;

inline size_t LinesOf(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The lines from `label` on, as one, up to the next label or title.
inline std::string ItemOf(const std::string& text, const std::string& label) {
  const size_t begin = text.find("\n" + label);
  EXPECT_NE(begin, std::string::npos) << label << " in\n" << text;
  if (begin == std::string::npos) return "";
  size_t end = text.find('\n', begin + 1);
  while (end + 1 < text.size() && text[end + 1] == ' ') end = text.find('\n', end + 1);
  return std::regex_replace(text.substr(begin + 1, end - begin - 1), std::regex("\\s+"), " ");
}

}  // namespace syncline::report::testing

#endif  // SYNCLINE_EXPORT_REPORT_TESTING_SCREEN_H_
