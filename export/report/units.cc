// SPDX-License-Identifier: Apache-2.0
#include "export/report/units.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/duration_text.h"

namespace syncline::report {

std::string Percent(int64_t part, int64_t whole) {
  if (whole <= 0) return "-";
  double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part < whole) percent = std::min(percent, 99.9);
  if (part > 0) percent = std::max(percent, 0.1);
  return absl::StrFormat("%.1f %%", percent);
}

std::string PercentOfPpm(int64_t ppm) {
  constexpr int64_t kPpm = 1'000'000;
  return Percent(ppm, kPpm);
}

std::string WithBound(const std::optional<DurationEstimate>& estimate) {
  if (!estimate.has_value()) return "-";
  if (!estimate->bounded()) return SignedDurationText(estimate->est_ns) + " ± unknown";
  return absl::StrCat(SignedDurationText(estimate->est_ns), " ± ",
                      DurationText(estimate->bound_ns()));
}

std::string Count(uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
  return digits;
}

std::string BytesText(double bytes) {
  return bytes < 1e6 ? absl::StrFormat("%.1f kB", bytes / 1e3)
                     : absl::StrFormat("%.1f MB", bytes / 1e6);
}

std::string Plural(uint64_t count, const char* singular) {
  return absl::StrCat(Count(count), " ", singular, count == 1 ? "" : "s");
}

}  // namespace syncline::report
