// SPDX-License-Identifier: Apache-2.0
// Names of tasks as the analysis groups them.
#ifndef SYNCLINE_ANALYSIS_NAMES_H_
#define SYNCLINE_ANALYSIS_NAMES_H_

#include <string>
#include <string_view>

namespace syncline::analysis {

// Every run of digits that stands alone becomes "#": "step 841" and "step 842" are one row. Digits
// that are part of a word ("conv2d", "bf16") stay.
std::string NamePattern(std::string_view name);

// Does a task of this name look like one iteration of a training loop? "step 12", "train_step",
// "ProfilerStep#12", "iteration_3"; not "Optimizer.step#SGD.step".
bool LooksLikeStep(std::string_view name);

// Tasks of this domain are ours or Python's own ("garbage collection"): no part of the program's
// work.
bool IsMark(std::string_view domain);

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_NAMES_H_
