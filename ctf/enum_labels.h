// SPDX-License-Identifier: Apache-2.0
// Labels of enumerations, by value.
#ifndef SYNCLINE_CTF_ENUM_LABELS_H_
#define SYNCLINE_CTF_ENUM_LABELS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctf/metadata.h"

namespace syncline::ctf {

// Which label a value has. Ranges that overlap are cut, and the pieces carry all labels: "A, B".
class EnumLabels {
 public:
  explicit EnumLabels(const Type& type);
  std::string_view Find(uint64_t value) const;  // empty: none

 private:
  struct Range {
    uint64_t low = 0;  // order of unsigned numbers; signed ones are shifted by `bias_`
    uint64_t high = 0;
    std::string label;
  };
  uint64_t bias_ = 0;
  std::vector<Range> ranges_;  // disjoint, sorted
};

}  // namespace syncline::ctf

#endif  // SYNCLINE_CTF_ENUM_LABELS_H_
