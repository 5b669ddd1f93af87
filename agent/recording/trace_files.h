// SPDX-License-Identifier: Apache-2.0
// The files of a trace on this node: their sums, whether they can be read, and whether the canary's
// event is among them.
// Thread-safe: no state.
#ifndef SYNCLINE_AGENT_RECORDING_TRACE_FILES_H_
#define SYNCLINE_AGENT_RECORDING_TRACE_FILES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// A directory that cannot be listed to its end is an error everywhere here, never an empty one.

// Bytes of all regular files below `directory`; links are not followed. 0 when it does not exist.
absl::StatusOr<uint64_t> DirectoryBytes(const std::filesystem::path& directory);

// Whether the eight bytes of `nonce` stand in a stream file below `trace`. At most the first 64 MiB
// of each file are looked at: the canary runs before anything else is recorded.
absl::StatusOr<bool> TraceContains(const std::filesystem::path& trace, uint64_t nonce);

// Gives names in UTF-8 to what is below `directory`: LTTng makes names of folders from those of
// processes, which are any bytes, and messages carry names.
void RepairFileNames(const std::filesystem::path& directory);

// What LTTng has written of these users, where each has buffers of his own (ust/uid).
void RemoveTracesOf(const std::vector<uint32_t>& users, const std::filesystem::path& trace);

// The directories at or below `trace` that hold streams or a metadata file, sorted.
absl::StatusOr<std::vector<std::filesystem::path>> TraceDirectories(
    const std::filesystem::path& trace);

// Whether the events of one such directory can be read: DataLoss when the metadata, which says what
// the bytes mean, is not there, is empty or is not whole. Only its text is read, no stream.
absl::Status CheckMetadata(const std::filesystem::path& directory);

struct TraceSummary {
  std::vector<v1::StreamResult> streams;
  std::vector<v1::Complaint> complaints;  // what cannot be read; it is not among the streams
  bool readable = true;                   // every trace directory has its metadata
};

// Every stream of every trace below `trace`, from its packet headers.
absl::StatusOr<TraceSummary> SummarizeTrace(const std::filesystem::path& trace);

// Files that may be fetched, sorted by path, relative to the recording's directory.
absl::StatusOr<std::vector<v1::FileEntry>> ListFetchable(const std::filesystem::path& recording);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_TRACE_FILES_H_
