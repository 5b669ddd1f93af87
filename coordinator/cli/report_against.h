// SPDX-License-Identifier: Apache-2.0
// syncline report A --against B: what changed between recordings, traces or profiles of any kind.
#ifndef SYNCLINE_COORDINATOR_CLI_REPORT_AGAINST_H_
#define SYNCLINE_COORDINATOR_CLI_REPORT_AGAINST_H_

#include <string>
#include <vector>

#include "coordinator/cli/context.h"
#include "coordinator/merge/merge.h"

namespace syncline::cli {

struct ReportAgainstArguments {
  merge::ReportOptions now;         // `step` and how inputs are read hold for all
  std::vector<std::string> before;  // at least one: recordings, or directories of the same kind
  bool json = false;
  bool full = false;
};

// Prints the comparison. kIncomplete: not compared, or something is missing in a recording.
int ReportAgainst(const Context& context, const ReportAgainstArguments& arguments);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_REPORT_AGAINST_H_
