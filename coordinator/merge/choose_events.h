// SPDX-License-Identifier: Apache-2.0
// What --events means for what was opened.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_CHOOSE_EVENTS_H_
#define SYNCLINE_COORDINATOR_MERGE_CHOOSE_EVENTS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/merge/event_names.h"
#include "coordinator/merge/inputs.h"

namespace syncline::merge {

// Sets which events `inputs` are cut to. InvalidArgument: no event of theirs is called so; the
// message has the names that could be meant.
//
// With `names`, "name:PATTERN" wants the events with such a name (EventNames::Want). An event's own
// name may begin so, too: where both could be meant, the pattern is refused.
absl::Status ChooseEvents(const std::vector<std::string>& patterns, OpenedInputs* inputs,
                          EventNames* names = nullptr);

// Whether `syncline events` needs names: for the ids of what is printed, unless it is `raw`, or for
// a pattern that means names, or may do so because no event is called like it.
bool TakesNames(const std::vector<std::string>& patterns, bool raw, const OpenedInputs& inputs);

// For people: which of `names` could be meant by a pattern that fits none, or what there is.
std::string NamesNear(const std::string& pattern, const std::set<std::string>& names);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_CHOOSE_EVENTS_H_
