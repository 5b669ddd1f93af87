// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/pseudonyms.h"

#include <arpa/inet.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/text.h"
#include "coordinator/pack/leftovers.h"
#include "coordinator/pack/name_shape.h"
#include "coordinator/pack/public_names.h"

namespace syncline::pack {
namespace {

// No vowels: what is drawn spells no word that a recording may hold.
constexpr std::string_view kLetters = "bcdfghjkmnpqrstvwxz";
constexpr std::string_view kBothCases = "bcdfghjkmnpqrstvwxzBCDFGHJKMNPQRSTVWXZ";
constexpr std::string_view kAllLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kPlain = "bcdfghjkmnpqrstvwxz23456789";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kMarks = "_#.";
// Of names that have nothing else that could differ: "1/2", "1:2" and "1-2" are three...
constexpr std::string_view kAllMarks = "_#.~!@$%&*+=;?^|:/<>()[]{}'`-, ";
// ...and "step 1", "step_1", "step-1", which must go on being steps (analysis::LooksLikeStep()).
constexpr std::string_view kStepMarks = "_#.:- ";
constexpr size_t kPlainMin = 8;
constexpr int kTries = 2000;
constexpr int kTriesForAnother = 16;
constexpr std::string_view kNumberAlone = "number alone";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

bool IsIp4(std::string_view text) {
  in_addr parsed{};
  return ::inet_pton(AF_INET, std::string(text).c_str(), &parsed) == 1;
}

bool IsLoopback(std::string_view address) {
  return (address.starts_with("127.") && IsIp4(address)) || address == "::1" || address == "::" ||
         address == "0.0.0.0";
}

}  // namespace

bool IsIpAddress(std::string_view text) {
  in6_addr parsed{};
  return IsIp4(text) || ::inet_pton(AF_INET6, std::string(text).c_str(), &parsed) == 1;
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !absl::ascii_isxdigit(static_cast<unsigned char>(text[i]))) {
      return false;
    }
  }
  return true;
}

Pseudonyms::Random Pseudonyms::SystemRandom() {
  return [pool = std::vector<uint32_t>()](uint32_t below) mutable {
    for (;;) {
      if (pool.empty()) {
        constexpr size_t kAtOnce = 64;  // 256 bytes: given whole, as the kernel promises
        pool.resize(kAtOnce);
        // Without random numbers nothing may be made: not even a guess.
        if (::getrandom(pool.data(), kAtOnce * sizeof(uint32_t), 0) < 0) std::abort();
      }
      const uint32_t drawn = pool.back();
      pool.pop_back();
      // What lies above the last whole multiple would make small numbers likelier.
      const uint64_t whole = (uint64_t{1} << 32) / below * below;
      if (drawn < whole) return drawn % below;
    }
  };
}

Pseudonyms::Pseudonyms(uint32_t ranks, Random random) : ranks_(ranks), random_(std::move(random)) {}

absl::Status Pseudonyms::status() const {
  if (!status_.ok()) return status_;
  for (const std::string& name : originals_) {
    if (IsSought(name) && issued_.count(name) != 0) {
      return absl::AbortedError("a pseudonym is a name of the recording by chance; try again");
    }
  }
  return absl::OkStatus();
}

bool Pseudonyms::IsInPseudonym(std::string_view name) const {
  return std::any_of(issued_.begin(), issued_.end(), [name](const std::string& pseudonym) {
    return pseudonym.find(name) != std::string::npos;
  });
}

std::string Pseudonyms::Draw(std::string_view letters, size_t size) {
  std::string drawn;
  for (size_t i = 0; i < size; ++i) {
    drawn.push_back(letters[random_(static_cast<uint32_t>(letters.size()))]);
  }
  return drawn;
}

std::string Pseudonyms::Unique(std::string_view what, const std::function<std::string()>& make) {
  std::string made;
  for (int i = 0; i < kTries; ++i) {
    made = make();
    if (made_.insert(absl::StrCat(AbslView(what), " ", made)).second) return made;
  }
  if (status_.ok()) {
    status_ = absl::ResourceExhaustedError(
        absl::StrCat("the recording has more different names of ", made.size(),
                     made.size() == 1 ? " byte" : " bytes",
                     " than there are others to stand for "
                     "them"));
  }
  return made;
}

