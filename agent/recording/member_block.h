// SPDX-License-Identifier: Apache-2.0
// The control block of one process of a recording: open while the process may live, a copy once it
// has ended. Open it costs two descriptors, and a job may fork thousands of workers in one
// recording. Thread-compatible.
#ifndef SYNCLINE_AGENT_RECORDING_MEMBER_BLOCK_H_
#define SYNCLINE_AGENT_RECORDING_MEMBER_BLOCK_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/recording/left_out.h"
#include "control_block/live_block.h"

namespace syncline::agent {

class MemberBlock {
 public:
  // Whether so many bytes more may be kept of the process's user, who has them then.
  using Budget = std::function<absl::Status(uint64_t bytes)>;

  explicit MemberBlock(control_block::LiveBlock live) : live_(std::move(live)) {}

  bool is_open() const { return live_.has_value(); }
  // As it is now, or was when its process had ended.
  absl::StatusOr<control_block::Block> Read() const;
  bool HasExited() const;  // by its own word
  // LiveBlock's. Nothing to do, and OK, for a process that has ended.
  absl::Status SetGeneration(uint32_t generation);
  absl::Status SetLeftOut(const LeftOut& left_out);
  bool IsReplaced() const { return live_.has_value() && live_->IsReplaced(); }
  absl::Status Remove();

  // Writes block and names into `directory`. One that is closed is there already.
  absl::Status CopyInto(const std::filesystem::path& directory, const Budget& budget) const;
  // The same when the process has ended: frees the descriptors. Where it fails nothing changes.
  absl::Status CloseInto(const std::filesystem::path& directory, const Budget& budget);

 private:
  absl::Status Write(const std::filesystem::path& directory, const Budget& budget,
                     bool synced) const;

  std::optional<control_block::LiveBlock> live_;
  std::optional<control_block::Block> last_;  // when it was closed
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_MEMBER_BLOCK_H_
