// SPDX-License-Identifier: Apache-2.0
// Brings what a recording left on a node home, whole: every chunk has a CRC, every file a SHA-256;
// an interrupted transfer goes on where it was; a file has its own name only once it is complete
// and verified (before, it is NAME.part). Nothing is deleted on the node here.
//
// The agent is not trusted with paths: only what docs/recording-format.md names is written, only
// below the recording's directory.
#ifndef SYNCLINE_COORDINATOR_COLLECT_FETCH_H_
#define SYNCLINE_COORDINATOR_COLLECT_FETCH_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/fleet/agent_client.h"
#include "coordinator/host/clock.h"
#include "coordinator/recording/recording.h"

namespace syncline::collect {

struct FetchOptions {
  std::string recording_id;
  std::string node;
  fleet::AgentClient::Timeout silence{15'000};
  // Attempts in a row that bring too little before giving up: less than a hundredth of all, within
  // 64 KiB and 64 MiB.
  int attempts_max = 4;
  int64_t attempt_pause_ns = 1'000'000'000;
  // Called from the fetching thread after every chunk.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
  // Free space below a directory; replaced by tests.
  std::function<uint64_t(const std::filesystem::path&)> free_bytes;
};

// Bytes that are there when it ends well. Unavailable, DeadlineExceeded: try again later;
// ResourceExhausted: this machine's disk is full; DataLoss: the node's file keeps differing from
// what arrives; Cancelled.
absl::StatusOr<uint64_t> FetchNode(fleet::AgentClient* client, const recording::Layout& layout,
                                   const FetchOptions& options, host::Clock* clock,
                                   const std::stop_token& stop);

// Whether what is here of a node is what it said when it stopped: every stream as long as it was
// there, and streams at all where processes counted events. DataLoss says what is missing: then the
// node must keep its own.
absl::Status VerifyFetched(const recording::Layout& layout, const recording::NodeRecord& node);

// All of the recording on the disk: before anybody tells a node to delete its own.
absl::Status SyncToDisk(const recording::Layout& layout);

// Where the agent's file `path` belongs. InvalidArgument for a path that is none of a recording's.
absl::StatusOr<std::filesystem::path> LocalPath(const recording::Layout& layout,
                                                std::string_view node, std::string_view path);

}  // namespace syncline::collect

#endif  // SYNCLINE_COORDINATOR_COLLECT_FETCH_H_
