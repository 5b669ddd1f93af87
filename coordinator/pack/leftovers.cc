// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/leftovers.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "coordinator/pack/pseudonyms.h"
#include "coordinator/pack/public_names.h"

namespace syncline::pack {
namespace {

constexpr size_t kShortest = 4;
constexpr size_t kAnywhere = 8;

uint32_t BeginOf(const char* text) {
  uint32_t begin = 0;
  std::memcpy(&begin, text, sizeof begin);
  return begin;
}

uint16_t Fold(uint32_t begin) { return static_cast<uint16_t>((begin * 2654435761u) >> 16); }

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool IsSought(std::string_view name) {
  const bool has_letter = std::any_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalpha(static_cast<unsigned char>(c)) ||
           static_cast<unsigned char>(c) >= 128;
  });
  // A public word would be found in each pack.
  if (IsVocabulary(name)) return false;
  return name.size() >= kShortest && (has_letter || IsIpAddress(name) || IsUuid(name));
}

// Whether bytes that spell a name are one.
bool IsOne(std::string_view bytes, size_t at, size_t size, bool numbers) {
  size_t begin = at;
  size_t end = at + size;
  if (size < kAnywhere) {
    if (begin > 0 && IsWord(bytes[begin - 1])) return false;
    const char behind = end < bytes.size() ? bytes[end] : '\0';
    if (numbers ? behind != '\0' : IsWord(behind)) return false;
  }
  while (begin > 0 && IsWord(bytes[begin - 1])) --begin;
  while (end < bytes.size() && IsWord(bytes[end])) ++end;
  return !IsVocabulary(bytes.substr(begin, end - begin));
}

}  // namespace

Leftovers::Leftovers(const std::set<std::string, std::less<>>& originals) {
  for (const std::string& name : originals) {
    if (!IsSought(name)) continue;
    by_begin_[BeginOf(name.data())].push_back(name);
    begins_.set(Fold(BeginOf(name.data())));
    ++sought_;
    longest_ = std::max(longest_, name.size());
  }
}

std::optional<std::string> Leftovers::Find(std::string_view bytes, bool numbers) const {
  for (size_t at = 0; at + kShortest <= bytes.size(); ++at) {
    const uint32_t begin = BeginOf(bytes.data() + at);
    if (!begins_.test(Fold(begin))) continue;
    const auto found = by_begin_.find(begin);
    if (found == by_begin_.end()) continue;
    for (const std::string& name : found->second) {
      if (bytes.substr(at, name.size()) == name && IsOne(bytes, at, name.size(), numbers)) {
        return name;
      }
    }
  }
  return std::nullopt;
}

}  // namespace syncline::pack
