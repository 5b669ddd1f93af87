// SPDX-License-Identifier: Apache-2.0
// The texts of a message. Protobuf refuses a message with a text that is not UTF-8, as a whole and
// only at the receiver: whoever sends or stores one rewrites its texts first. Thread-safe: no
// state.
#ifndef SYNCLINE_PROTO_TEXTS_H_
#define SYNCLINE_PROTO_TEXTS_H_

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace syncline {

// Puts rewrite(text) in the place of every text of the message and of those in it; bytes stay.
void RewriteTexts(google::protobuf::Message* message, std::string (*rewrite)(std::string_view));

}  // namespace syncline

#endif  // SYNCLINE_PROTO_TEXTS_H_
