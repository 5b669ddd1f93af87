// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/text.h"
#include "common/utf8.h"

namespace syncline::agent {
namespace {

constexpr size_t kIdBytesMax = 64;
constexpr size_t kPathBytesMax = 1024;
constexpr size_t kPatternBytesMax = 255;  // LTTNG_SYMBOL_NAME_LEN with its NUL
constexpr size_t kLogTextBytesMax = 200;

}  // namespace

absl::Status CheckRecordingId(std::string_view id) {
  const bool valid = !id.empty() && id.size() <= kIdBytesMax && id.front() != '-' &&
                     std::all_of(id.begin(), id.end(), [](char c) {
                       return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
                     });
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Not a recording id: \"", ForLog(id),
                                                 "\"; it has 1 to 64 of a-z, 0-9 and \"-\""));
}

bool IsFetchablePath(std::string_view path) {
  if (path.empty() || path.size() > kPathBytesMax || path.find('\0') != std::string_view::npos) {
    return false;
  }
  if (path == "clock.tuples" || path == "node.json" || path == "agent.log") return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(AbslView(path), '/');
  const bool below_ours = parts[0] == "trace" || parts[0] == "processes" || parts[0] == "xspace" ||
                          parts[0] == "kineto" || parts[0] == "evidence" || parts[0] == "vtune";
  if (parts.size() < 2 || !below_ours) return false;
  return std::none_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

absl::Status CheckEventPattern(std::string_view pattern) {
  const size_t colon = pattern.find(':');
  const bool valid =
      colon != std::string_view::npos && colon > 0 && colon + 1 < pattern.size() &&
      pattern.size() <= kPatternBytesMax && std::all_of(pattern.begin(), pattern.end(), [](char c) {
        return absl::ascii_isalnum(c) || c == '_' || c == ':' || c == '*' || c == '-' || c == '.';
      });
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Not an LTTng-UST event pattern: \"",
                                                 ForLog(pattern),
                                                 "\"; write provider:name or provider:*"));
}

std::string ForLog(std::string_view text) {
  return OnlyPrintable(CutText(text, kLogTextBytesMax), '?');
}

}  // namespace syncline::agent
