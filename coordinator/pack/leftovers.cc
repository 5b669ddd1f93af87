// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/leftovers.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"

namespace syncline::pack {
namespace {

uint32_t BeginOf(const char* text) {
  uint32_t begin = 0;
  std::memcpy(&begin, text, sizeof begin);
  return begin;
}

uint16_t Fold(uint32_t begin) { return static_cast<uint16_t>((begin * 2654435761u) >> 16); }

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool HasLetter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalpha(static_cast<unsigned char>(c)) || (static_cast<unsigned>(c) & 0x80u);
  });
}

// Whether bytes that spell a short name are one.
bool IsOne(std::string_view bytes, size_t at, size_t size, bool numbers) {
  if (at > 0 && IsWord(bytes[at - 1])) return false;
  const char behind = at + size < bytes.size() ? bytes[at + size] : '\0';
  return numbers ? behind == '\0' : !IsWord(behind);
}

}  // namespace

Leftovers::Leftovers(const Names& originals, const Texts& kept, const Texts& words) {
  for (const auto& [name, kind] : originals) {
    if (name.size() < kShortest || (!HasLetter(name) && kind != "address")) continue;
    kinds_.emplace(name, kind);
    by_begin_[BeginOf(name.data())].push_back(name);
    begins_.set(Fold(BeginOf(name.data())));
  }
  Texts ambiguous;
  const auto note = [&](const std::string& name) {
    ambiguous.insert(name);
    return true;
  };
  for (const Texts* texts : {&kept, &words}) {
    for (const std::string& text : *texts) Scan(text, false, note);
  }
  for (const std::string& name : ambiguous) {
    kinds_.erase(name);
    std::erase(by_begin_[BeginOf(name.data())], name);
  }
  ambiguous_ = ambiguous.size();
}

void Leftovers::Scan(std::string_view bytes, bool numbers, const OnHit& on_hit) const {
  for (size_t at = 0; at + kShortest <= bytes.size(); ++at) {
    const uint32_t begin = BeginOf(bytes.data() + at);
    if (!begins_.test(Fold(begin))) continue;
    const auto found = by_begin_.find(begin);
    if (found == by_begin_.end()) continue;
    for (const std::string& name : found->second) {
      if (bytes.substr(at, name.size()) != name) continue;
      if (name.size() < kAnywhere && !IsOne(bytes, at, name.size(), numbers)) continue;
      if (!on_hit(name)) return;
    }
  }
}

std::optional<std::string> Leftovers::Find(std::string_view bytes, bool numbers) const {
  std::optional<std::string> kind;
  Scan(bytes, numbers, [&](const std::string& name) {
    kind = kinds_.at(name) + " (\"" + name + "\")";
    return false;
  });
  return kind;
}

}  // namespace syncline::pack
