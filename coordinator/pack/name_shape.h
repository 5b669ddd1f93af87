// SPDX-License-Identifier: Apache-2.0
// What the analysis looks at in a name that somebody made up, byte by byte: which bytes of a
// pseudonym must be as they were, and what the others may become (pseudonyms.h has the list).
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_PACK_NAME_SHAPE_H_
#define SYNCLINE_COORDINATOR_PACK_NAME_SHAPE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

namespace syncline::pack {

// Of one byte.
enum class Shape : char {
  kLetter = 'L',  // becomes any letter
  kMark = 'M',    // becomes any mark: beside a number that stands alone, and behind "step"
  kDigit = 'D',   // of a number that stands alone
  kInWord = 'W',  // a digit behind letters that stay: becomes any digit
  kStays = '=',
};

// One for each byte of `name`.
std::basic_string<Shape> ShapeOf(std::string_view name);

// What ShapeOf() lets stand at the beginning of a name.
std::span<const std::string_view> KeptBeginnings();

// What the analysis makes of a name. A pseudonym must have the same.
using Meaning = std::tuple<bool, uint8_t, bool, bool, bool, bool, bool, bool, bool>;
Meaning MeaningOf(std::string_view name);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_NAME_SHAPE_H_
