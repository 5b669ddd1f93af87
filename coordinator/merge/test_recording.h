// SPDX-License-Identifier: Apache-2.0
// Test support: scenarios (timeline/testing/scenario.h) written to disk as CTF, and a whole
// recording made of them, so that merge is tested from bytes to bytes.
#ifndef SYNCLINE_COORDINATOR_MERGE_TEST_RECORDING_H_
#define SYNCLINE_COORDINATOR_MERGE_TEST_RECORDING_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "timeline/testing/scenario.h"

namespace syncline::merge::testing {

// One CTF trace directory with the node's streams; names and threads of its processes are announced
// in it. `wall_offset_ns` is what the trace says REALTIME - MONOTONIC was.
void WriteTrace(const timeline::testing::FakeTrace& trace, const timeline::NodeInput& node,
                int64_t wall_offset_ns, const std::filesystem::path& directory);

// The two-node job as a recording; the worker's wall clock is off by `wall_error_ns`.
void WriteJob(const std::string& recording_id, int64_t wall_error_ns,
              const std::filesystem::path& run);

// Another job on the same two nodes, with the same clocks and window.
void WriteScenario(const std::string& text, const std::string& recording_id, int64_t wall_error_ns,
                   const std::filesystem::path& run);

}  // namespace syncline::merge::testing

#endif  // SYNCLINE_COORDINATOR_MERGE_TEST_RECORDING_H_
