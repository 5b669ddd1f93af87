// SPDX-License-Identifier: Apache-2.0
// Whether a step's critical path goes through many collectives that take as long whatever they
// carry: one for all of them would take less. Pure.
//
// Worked example: a program averages 100 gradients, one all_reduce each. Those of up to 8 KiB take
// 0.20 ms in the median, those of 32 KiB 0.26, those of 2 MiB 3 ms. Up to 32 KiB all are small. Of
// 0.26 ms 0.20 are taken whatever is carried: joined to one, 90 small ones would take 89 times 0.20
// ms less.
#ifndef SYNCLINE_ANALYSIS_WHY_SMALL_COLLECTIVES_H_
#define SYNCLINE_ANALYSIS_WHY_SMALL_COLLECTIVES_H_

#include <cstddef>
#include <optional>
#include <span>

#include "analysis/why/model.h"
#include "analysis/why/small_collectives_model.h"

namespace syncline::analysis::why {

// `pieces`: of a critical path through `steps` judged steps, which takes `step_ns` a step. Of each
// kind (name, process group) of collective, those of up to 8 KiB say what one takes whatever it
// carries: their median, of at least 20; small are those of sizes that take at most twice as long
// in the median (sizes next to each other together, until there are 5). No more than `most_ns` of a
// step is saved. nullopt: fewer than 8 a step are small, or one for all of each kind would save
// less than 5 % of the step, or not certainly more than 2 % of it and 0.5 ms.
std::optional<SmallCollectives> SmallCollectivesOf(std::span<const PathPiece> pieces, size_t steps,
                                                   int64_t step_ns, int64_t most_ns);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_SMALL_COLLECTIVES_H_
