// SPDX-License-Identifier: Apache-2.0
// How TensorFlow names an operator in its profiles: "model/dense/MatMul:MatMul", the operator and
// its type. Other names have colons too: "jit_train:XLA GPU module", "$array.py:12 add" (Python's
// functions), "std::sort".
#ifndef SYNCLINE_COMMON_TENSORFLOW_NAMES_H_
#define SYNCLINE_COMMON_TENSORFLOW_NAMES_H_

#include <algorithm>
#include <optional>
#include <string_view>

namespace syncline {

struct TensorFlowOperator {
  std::string_view node;
  std::string_view type;
};

inline std::optional<TensorFlowOperator> TensorFlowOperatorOf(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == name.size()) {
    return std::nullopt;
  }
  const TensorFlowOperator found{name.substr(0, colon), name.substr(colon + 1)};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // "Addons>Type" is one of another library's.
  const bool type = std::all_of(found.type.begin(), found.type.end(), [&](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '>';
  });
  const bool starts = is_letter(found.type[0]) || found.type[0] == '_';
  const bool node = found.node[0] != '$' && found.node.find(' ') == std::string_view::npos &&
                    name.find("::") == std::string_view::npos && found.node != "NVTX";
  if (!type || !starts || !node) return std::nullopt;
  return found;
}

}  // namespace syncline

#endif  // SYNCLINE_COMMON_TENSORFLOW_NAMES_H_
