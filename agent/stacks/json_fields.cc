// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/json_fields.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <limits>

#include "common/utf8.h"

namespace syncline::agent {

using Json = nlohmann::json;

const Json* FindField(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string TextOf(const Json* value, size_t bytes_max) {
  if (value == nullptr || !value->is_string()) return "";
  return RepairedUtf8(CutText(*value->get_ptr<const std::string*>(), bytes_max));
}

int64_t NumberOf(const Json* value, int64_t otherwise) {
  if (value == nullptr || !value->is_number_integer()) return otherwise;
  if (value->is_number_unsigned() &&
      value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return otherwise;
  }
  return value->get<int64_t>();
}

uint32_t CountOf(const Json* value) {
  return static_cast<uint32_t>(std::clamp<int64_t>(NumberOf(value, 0), 0, 1 << 30));
}

bool SameFrames(const v1::PythonThreads& a, const v1::PythonThreads& b) {
  return std::equal(a.frames().begin(), a.frames().end(), b.frames().begin(), b.frames().end(),
                    [](const v1::StackFrame& one, const v1::StackFrame& other) {
                      return google::protobuf::util::MessageDifferencer::Equals(one, other);
                    });
}

}  // namespace syncline::agent
