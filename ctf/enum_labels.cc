// SPDX-License-Identifier: Apache-2.0
#include "ctf/enum_labels.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::ctf {
namespace {

constexpr size_t kOverlapMax = 256;  // cutting ranges is quadratic in their number

}  // namespace

EnumLabels::EnumLabels(const Type& type) : bias_(type.is_signed ? uint64_t{1} << 63 : 0) {
  std::vector<Range> all;
  for (const EnumMapping& mapping : type.mappings) {
    all.push_back({mapping.low ^ bias_, mapping.high ^ bias_, mapping.label});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Range& a, const Range& b) { return a.low < b.low; });
  bool overlap = false;
  for (size_t i = 1; i < all.size(); ++i) overlap |= all[i].low <= all[i - 1].high;
  if (!overlap || all.size() > kOverlapMax) {
    ranges_ = std::move(all);
    return;
  }
  std::vector<uint64_t> starts;
  for (const Range& range : all) {
    starts.push_back(range.low);
    if (range.high != std::numeric_limits<uint64_t>::max()) starts.push_back(range.high + 1);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  for (size_t i = 0; i < starts.size(); ++i) {
    Range piece{starts[i],
                i + 1 < starts.size() ? starts[i + 1] - 1 : std::numeric_limits<uint64_t>::max(),
                ""};
    // In the order of the declaration, as other readers print them.
    for (const EnumMapping& mapping : type.mappings) {
      if ((mapping.low ^ bias_) > piece.low || (mapping.high ^ bias_) < piece.high) continue;
      absl::StrAppend(&piece.label, piece.label.empty() ? "" : ", ", mapping.label);
    }
    if (!piece.label.empty()) ranges_.push_back(std::move(piece));
  }
}

std::string_view EnumLabels::Find(uint64_t value) const {
  const uint64_t key = value ^ bias_;
  auto it = std::upper_bound(ranges_.begin(), ranges_.end(), key,
                             [](uint64_t k, const Range& range) { return k < range.low; });
  if (it == ranges_.begin()) return {};
  --it;
  return key <= it->high ? std::string_view(it->label) : std::string_view();
}

}  // namespace syncline::ctf
