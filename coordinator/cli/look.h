// SPDX-License-Identifier: Apache-2.0
// Asks agents where their processes stand: `syncline stacks`, and `why` and `record` behind a
// window in which no step ended.
#ifndef SYNCLINE_COORDINATOR_CLI_LOOK_H_
#define SYNCLINE_COORDINATOR_CLI_LOOK_H_

#include <filesystem>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/why/no_step.h"
#include "coordinator/cli/context.h"
#include "coordinator/recording/recording.h"
#include "coordinator/stacks/standstill.h"
#include "coordinator/stacks/verdict.h"

namespace syncline::cli {

// Of all nodes at once, in their order.
std::vector<stacks::NodeLook> LookAll(const Context& context,
                                      const std::vector<fleet::Member>& members,
                                      const v1::StacksRequest& request);

// Looks at the nodes of the recording that was just made into `run`, and keeps what it sees there.
// nullopt: some steps ended in the window, and the job goes on. An error means that the nodes
// cannot be asked; that what was seen cannot be kept is a warning.
absl::StatusOr<std::optional<stacks::KeptLook>> LookAndKeep(const Context& context,
                                                            const analysis::why::NoStep& no_step,
                                                            const std::filesystem::path& run);

// The same behind `record`, which does not read what it records unless that takes but a moment: of
// a job that stands still there is little. nullopt as above, or there is much, or nothing of a
// rank, or the recording itself shows that the job moves, which is then a note.
std::optional<stacks::KeptLook> LookBehindRecord(const Context& context,
                                                 const recording::Recording& recording,
                                                 const std::filesystem::path& run);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_LOOK_H_
