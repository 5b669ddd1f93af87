// SPDX-License-Identifier: Apache-2.0
// What a recording achieved, for people: start and stop per node with skew ± bound, events, losses.
#ifndef SYNCLINE_COORDINATOR_CLI_RECORD_SUMMARY_H_
#define SYNCLINE_COORDINATOR_CLI_RECORD_SUMMARY_H_

#include <filesystem>
#include <ostream>
#include <string>

#include "clocksync/clock_model.h"
#include "coordinator/cli/context.h"
#include "coordinator/record/recorder.h"
#include "coordinator/recording/recording.h"

namespace syncline::cli {

// When the gate of node `index` was fully open (or closed), on the timeline: the estimate, in an
// interval that contains the whole bracket around writing the gates. Unbounded when the clock is
// unknown.
TimelineEstimate AchievedInstant(const clocksync::ClockModel& model, uint32_t index,
                                 const recording::Gate& gate);

// Prints the summary of `recorded` in `directory`; the exit code that it deserves.
int PrintSummary(const Context& context, const record::Recorded& recorded,
                 const std::filesystem::path& directory);

// The same after a `fetch`: what it brought to what there was `before`, and what is still missing.
int PrintFetchSummary(const Context& context, const recording::Recording& before,
                      const record::Recorded& recorded, const std::filesystem::path& directory);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_RECORD_SUMMARY_H_
