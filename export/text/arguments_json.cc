// SPDX-License-Identifier: Apache-2.0
#include "export/text/arguments_json.h"

#include "absl/strings/str_cat.h"
#include "export/text/json_text.h"

namespace syncline::text {
namespace {

using PutText = absl::FunctionRef<void(timeline::TextId, std::string*)>;

void AppendValue(const timeline::Argument& argument, PutText put_text, std::string* out) {
  switch (argument.kind) {
    case timeline::Argument::Kind::kInt:
      absl::StrAppend(out, argument.i);
      break;
    case timeline::Argument::Kind::kUint:
      absl::StrAppend(out, argument.u);
      break;
    case timeline::Argument::Kind::kReal:
      AppendJsonReal(argument.d, out);
      break;
    case timeline::Argument::Kind::kText:
      put_text(argument.text, out);
      break;
  }
}

}  // namespace

bool AppendArgumentsJson(std::span<const timeline::Argument> arguments, PutText put_text,
                         std::string* out) {
  for (size_t i = 0; i < arguments.size();) {
    const timeline::TextId key = arguments[i].key;
    size_t end = i + 1;
    while (end < arguments.size() && arguments[end].key == key) ++end;
    if (i > 0) out->push_back(',');
    if (key == timeline::kNoText) {
      out->append("\"metadata\"");
    } else {
      put_text(key, out);
    }
    const bool is_array = end != i + 1;
    out->append(is_array ? ":[" : ":");
    for (bool first = true; i < end; ++i, first = false) {
      if (!first) out->push_back(',');
      AppendValue(arguments[i], put_text, out);
    }
    if (is_array) out->push_back(']');
  }
  return !arguments.empty();
}

}  // namespace syncline::text
