// SPDX-License-Identifier: Apache-2.0
// The inputs of a comparison, as they were typed.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_CLI_COMPARED_INPUTS_H_
#define SYNCLINE_COORDINATOR_CLI_COMPARED_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace syncline::cli {

// "rank0.json.gz and 7 more".
std::string NameOfInputs(const std::vector<std::string>& inputs);

// One recording given twice would count as two that do not differ; compared with itself it never
// changed, and a nightly check would pass for ever.
absl::Status CheckDistinct(const std::vector<std::string>& now,
                           const std::vector<std::string>& before);

// An error of reading `inputs`, that says which they are.
absl::Status AboutInputs(const absl::Status& error, const std::vector<std::string>& inputs);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_COMPARED_INPUTS_H_
