// SPDX-License-Identifier: Apache-2.0
// Debian's Abseil has a string_view of its own. Our interfaces use std::string_view; these two
// cross.
#ifndef SYNCLINE_COMMON_TEXT_H_
#define SYNCLINE_COMMON_TEXT_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace syncline {

// For StrCat, StrSplit, SimpleAtoi, ... and the constructors of absl::Status.
inline absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view StdView(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace syncline

#endif  // SYNCLINE_COMMON_TEXT_H_
