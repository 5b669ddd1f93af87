// SPDX-License-Identifier: Apache-2.0
// How many page faults that need no storage drivers have, and what these take. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_PAGE_FAULTS_H_
#define SYNCLINE_ANALYSIS_WHY_PAGE_FAULTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/why/judged.h"
#include "analysis/why/model.h"
#include "analysis/why/page_faults_model.h"

namespace syncline::analysis::why {

// nullopt: not counted, or not known what a page costs there.
std::optional<PageFaults> PageFaultsOf(const JudgedRank& rank);

// [rank][step]: what each takes of a step, ns, between samples in proportion; empty: not known of
// all ranks.
std::vector<std::vector<int64_t>> PageFaultTimesOf(std::span<const JudgedRank> ranks);

// Of a rank that has certainly more, by more than `limit_ns` a step; else nullopt. `times_ns`: of
// PageFaultTimesOf; `ranks`: the same ranks.
std::optional<MorePageFaults> MoreFaultsOf(const std::vector<std::vector<int64_t>>& times_ns,
                                           size_t rank, int64_t limit_ns,
                                           std::span<const RankSummary> ranks);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_PAGE_FAULTS_H_
