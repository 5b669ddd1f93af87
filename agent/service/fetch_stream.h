// SPDX-License-Identifier: Apache-2.0
// A recording's files as a sequence of FetchChunk: the list, then every file from where the
// coordinator wants it, in chunks with a CRC-32C, and its SHA-256 at the end. No gRPC here.
#ifndef SYNCLINE_AGENT_SERVICE_FETCH_STREAM_H_
#define SYNCLINE_AGENT_SERVICE_FETCH_STREAM_H_

#include <filesystem>
#include <functional>

#include "absl/status/status.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// Calls `write` for each chunk until it returns false (Cancelled) or all is written.
// InvalidArgument: a resume offset beyond a file's end or for no file. DataLoss: a file shrank
// while it was read.
absl::Status StreamRecording(const std::filesystem::path& recording,
                             const v1::FetchRequest& request,
                             const std::function<bool(const v1::FetchChunk&)>& write);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SERVICE_FETCH_STREAM_H_
