// SPDX-License-Identifier: Apache-2.0
// Reads back what the tracer wrote: before a recording starts, that the canaries' events are in the
// files and can be read; after it, what the recording has, and whether that is all of it. LTTng
// reports success for traces that nobody can ever read, so nothing is called complete that was not
// read back. Thread-safe: no state.
#ifndef SYNCLINE_AGENT_RECORDING_TRACE_RESULT_H_
#define SYNCLINE_AGENT_RECORDING_TRACE_RESULT_H_

#include <cstdint>
#include <filesystem>

#include "absl/status/status.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// FailedPrecondition: no event with this number is there, or the metadata beside it is not.
absl::Status FindCanary(const std::filesystem::path& trace, uint64_t nonce);

// Fills in the streams and bytes of the recording in `directory`. `response` has the coverage
// already. It is complete no more, and a complaint says why, when a trace has no metadata, when
// there is no trace of events that were counted, or when the files cannot be looked at.
void AddTraceResult(const std::filesystem::path& directory, v1::StopResponse* response);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_TRACE_RESULT_H_
