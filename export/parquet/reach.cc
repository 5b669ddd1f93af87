// SPDX-License-Identifier: Apache-2.0
#include "export/parquet/reach.h"

#include <algorithm>

namespace syncline::parquet {

std::optional<Reach> Widest(const std::optional<Reach>& a, const std::optional<Reach>& b) {
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  return Reach{std::max(a->lo_ns, b->lo_ns), std::max(a->hi_ns, b->hi_ns)};
}

void PutReach(const std::optional<Reach>& reach, Column* lo, Column* hi) {
  if (reach.has_value()) {
    lo->Int(reach->lo_ns);
    hi->Int(reach->hi_ns);
  } else {
    lo->Null();
    hi->Null();
  }
}

}  // namespace syncline::parquet
