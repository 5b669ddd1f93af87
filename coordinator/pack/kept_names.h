// SPDX-License-Identifier: Apache-2.0
// Which names a redacted recording keeps: those that come from a framework or from Syncline itself,
// and not from whoever wrote or ran the job. The analysis needs them, and they tell nothing of the
// job but that it uses that framework. docs/guide.md states the rule for users.
//
// Pure.
#ifndef SYNCLINE_COORDINATOR_PACK_KEPT_NAMES_H_
#define SYNCLINE_COORDINATOR_PACK_KEPT_NAMES_H_

#include <cstddef>
#include <string_view>

namespace syncline::pack {

// How many of the first bytes of a task's, domain's, thread's, ... name stay as they are:
//   "aten::conv2d"                                     all of them
//   "autograd::engine::evaluate_function: MyBackward"  up to "MyBackward"
//   "Optimizer.step#MySgd.step"                        up to "MySgd.step"
//   "load shard"                                       0
size_t KeptPrefix(std::string_view name);

// A word (letters only) that stays in any name or path because it means the same everywhere:
// "step", "optimizer", "worker", "python".
bool IsKeptWord(std::string_view word);

// How many of the last bytes of a word stay: those that make a name a step's or a derivative's,
// "trainStep" -> 4, "MyBackward" -> 8.
size_t KeptEnding(std::string_view word);

}  // namespace syncline::pack

#endif  // SYNCLINE_COORDINATOR_PACK_KEPT_NAMES_H_
