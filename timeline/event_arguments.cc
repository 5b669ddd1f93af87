// SPDX-License-Identifier: Apache-2.0
#include "timeline/event_arguments.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "common/utf8.h"

namespace syncline::timeline {
namespace {

// What a viewer gets of a text: one of many megabytes would be held several times over.
constexpr size_t kTextBytesMax = size_t{1} << 16;

std::string MoreOf(std::string_view text) {
  return absl::StrCat("… (", text.size(), " bytes in all)");
}

constexpr const char* kIdParts[] = {"", ".d2", ".d3"};

}  // namespace

void AddArguments(TextId key, std::span<const FieldValue> values, Emitter* emitter,
                  std::vector<Argument>* arguments) {
  for (const FieldValue& value : values) {
    Argument argument;
    argument.key = key;  // an array repeats its key
    const auto put_text = [&](std::string_view text) {
      argument.kind = Argument::Kind::kText;
      argument.text = emitter->Text(text);
    };
    switch (value.type) {
      case FieldType::kReal:
        argument.kind = Argument::Kind::kReal;
        argument.d = value.d;
        break;
      case FieldType::kString:
        if (value.text.size() <= kTextBytesMax) {
          put_text(value.text);
        } else {
          put_text(absl::StrCat(AbslView(CutText(value.text, kTextBytesMax)), MoreOf(value.text)));
        }
        break;
      case FieldType::kBlob:
        put_text(
            absl::StrCat(absl::BytesToHexString(AbslView(value.text.substr(0, kTextBytesMax / 2))),
                         value.text.size() > kTextBytesMax / 2 ? MoreOf(value.text) : ""));
        break;
      case FieldType::kEnum:
        if (!value.text.empty()) {
          put_text(value.text);
          break;
        }
        [[fallthrough]];
      case FieldType::kSigned:
      case FieldType::kUnsigned:
        if (value.type == FieldType::kSigned || value.field->is_signed) {
          argument.kind = Argument::Kind::kInt;
          argument.i = value.s;
        } else {
          argument.kind = Argument::Kind::kUint;
          argument.u = value.u;
        }
        break;
      case FieldType::kArray:
        if (value.elements_left_out() == 0) continue;
        argument.key = emitter->Text(absl::StrCat(value.field->path, "/elements left out"));
        argument.kind = Argument::Kind::kUint;
        argument.u = value.elements_left_out();
        break;
      default:
        continue;
    }
    arguments->push_back(argument);
  }
}

void IdArguments::Add(IttId id, std::vector<Argument>* arguments) {
  if (!id) return;
  const uint64_t numbers[] = {id.d1, id.d2, id.d3};
  const size_t count = id.d3 != 0 ? 3 : id.d2 != 0 ? 2 : 1;
  for (size_t i = 0; i < count; ++i) {
    TextId& text = texts_[i];
    if (text == kNoText) text = emitter_->Text(absl::StrCat(key_, kIdParts[i]));
    Argument& argument = arguments->emplace_back();
    argument.key = text;
    argument.kind = Argument::Kind::kUint;
    argument.u = numbers[i];
  }
}

}  // namespace syncline::timeline
