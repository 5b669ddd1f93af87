// The sentences of the answer. Each is a claim that must be true for every job, and that a test can
// make false.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_WHY_SENTENCES_H_
#define SYNCLINE_EXPORT_WHY_WHY_SENTENCES_H_

#include <cstdint>
#include <string>

#include "analysis/why/model.h"

namespace syncline::report {

// "31.3", in ms.
std::string Ms(int64_t ns);

std::string LateSentence(const analysis::why::Answer& answer,
                         const analysis::why::RankFinding& finding);
std::string CauseSentence(const analysis::why::RankFinding& finding,
                          const analysis::why::Cause& cause);
// Of a finding without a cause: other work, or nothing that was measured.
std::string UnknownSentence(const analysis::why::Answer& answer,
                            const analysis::why::RankFinding& finding);
// What was looked at and is not the cause; empty: nothing.
std::string LookedAtSentence(const analysis::why::Answer& answer,
                             const analysis::why::RankFinding& finding);
std::string CostSentence(const analysis::why::Answer& answer,
                         const analysis::why::RankFinding& finding);
std::string OrderSentence(const analysis::why::Answer& answer,
                          const analysis::why::RankFinding& finding);
std::string NobodySentence(const analysis::why::Answer& answer);
std::string NotJudgedSentence(const analysis::why::Answer& answer);
std::string MarginSentence(const analysis::why::Answer& answer);
std::string NextSentence(const analysis::why::Answer& answer);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_WHY_SENTENCES_H_
