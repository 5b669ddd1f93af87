// SPDX-License-Identifier: Apache-2.0
// `merge --format ctf`: the inputs' traces again, with corrected timestamps (export/ctf).
#ifndef SYNCLINE_COORDINATOR_MERGE_WRITE_CTF_H_
#define SYNCLINE_COORDINATOR_MERGE_WRITE_CTF_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/merge/inputs.h"
#include "timeline/cut_sink.h"

namespace syncline::merge {

// Writes out/NODE/..., one directory per trace, named as below the input. Returns what could not be
// copied, one line each. What is written does not depend on the number of threads.
absl::StatusOr<std::vector<std::string>> WriteCtf(const OpenedInputs& inputs,
                                                  timeline::Interval shown, unsigned threads,
                                                  const std::filesystem::path& out);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_WRITE_CTF_H_
