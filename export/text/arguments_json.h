// SPDX-License-Identifier: Apache-2.0
// The arguments of a span or an instant as the members of a JSON object: a key that repeats is an
// array, one without a text is "metadata".
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_TEXT_ARGUMENTS_JSON_H_
#define SYNCLINE_EXPORT_TEXT_ARGUMENTS_JSON_H_

#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "timeline/sink.h"

namespace syncline::text {

// `put_text` appends the interned text as JSON, with its quotes. True: something was appended.
bool AppendArgumentsJson(std::span<const timeline::Argument> arguments,
                         absl::FunctionRef<void(timeline::TextId, std::string*)> put_text,
                         std::string* out);

}  // namespace syncline::text

#endif  // SYNCLINE_EXPORT_TEXT_ARGUMENTS_JSON_H_
