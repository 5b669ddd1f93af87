// SPDX-License-Identifier: Apache-2.0
// The files of a trace on this node: their sums, and whether the canary's event is among them.
// Thread-safe: no state.
#ifndef SYNCLINE_AGENT_RECORDING_TRACE_FILES_H_
#define SYNCLINE_AGENT_RECORDING_TRACE_FILES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// Bytes of all regular files below `directory`; links are not followed. 0 when it does not exist.
uint64_t DirectoryBytes(const std::filesystem::path& directory);

// Whether the eight bytes of `nonce` stand in a stream file below `trace`. At most the first 64 MiB
// of each file are looked at: the canary runs before anything else is recorded.
bool TraceContains(const std::filesystem::path& trace, uint64_t nonce);

// Every stream of every trace below `trace`, from its packet headers. What cannot be read is left
// out and said in `complaints`.
std::vector<v1::StreamResult> SummarizeTrace(const std::filesystem::path& trace,
                                             std::vector<v1::Complaint>* complaints);

// Files that may be fetched, sorted by path, relative to the recording's directory.
std::vector<v1::FileEntry> ListFetchable(const std::filesystem::path& recording);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_TRACE_FILES_H_
