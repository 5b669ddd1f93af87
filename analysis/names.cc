// SPDX-License-Identifier: Apache-2.0
#include "analysis/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/text.h"

namespace syncline::analysis {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

}  // namespace

std::string NamePattern(std::string_view name) {
  std::string pattern;
  for (size_t i = 0; i < name.size();) {
    if (!IsDigit(name[i])) {
      pattern.push_back(name[i++]);
      continue;
    }
    size_t end = i;
    while (end < name.size() && IsDigit(name[end])) ++end;
    const bool in_word =
        (i > 0 && IsLetter(name[i - 1])) || (end < name.size() && IsLetter(name[end]));
    if (in_word) {
      pattern.append(name.substr(i, end - i));
    } else {
      pattern.push_back('#');
    }
    i = end;
  }
  return pattern;
}

bool LooksLikeStep(std::string_view name) {
  std::string lower = absl::AsciiStrToLower(AbslView(name));
  while (!lower.empty() &&
         (IsDigit(lower.back()) || absl::StrContains(" _-#:.", AbslView({&lower.back(), 1})))) {
    lower.pop_back();
  }
  if (absl::StrContains(lower, "optim")) return false;
  return lower == "iter" || absl::EndsWith(lower, "step") || absl::EndsWith(lower, "iteration") ||
         absl::EndsWith(lower, "_iter");
}

bool IsMark(std::string_view domain) { return domain == "python" || domain == "syncline"; }

}  // namespace syncline::analysis
