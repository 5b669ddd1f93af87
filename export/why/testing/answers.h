// SPDX-License-Identifier: Apache-2.0
// Answers of `syncline why` made by hand, for tests of how they are written.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_TESTING_ANSWERS_H_
#define SYNCLINE_EXPORT_WHY_TESTING_ANSWERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::report::testing {

inline constexpr int64_t kTenth = 100'000;  // ns: of a ms, as the table is printed

analysis::why::MeanEstimate Tenths(int64_t est, int64_t lo, int64_t hi);
// `parts` in tenths of a ms, by Part.
analysis::why::RankSummary RankOf(int32_t rank, const std::string& node,
                                  const analysis::why::PartTable& parts);
// Two ranks, no verdict yet.
analysis::why::Answer TwoRanks();
// Of rank 1 of two, without a cause yet.
analysis::why::RankFinding LateRank();
analysis::why::Cause Throttled();
analysis::why::Cause CauseOf(analysis::why::Part part, const analysis::why::MeanEstimate& amount);
// Rank 1 of two is late: its control group throttles it.
analysis::why::Answer ThrottledAnswer();
// With one rank that is late, for `causes`.
analysis::why::Answer AnswerWith(std::vector<analysis::why::Cause> causes);
// 64 ranks on 8 nodes; rank 40 is throttled.
analysis::why::Answer ManyRanks();
// Four stalls that this rank makes.
analysis::why::Stalls StallsOf(size_t rank);
// The text of an answer with each paragraph on one line: wrapping may break a sentence anywhere.
std::string FlatText(const analysis::why::Answer& answer);
// Answers that fill every place where a name is printed.
std::vector<analysis::why::Answer> AnswersWithNames(const std::string& name);

}  // namespace syncline::report::testing

#endif  // SYNCLINE_EXPORT_WHY_TESTING_ANSWERS_H_
