// SPDX-License-Identifier: Apache-2.0
#include "proto/texts.h"

#include <google/protobuf/descriptor.h>

#include <utility>
#include <vector>

namespace syncline {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void RewriteRepeated(Message* message, const FieldDescriptor* field,
                     std::string (*rewrite)(std::string_view)) {
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      RewriteTexts(reflection.MutableRepeatedMessage(message, field, i), rewrite);
    } else {
      const std::string text = reflection.GetRepeatedString(*message, field, i);
      std::string rewritten = rewrite(text);
      if (rewritten != text) {
        reflection.SetRepeatedString(message, field, i, std::move(rewritten));
      }
    }
  }
}

void RewriteOne(Message* message, const FieldDescriptor* field,
                std::string (*rewrite)(std::string_view)) {
  const Reflection& reflection = *message->GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    RewriteTexts(reflection.MutableMessage(message, field), rewrite);
    return;
  }
  const std::string text = reflection.GetString(*message, field);
  std::string rewritten = rewrite(text);
  if (rewritten != text) reflection.SetString(message, field, std::move(rewritten));
}

}  // namespace

void RewriteTexts(Message* message, std::string (*rewrite)(std::string_view)) {
  std::vector<const FieldDescriptor*> fields;
  message->GetReflection()->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_text = field->type() == FieldDescriptor::TYPE_STRING;
    if (!is_text && field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->is_repeated()) {
      RewriteRepeated(message, field, rewrite);
    } else {
      RewriteOne(message, field, rewrite);
    }
  }
}

}  // namespace syncline
