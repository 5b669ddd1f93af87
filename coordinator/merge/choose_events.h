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
#include "coordinator/merge/inputs.h"

namespace syncline::merge {

// Sets which events `inputs` are cut to. InvalidArgument: no event of theirs is called so; the
// message has the names that could be meant.
absl::Status ChooseEvents(const std::vector<std::string>& patterns, OpenedInputs* inputs);

// For people: which of `names` could be meant by a pattern that fits none, or what there is.
std::string NamesNear(const std::string& pattern, const std::set<std::string>& names);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_CHOOSE_EVENTS_H_