std::string Pseudonyms::Noted(std::string_view original, std::string pseudonym) {
  if (pseudonym != original) {
    originals_.emplace(original);
    issued_.insert(pseudonym);
  }
  return pseudonym;
}

std::string Pseudonyms::Plain(std::string_view text) {
  if (text.empty()) return "";
  const auto known = plain_.find(text);
  if (known != plain_.end()) return known->second;
  std::string made = Unique("plain", [&] {
    return absl::StrCat(Draw(kLetters, 1), Draw(kPlain, std::max(text.size(), kPlainMin) - 1));
  });
  return plain_[std::string(text)] = Noted(text, std::move(made));
}

std::string Pseudonyms::Word(std::string_view word) {
  return IsSchemaWord(word) ? std::string(word) : Plain(word);
}

std::string Pseudonyms::Sentence(std::string_view sentence) {
  if (sentence.empty()) return "";
  const auto known = sentences_.find(sentence);
  if (known != sentences_.end()) return known->second;
  originals_.emplace(sentence);
  return sentences_[std::string(sentence)] =
             absl::StrCat("(sentence ", sentences_.size() + 1, " left out)");
}

std::string Pseudonyms::Number(std::string_view digits) {
  const auto known = numbers_.find(digits);
  if (known != numbers_.end()) return known->second;
  return numbers_[std::string(digits)] = FreeNumber("number", digits);
}

// As many digits. There are as many such numbers as names that ask for one: each can have another.
std::string Pseudonyms::FreeNumber(std::string_view what, std::string_view digits) {
  std::string made = Draw(kDigits, digits.size());
  // Its own only where nothing else is left.
  for (int i = 0; i < kTriesForAnother && made == digits; ++i) made = Draw(kDigits, digits.size());
  // Alone it must not be a rank.
  const bool alone = what == kNumberAlone;
  while ((alone && IsRankList(made)) ||
         !made_.insert(absl::StrCat(AbslView(what), " ", made)).second) {
    for (size_t i = made.size(); i-- > 0;) {
      made[i] = made[i] == '9' ? '0' : static_cast<char>(made[i] + 1);
      if (made[i] != '0') break;
    }
  }
  return made;
}

