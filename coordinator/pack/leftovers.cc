// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/leftovers.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "coordinator/pack/name_shape.h"
#include "coordinator/pack/pseudonyms.h"
#include "coordinator/pack/public_names.h"

namespace syncline::pack {
namespace {

constexpr size_t kShortest = 4;
constexpr size_t kShortestInNumbers = 6;
constexpr size_t kAnywhere = 8;
constexpr size_t kContext = 512;  // how far around a name is looked at

uint32_t BeginOf(const char* text) {
  uint32_t begin = 0;
  std::memcpy(&begin, text, sizeof begin);
  return begin;
}

uint16_t Fold(uint32_t begin) { return static_cast<uint16_t>((begin * 2654435761u) >> 16); }

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// What public names consist of.
bool IsOfName(char c) {
  return IsWord(c) || std::string_view(": #.()<>").find(c) != std::string_view::npos;
}

// "torch::autograd" in "torch::autograd::AccumulateGrad".
bool IsInPublicName(std::string_view bytes, size_t begin, size_t end) {
  for (size_t i = 0; i < kContext && begin > 0 && IsOfName(bytes[begin - 1]); ++i) --begin;
  for (size_t i = 0; i < kContext && end < bytes.size() && IsOfName(bytes[end]); ++i) ++end;
  return IsPublicName(bytes.substr(begin, end - begin));
}

// "accelerator initialised" in "accelerator initialised: npu", of which that part stays.
bool IsInKeptBeginning(std::string_view bytes, size_t at, std::string_view name) {
  for (const std::string_view kept : KeptBeginnings()) {
    for (size_t i = kept.find(name); i != kept.npos; i = kept.find(name, i + 1)) {
      if (i <= at && bytes.substr(at - i, kept.size()) == kept) return true;
    }
  }
  return false;
}

// Whether bytes that spell a name are one.
bool IsOne(std::string_view bytes, size_t at, size_t size, bool numbers) {
  size_t begin = at;
  size_t end = at + size;
  if (numbers && size < kShortestInNumbers) return false;
  if (size < kAnywhere) {
    if (begin > 0 && IsWord(bytes[begin - 1])) return false;
    const char behind = end < bytes.size() ? bytes[end] : '\0';
    if (numbers ? behind != '\0' : IsWord(behind)) return false;
  }
  for (size_t i = 0; i < kContext && begin > 0 && IsWord(bytes[begin - 1]); ++i) --begin;
  for (size_t i = 0; i < kContext && end < bytes.size() && IsWord(bytes[end]); ++i) ++end;
  return !IsVocabulary(bytes.substr(begin, end - begin)) && !IsInPublicName(bytes, at, at + size) &&
         !IsInKeptBeginning(bytes, at, bytes.substr(at, size));
}

}  // namespace

bool IsSought(std::string_view name) {
  const bool has_letter = std::any_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalpha(static_cast<unsigned char>(c)) ||
           static_cast<unsigned char>(c) >= 128;
  });
  // What is public would be found in each pack.
  if (IsVocabulary(name) || IsPublicName(name) || IsOurEvent(name)) return false;
  return name.size() >= kShortest && (has_letter || IsIpAddress(name) || IsUuid(name));
}

Leftovers::Leftovers(const std::set<std::string, std::less<>>& originals) {
  for (const std::string& name : originals) {
    if (!IsSought(name)) continue;
    names_.insert(name);
    lengths_[BeginOf(name.data())].push_back(name.size());
    begins_.set(Fold(BeginOf(name.data())));
    longest_ = std::max(longest_, name.size());
  }
  for (auto& [begin, lengths] : lengths_) {
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
}

std::optional<std::string> Leftovers::Find(std::string_view bytes, bool numbers) const {
  return FindBetween(bytes, 0, bytes.size(), numbers);
}

std::optional<std::string> Leftovers::FindBetween(std::string_view bytes, size_t begin_at,
                                                  size_t end_at, bool numbers) const {
  for (size_t at = begin_at; at < end_at && at + kShortest <= bytes.size(); ++at) {
    const uint32_t begin = BeginOf(bytes.data() + at);
    if (!begins_.test(Fold(begin))) continue;
    const auto lengths = lengths_.find(begin);
    if (lengths == lengths_.end()) continue;
    for (const size_t length : lengths->second) {
      if (at + length > bytes.size()) break;
      const auto found = names_.find(bytes.substr(at, length));
      if (found != names_.end() && IsOne(bytes, at, length, numbers)) return *found;
    }
  }
  return std::nullopt;
}

LeftoverScan::LeftoverScan(const Leftovers* leftovers, uint64_t numbers_from)
    : leftovers_(*leftovers), numbers_from_(numbers_from) {}

std::optional<std::string> LeftoverScan::LookUntil(size_t end) {
  const uint64_t from = std::max(numbers_from_, buffer_offset_) - buffer_offset_;
  const size_t numbers = std::clamp(static_cast<size_t>(std::min<uint64_t>(from, end)), next_, end);
  auto found = leftovers_.FindBetween(buffer_, next_, numbers, false);
  if (!found.has_value()) found = leftovers_.FindBetween(buffer_, numbers, end, true);
  next_ = end;
  return found;
}

std::optional<std::string> LeftoverScan::Feed(std::string_view piece) {
  buffer_.append(piece);
  // A name that begins further behind may go on in the next piece.
  const size_t ahead = leftovers_.longest() + kContext;
  if (buffer_.size() <= next_ + ahead) return std::nullopt;
  auto found = LookUntil(buffer_.size() - ahead);
  const size_t done = next_ > kContext ? next_ - kContext : 0;
  buffer_.erase(0, done);
  buffer_offset_ += done;
  next_ -= done;
  return found;
}

std::optional<std::string> LeftoverScan::Finish() { return LookUntil(buffer_.size()); }

}  // namespace syncline::pack
