// SPDX-License-Identifier: Apache-2.0
// Profiles that a profiler wrote without a recording, one file per rank or per window of a rank,
// packed or not: "rank3.json.gz", "HOST_PID.TIME.pt.trace.json", "HOST.xplane.pb"
// (profile_file.h).
//
// Every file is a node with a clock of its own, unless a name joins them: files that were given
// with the same NAME= are processes of one node with one clock. A file's rank is what the program
// said (PyTorch's distributedInfo), else what its name says; without either it stands under its own
// name. Several files of one rank are windows of it, which must not overlap. Files are placed by
// the wall clocks of their hosts, and how far these are apart is not known.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_PROFILE_FILES_H_
#define SYNCLINE_COORDINATOR_MERGE_PROFILE_FILES_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/merge/inputs.h"

namespace syncline::merge {

// InvalidArgument: no file can be read, two of one rank overlap, or a name is wanted that is none.
absl::StatusOr<OpenedInputs> OpenProfileFiles(const InputOptions& options, const InputList& list);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_PROFILE_FILES_H_
