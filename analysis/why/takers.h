// SPDX-License-Identifier: Apache-2.0
// Who had the processor while a rank waited for one: whoever gained processor time on the driver's
// processor in the same intervals. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_TAKERS_H_
#define SYNCLINE_ANALYSIS_WHY_TAKERS_H_

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/why/model.h"
#include "analysis/why/samples.h"

namespace syncline::analysis::why {

// The kind of takers that gained most, with the largest of that kind by name; kUnknown where all
// that gained together had less than half of the time that the rank waited. `steps`: what
// Taker::cpu_ns is a mean over. nullopt: the driver itself did not wait, so nobody was looked for.
// `job`: all ranks; other recorded processes on the node belong to other jobs.
std::optional<Taker> TakerOf(std::span<const RankInput> job, const RankInput& rank,
                             int32_t driver_tid, const RankSamples& samples, size_t steps);

// What a process of the rank's node is to the rank. `pid`: as the agent sees it; kUnknown: the
// samples do not have it, so whose child it is is not known.
Taker::Kind KindOfProcess(std::span<const RankInput> job, const RankInput& rank, int32_t pid);

// How long the rank's own loader workers waited for a CPU, of the longest-waiting one: ns of the
// judged steps.
int64_t LoaderRunQueueNs(const RankInput& rank, const RankSamples& samples);

// Of the rank's own loader workers, the part of their samples (0 to 1) that find
// the one blocked in the kernel that is so most often; nullopt: none was sampled often enough.
std::optional<double> LoaderBlocked(const RankInput& rank, const RankSamples& samples);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TAKERS_H_
