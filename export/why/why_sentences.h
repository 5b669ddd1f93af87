// SPDX-License-Identifier: Apache-2.0
// The sentences of the answer. Each is a claim that must be true for every job, and that a test can
// make false. What was not measured is called "not measured".
//
// Names come from the job: they are cut, and lose their control characters (export/report/table.h).
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_WHY_SENTENCES_H_
#define SYNCLINE_EXPORT_WHY_WHY_SENTENCES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/why/model.h"

namespace syncline::report {

// Of the path of a control group, in columns: its end tells groups apart, and paths of Kubernetes
// are long.
inline constexpr size_t kGroupColumns = 240;

// Of where a rank stood: "function (file:line)".
inline constexpr size_t kPlaceColumns = 160;

// Of a loader's worker: blocked for a smaller part of its time is not said.
inline constexpr double kLoaderBlockedLeast = 0.2;

// "31.3", in ms; "0.012" where one decimal would hide that it is not nothing.
std::string Ms(int64_t ns);
// The same with "+" above 0.
std::string SignedMs(int64_t ns);
// "[28.9, 33.8]", and "31.3 ms [28.9, 33.8]"; of one value, which has no interval, "31.3 ms".
std::string IntervalText(const analysis::why::MeanEstimate& mean);
std::string WithInterval(const analysis::why::MeanEstimate& mean);

// All parts, those with the most time first.
std::vector<analysis::why::Part> LargestFirst(const analysis::why::PartTable& parts);

// A name of the job, fit for a terminal.
std::string Printed(std::string_view name, size_t columns_max = 60);

// "0.7 CPU"; "not known" without a quota.
std::string CpusText(const analysis::why::Cause& cause);

// "rank 1".
std::string RankName(const analysis::why::Answer& answer,
                     const analysis::why::RankFinding& finding);
std::string LateSentence(const analysis::why::Answer& answer,
                         const analysis::why::RankFinding& finding);
// One paragraph each: the cause with its share, then who or what it is.
std::vector<std::string> CauseSentences(const analysis::why::Answer& answer,
                                        const analysis::why::RankFinding& finding,
                                        const analysis::why::Cause& cause);
// The memory of the rank's control group was full often enough to be said.
bool IsFullOften(const analysis::why::Cause& cause);
// The same of a cause by which the rank computes longer; `share`: what it takes of the lead.
std::vector<std::string> ComputeSentences(const analysis::why::Answer& answer,
                                          const analysis::why::Cause& cause,
                                          const std::string& share);
// Page faults take enough of a rank's step to be said; and what is then said.
bool PageFaultsAreMuch(const analysis::why::Answer& answer);
std::vector<std::string> MemorySentences(const analysis::why::Answer& answer);
// Of a late rank that has more of them.
std::string FaultSentence(const analysis::why::Answer& answer,
                          const analysis::why::MorePageFaults& faults);
// Of those that are waited for (all, where nobody is late) the rank of which a hypervisor takes
// most, and enough to be said. nullptr: none.
const analysis::why::RankSummary* MostStolen(const analysis::why::Answer& answer);
// The same of what a hypervisor took.
std::vector<std::string> StealSentences(const analysis::why::Answer& answer);
std::string StealSentence(const analysis::why::Answer& answer,
                          const analysis::why::MoreStealTime& steal);
// "2.60 GHz".
std::string ClockText(int64_t khz);
// Of a late rank whose CPU is clocked lower.
std::string ClockSentence(const analysis::why::Answer& answer,
                          const analysis::why::SlowerClock& clock);
// Of one that is named for fewer threads: it may use fewer CPUs than any other. Empty: not so, or
// not known.
std::string AllowedSentence(const analysis::why::Answer& answer,
                            const analysis::why::RankFinding& finding);
// Below it nothing is called late; nor a cause, which of a rank that is not late must be twice
// that.
int64_t LimitNs(const analysis::why::Answer& answer, const analysis::why::RankFinding& finding);
// Of a finding whose causes do not explain most of it: other work, or nothing that was measured.
std::vector<std::string> UnknownSentences(const analysis::why::Answer& answer,
                                          const analysis::why::RankFinding& finding);
// What the causes leave of the lead, where that is not little.
std::vector<std::string> RemainderSentences(const analysis::why::Answer& answer,
                                            const analysis::why::RankFinding& finding);
// What throttled the rank, or kept it waiting, can be compared with the other ranks'.
bool IsCompared(const analysis::why::RankFinding& finding);
// Most of what is not explained is sleep in the rank's own work.
bool SleepsAtHome(const analysis::why::Answer& answer, const analysis::why::RankFinding& finding);
// Who ran meanwhile; `answer` has an everybody_taker.
std::string EverybodyTakerSentence(const analysis::why::Answer& answer);
// A late rank sleeps while the lock of its Python interpreter is kept: where it stands is no hint.
bool IsHeldUpByItsThreads(const analysis::why::Answer& answer,
                          const analysis::why::RankFinding& finding);
// Where the ranks stood in host code; `answer` has an everybody_stood.
std::string EverybodyStoodSentence(const analysis::why::Answer& answer);
// What was looked at and is not the cause; what is not certain enough to be one.
std::vector<std::string> LookedAtSentences(const analysis::why::Answer& answer,
                                           const analysis::why::RankFinding& finding);
std::string CostSentence(const analysis::why::Answer& answer,
                         const analysis::why::RankFinding& finding);
std::string OrderSentence(const analysis::why::Answer& answer,
                          const analysis::why::RankFinding& finding);
std::string NobodySentence(const analysis::why::Answer& answer);
std::string NotJudgedSentence(const analysis::why::Answer& answer);
std::string EverybodySentence(const analysis::why::Answer& answer, analysis::why::Part part);
// "1 234 events lost".
std::string LostSentence(const analysis::why::Answer& answer);
// What would overturn the answer.
std::vector<std::string> MarginSentences(const analysis::why::Answer& answer);
std::vector<std::string> TrustSentences(const analysis::why::Answer& answer);
// One concrete thing for each cause.
std::vector<std::string> NextSentences(const analysis::why::Answer& answer);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_WHY_SENTENCES_H_
