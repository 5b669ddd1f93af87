// SPDX-License-Identifier: Apache-2.0
// `syncline why` of profiles that Syncline did not record, without its command line.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_WHY_PROFILES_H_
#define SYNCLINE_COORDINATOR_MERGE_WHY_PROFILES_H_

#include "absl/status/statusor.h"
#include "analysis/why/device_model.h"
#include "analysis/why/device_side.h"
#include "coordinator/merge/why.h"

namespace syncline::merge {

// Whether the inputs are profiles. Errors: what ListInputs says of them.
absl::StatusOr<bool> AreProfiles(const InputOptions& options);

// What is missing in them is among the notes. NotFound, DataLoss: no profile that can be read;
// InvalidArgument: no profiles.
absl::StatusOr<analysis::why::DeviceAnswer> ExplainProfiles(const WhyOptions& options);

// The same as one side of a comparison.
absl::StatusOr<analysis::why::DeviceSide> ReadProfileSide(const WhyOptions& options);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WHY_PROFILES_H_
