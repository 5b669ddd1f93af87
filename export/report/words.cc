// SPDX-License-Identifier: Apache-2.0
#include "export/report/words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/text.h"

namespace syncline::report {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool StayTogether(std::string_view word, std::string_view next) {
  if (word.empty() || next.empty()) return false;
  if (word == "±" || next == "±" || word == "rank") return true;
  if (word.front() == '[' && word.back() == ',') return true;
  if (!IsDigit(word.back())) return false;
  if (IsDigit(next.front())) return true;
  const std::string_view unit = next.substr(0, next.find_last_not_of(",;:.)") + 1);
  return unit == "ns" || unit == "µs" || unit == "ms" || unit == "s" || unit == "min" ||
         unit == "%";
}

}  // namespace

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::string_view last;
  for (const absl::string_view split : absl::StrSplit(AbslView(text), ' ', absl::SkipEmpty())) {
    const std::string_view word = StdView(split);
    if (!words.empty() && StayTogether(last, word)) {
      absl::StrAppend(&words.back(), " ", split);
    } else {
      words.emplace_back(word);
    }
    last = word;
  }
  return words;
}

}  // namespace syncline::report
