// SPDX-License-Identifier: Apache-2.0
// Values of JSON that somebody else wrote, a process or py-spy: whatever it is, reading it is safe.
#ifndef SYNCLINE_AGENT_STACKS_JSON_FIELDS_H_
#define SYNCLINE_AGENT_STACKS_JSON_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

inline constexpr size_t kJsonTextBytesMax = 1024;

// Null: `object` is no object, or has no such key.
const nlohmann::json* FindField(const nlohmann::json& object, const char* key);

// `value` may be null in these. Valid UTF-8, cut to `bytes_max`; empty: no text.
std::string TextOf(const nlohmann::json* value, size_t bytes_max = kJsonTextBytesMax);
// `otherwise`: no integer, or none that int64_t holds.
int64_t NumberOf(const nlohmann::json* value, int64_t otherwise);
// From 0 to 2^30; 0: no integer.
uint32_t CountOf(const nlohmann::json* value);

bool SameFrames(const v1::PythonThreads& a, const v1::PythonThreads& b);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_STACKS_JSON_FIELDS_H_
