// SPDX-License-Identifier: Apache-2.0
// What --from and --to mean for what was opened.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_CUT_H_
#define SYNCLINE_COORDINATOR_MERGE_CUT_H_

#include <optional>

#include "absl/status/status.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "timeline/builder.h"

namespace syncline::merge {

// What the inputs cover: the recording's window; without one, from their first event
// to right behind the last.
std::optional<timeline::Interval> Covered(const OpenedInputs& inputs);

// InvalidArgument when it ends before it begins.
absl::Status CheckRange(const Range& range);

// Sets what `inputs` are cut to. An interval in which nothing was recorded is an error; of one that
// reaches beyond the recording, that part is left out and said.
absl::Status ChooseCut(const Range& range, OpenedInputs* inputs);

// Sets how far before the cut is read. After ChooseCut.
void ChooseLookBack(const LookBack& look_back, OpenedInputs* inputs);

// A timeline shows the little that lies outside of the window, but at an end that was asked for.
// After ChooseCut.
timeline::Interval Shown(const Range& range, const OpenedInputs& inputs);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_CUT_H_