bool Pseudonyms::IsRankList(std::string_view text) const {
  // "0-3,8": ascending, and no rank that the job does not have.
  int64_t last = -1;
  for (const absl::string_view range : absl::StrSplit(AbslView(text), ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
    if (ends.size() > 2) return false;
    for (const absl::string_view end : ends) {
      constexpr size_t kLongest = 9;
      int64_t rank = 0;
      if (!AllDigits(StdView(end)) || end.size() > kLongest || !absl::SimpleAtoi(end, &rank) ||
          (end.size() > 1 && end[0] == '0') || rank <= last || rank >= ranks_) {
        return false;
      }
      last = rank;
    }
  }
  return true;
}

// One try.
std::string Pseudonyms::NameLike(std::string_view name) {
  const auto shapes = ShapeOf(name);
  // Numbers that stand alone are one in a template, as they are in the tables of a report.
  std::string key;
  std::string key_shapes;
  std::vector<std::string_view> numbers;
  for (size_t i = 0; i < name.size();) {
    size_t end = i + 1;
    if (shapes[i] == Shape::kDigit) {
      while (end < name.size() && shapes[end] == Shape::kDigit) ++end;
      numbers.push_back(name.substr(i, end - i));
    }
    key.push_back(shapes[i] == Shape::kDigit ? '\1' : name[i]);
    key_shapes.push_back(static_cast<char>(shapes[i]));
    i = end;
  }
  const auto letters = std::count(key_shapes.begin(), key_shapes.end(), 'L');
  const bool fixed = key_shapes.find_first_of("LMW") == std::string::npos;
  const std::string_view alphabet = letters == 1   ? kAllLetters
                                    : letters <= 3 ? kBothCases
                                                   : kLetters;
  const bool kept = key_shapes.find('=') != std::string::npos;
  const std::string_view marks = letters > 0 ? kMarks : kept ? kStepMarks : kAllMarks;
  const auto make = [&] {
    std::string made;
    for (size_t i = 0; i < key.size(); ++i) {
      switch (static_cast<Shape>(key_shapes[i])) {
        case Shape::kLetter:
          made += Draw(alphabet, 1);
          break;
        case Shape::kMark:
          made += Draw(marks, 1);
          break;
        case Shape::kInWord:
          made += Draw(kDigits, 1);
          break;
        default:
          made.push_back(key[i]);
      }
    }
    return made;
  };
  // A name may hold the byte that stands for a number here: it is no number there.
  const std::string key_and_shapes = key + key_shapes;
  auto known = templates_.find(key_and_shapes);
  if (known == templates_.end()) {
    known = templates_.emplace(key_and_shapes, fixed ? key : Unique("name", make)).first;
  }
  std::string made;
  size_t number = 0;
  for (const char c : known->second) {
    if (c == '\1') {
      made += Number(numbers[number++]);
    } else {
      made.push_back(c);
    }
  }
  // By chance it means something else: another one, the next time.
  if (!CanStandFor(name, made) && !fixed) templates_.erase(known);
  return made;
}

bool Pseudonyms::CanStandFor(std::string_view name, std::string_view made) const {
  return MeaningOf(made) == MeaningOf(name) && !IsPublicName(made) && !IsRankList(made);
}

std::string Pseudonyms::MakeName(std::string_view name) {
  if (AllDigits(name)) return FreeNumber(kNumberAlone, name);
  for (int i = 0; i < kTries; ++i) {
    std::string made = NameLike(name);
    if (CanStandFor(name, made)) return made;
  }
  if (status_.ok()) {
    status_ = absl::ResourceExhaustedError(
        absl::StrCat("no other name was found for one of ", name.size(), " bytes"));
  }
  return std::string(name.size(), 'x');
}

std::string Pseudonyms::Name(std::string_view name) {
  if (name.empty()) return "";
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  const bool stays = IsPublicName(name) || IsRankList(name);
  return names_[std::string(name)] = stays ? std::string(name) : Noted(name, MakeName(name));
}

std::string Pseudonyms::Ip(std::string_view address) {
  if (address.empty() || IsLoopback(address)) return std::string(address);
  const auto known = addresses_.find(address);
  if (known != addresses_.end()) return known->second;
  if (!IsIpAddress(address)) return Name(address);
  const bool v4 = IsIp4(address);
  std::string made = Unique("address", [&] {
    for (;;) {
      std::string drawn;
      for (const char c : address) {
        const bool hex = absl::ascii_isxdigit(static_cast<unsigned char>(c));
        const std::string digit = Draw(v4 ? kDigits : kHexDigits, 1);
        drawn.push_back(hex ? digit[0] : c);
      }
      if (drawn != address && IsIpAddress(drawn) && !IsLoopback(drawn)) return drawn;
    }
  });
  return addresses_[std::string(address)] = Noted(address, std::move(made));
}

std::string Pseudonyms::Address(std::string_view address) {
  if (address.starts_with("unix:")) return absl::StrCat("unix:/", Plain(address));
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || !AllDigits(address.substr(colon + 1))) {
    return IsIpAddress(address) ? Ip(address) : Plain(address);
  }
  std::string_view host = address.substr(0, colon);
  const std::string port(address.substr(colon));
  if (host.starts_with('[') && host.ends_with(']') &&
      IsIpAddress(host.substr(1, host.size() - 2))) {
    return absl::StrCat("[", Ip(host.substr(1, host.size() - 2)), "]", port);
  }
  return absl::StrCat(IsIpAddress(host) ? Ip(host) : Plain(host), port);
}

std::string Pseudonyms::Uuid(std::string_view uuid) {
  if (!IsUuid(uuid)) return Plain(uuid);
  const std::string lower = absl::AsciiStrToLower(AbslView(uuid));
  const auto known = uuids_.find(lower);
  if (known != uuids_.end()) return known->second;
  std::string made = Unique("uuid", [&] {
    std::string drawn = Draw(kHexDigits, lower.size());
    for (const size_t dash : {8, 13, 18, 23}) drawn[dash] = '-';
    return drawn;
  });
  originals_.emplace(uuid);
  return uuids_[lower] = Noted(lower, std::move(made));
}

uint32_t Pseudonyms::Uid(uint32_t uid) {
  if (uid == 0) return 0;
  const auto known = uids_.find(uid);
  if (known != uids_.end()) return known->second;
  constexpr uint32_t kFirst = 100'000;
  constexpr uint32_t kCount = 900'000;
  uint32_t made = kFirst + random_(kCount);
  while (made == uid || !uids_made_.insert(made).second) made = kFirst + random_(kCount);
  return uids_[uid] = made;
}

}  // namespace syncline::pack
