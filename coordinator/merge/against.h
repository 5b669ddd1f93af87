// SPDX-License-Identifier: Apache-2.0
// What `syncline report --against` compares, read from recordings, traces or profiles.
//
// An input is read twice: for its report, and then, with what steps it has known, for the sums.
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_AGAINST_H_
#define SYNCLINE_COORDINATOR_MERGE_AGAINST_H_

#include "absl/status/statusor.h"
#include "analysis/against/recording_sums.h"
#include "analysis/report.h"
#include "coordinator/merge/merge.h"

namespace syncline::merge {

// `report`: what MakeReport(options) gave.
absl::StatusOr<analysis::against::Recording> ReadSums(const ReportOptions& options,
                                                      const analysis::Report& report,
                                                      analysis::against::Per per);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_AGAINST_H_
