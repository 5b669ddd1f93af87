// SPDX-License-Identifier: Apache-2.0
// Whose time a process's is: its rank's, or where there are no ranks, its own.
//
// Thread-safe: no state.
#ifndef SYNCLINE_ANALYSIS_AGAINST_MEMBERS_H_
#define SYNCLINE_ANALYSIS_AGAINST_MEMBERS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/against/recording_sums.h"
#include "analysis/report.h"

namespace syncline::analysis::against {

// All of a report, in order, none twice.
std::vector<Member> MembersOf(const Report& report);

// Its place in `recording.members`; nullopt: it is of no rank, though there are ranks.
std::optional<size_t> MemberOf(const ProcessReport& process, const Recording& recording);

}  // namespace syncline::analysis::against

#endif  // SYNCLINE_ANALYSIS_AGAINST_MEMBERS_H_
