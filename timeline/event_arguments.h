// SPDX-License-Identifier: Apache-2.0
// Fields of events as arguments of spans and instants.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_EVENT_ARGUMENTS_H_
#define SYNCLINE_TIMELINE_EVENT_ARGUMENTS_H_

#include <array>
#include <span>
#include <vector>

#include "common/event_cursor.h"
#include "timeline/emitter.h"
#include "timeline/schema.h"
#include "timeline/sink.h"

namespace syncline::timeline {

// `values` in preorder under `key`, which an array repeats for each element. Long texts are cut,
// and say so.
void AddArguments(TextId key, std::span<const FieldValue> values, Emitter* emitter,
                  std::vector<Argument>* arguments);

// The numbers of ITT ids, under keys like "id" and "id.d2".
class IdArguments {
 public:
  // `key`: a literal.
  IdArguments(Emitter* emitter, const char* key) : emitter_(emitter), key_(key) {}
  // Nothing of no id.
  void Add(IttId id, std::vector<Argument>* arguments);

 private:
  Emitter* emitter_;
  const char* key_;
  std::array<TextId, 3> texts_ = {kNoText, kNoText, kNoText};  // as far as they were used
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_EVENT_ARGUMENTS_H_
