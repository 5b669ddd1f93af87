// SPDX-License-Identifier: Apache-2.0
// The lines of this folder's text files, and the words of one.
//
// Not thread-safe.
#ifndef SYNCLINE_EVIDENCE_WORDS_H_
#define SYNCLINE_EVIDENCE_WORDS_H_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "evidence/write.h"

namespace syncline::evidence {

inline constexpr int64_t kTimeMaxNs = int64_t{1} << 53;  // 104 days; sums and multiples fit

// One line's words. A missing or wrong one makes the whole line wrong.
class Words {
 public:
  explicit Words(std::string_view line) : left_(line) {}

  bool wrong() const { return wrong_; }
  void Fail() { wrong_ = true; }
  bool More() const { return !left_.empty(); }

  std::string_view Word() {
    if (left_.empty()) {
      wrong_ = true;
      return {};
    }
    const size_t blank = left_.find(' ');
    const std::string_view word = left_.substr(0, blank);
    left_ = blank == std::string_view::npos ? std::string_view{} : left_.substr(blank + 1);
    return word;
  }
  std::string Text() {
    const std::string_view word = Word();
    wrong_ |= !word.starts_with('=');
    return Unescaped(word);
  }
  template <class T>
  T Number(int base = 10) {
    const std::string_view word = Word();
    T value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
    wrong_ |= error != std::errc() || end != word.data() + word.size();
    return value;
  }
  // A time, or an amount of time: neither negative nor so large that sums overflow.
  int64_t Ns() {
    const auto ns = Number<int64_t>();
    wrong_ |= ns < 0 || ns > kTimeMaxNs;
    return ns;
  }
  uint32_t Index(size_t below) {
    const auto index = Number<uint32_t>();
    wrong_ |= index >= below;
    return index;
  }
  void Bracket(int64_t* at_ns, int64_t* until_ns) {
    *at_ns = Ns();
    *until_ns = Ns();
    wrong_ |= *until_ns < *at_ns;
  }
  // The line has all its words, and no more.
  bool Whole() const { return !wrong_ && !More(); }
  template <class T>
  void Keep(T value, std::vector<T>* values) {
    if (Whole()) {
      values->push_back(std::move(value));
    } else {
      wrong_ = true;
    }
  }
  // The same, of at most so many. false: it is not kept.
  template <class T>
  bool Keep(T value, std::vector<T>* values, size_t most) {
    if (values->size() >= most) return false;
    Keep(std::move(value), values);
    return !wrong_;
  }

 private:
  std::string_view left_;
  bool wrong_ = false;
};

// The words "NAME AMOUNT" up to the line's end: `names` by number of Value. Those whose name is not
// known are of a later version.
template <class Value, class Amount, class Names, class Values>
void TakeNamed(const Names& names, Words* words, Values* values) {
  while (words->More() && !words->wrong()) {
    const std::string_view name = words->Word();
    const auto amount = words->Number<Amount>();
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) continue;
    values->Set(static_cast<Value>(known - names.begin()), amount);
  }
}

// The same words of what is not absent, each behind a blank.
template <class Value, class Names, class Values>
void AppendNamed(const Names& names, const Values& values, std::string* out) {
  for (size_t i = 0; i < names.size(); ++i) {
    const auto amount = values.Get(static_cast<Value>(i));
    if (amount.has_value()) absl::StrAppend(out, " ", names[i], " ", *amount);
  }
}

// Calls back for each line that has an end. One without was cut: what it says may be a part of a
// number.
template <class Take>
void ForEachLine(std::string_view text, Take take) {
  for (size_t end; (end = text.find('\n')) != std::string_view::npos;) {
    take(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

// What Parser makes of the lines behind `head`. InvalidArgument: it begins with something else.
template <class Parser>
auto ParseText(std::string_view text, std::string_view head)
    -> absl::StatusOr<decltype(Parser().Finish())> {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || text.substr(0, end) != head) {
    return absl::InvalidArgumentError(
        absl::StrCat("it does not begin with \"", std::string(head),
                     "\": it is damaged, or of another version of Syncline"));
  }
  Parser parser;
  ForEachLine(text.substr(end + 1), [&](std::string_view line) { parser.Line(line); });
  return parser.Finish();
}

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_WORDS_H_
