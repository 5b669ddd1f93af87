#include "export/report/units.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncline::report {

std::string Time(int64_t ns) {
  if (ns == 0) return "0";
  const double value = static_cast<double>(ns);
  const double size = std::fabs(value);
  if (size < 1e3) return absl::StrFormat("%d ns", ns);
  const bool micro = size < 999.95e3;
  const bool milli = !micro && size < 999.95e6;
  const double scaled = value / (micro ? 1e3 : milli ? 1e6 : 1e9);
  const char* unit = micro ? "µs" : milli ? "ms" : "s";
  const int digits = std::fabs(scaled) < 9.995 ? 2 : 1;
  return absl::StrFormat("%.*f %s", unit[0] == 's' ? 3 : digits, scaled, unit);
}

std::string SignedTime(int64_t ns) { return absl::StrCat(ns > 0 ? "+" : "", Time(ns)); }

std::string WithBound(const std::optional<DurationEstimate>& estimate) {
  if (!estimate.has_value()) return "-";
  if (!estimate->bounded()) return SignedTime(estimate->est_ns) + " ± unknown";
  return absl::StrCat(SignedTime(estimate->est_ns), " ± ", Time(estimate->bound_ns()));
}

std::string Count(uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
  return digits;
}

std::string Plural(uint64_t count, const char* singular) {
  return absl::StrCat(Count(count), " ", singular, count == 1 ? "" : "s");
}

}  // namespace syncline::report
