// SPDX-License-Identifier: Apache-2.0
#include "common/duration_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncline {
namespace {

std::string ThreeDigits(double value, const char* unit) {
  const double size = std::fabs(value);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f %s", decimals, value, unit);
}

}  // namespace

std::string DurationText(int64_t ns) {
  const double value = static_cast<double>(ns);
  const double size = std::fabs(value);
  if (size < 1e3) return absl::StrCat(ns, " ns");
  if (size < 999.5e3) return ThreeDigits(value / 1e3, "µs");
  if (size < 999.5e6) return ThreeDigits(value / 1e6, "ms");
  if (size < 600e9) return absl::StrFormat("%.3f s", value / 1e9);
  return absl::StrFormat("%.1f min", value / 60e9);
}

std::string SignedDurationText(int64_t ns) {
  return absl::StrCat(ns > 0 ? "+" : "", DurationText(ns));
}

}  // namespace syncline
