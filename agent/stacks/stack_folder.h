// SPDX-License-Identifier: Apache-2.0
// Where a user's processes leave their stacks when they are asked for them: stacks/ below their
// runtime directory, a file for each process (instrumentation/torch/syncline_stacks.py).
//
// Every byte, name and file there is the processes': the folder and the files must belong to the
// user alone, no link is followed, and no more is read than an answer may have. Not thread-safe.
#ifndef SYNCLINE_AGENT_STACKS_STACK_FOLDER_H_
#define SYNCLINE_AGENT_STACKS_STACK_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control_block/block_file.h"

namespace syncline::agent {

// Which file was read, and when it was written.
struct StackFileVersion {
  uint64_t inode = 0;
  int64_t modified_ns = 0;
  int64_t size = 0;
  bool operator==(const StackFileVersion&) const = default;
};

// What the process answered last, unless `seen` has that already; `seen` has it then. NotFound:
// nothing new. PermissionDenied: the folder, the file or
// the runtime directory is a link, somebody else's or open to others. InvalidArgument: too large.
absl::StatusOr<std::string> ReadStackFile(const std::filesystem::path& runtime, uint32_t uid,
                                          const control_block::BlockId& process,
                                          std::optional<StackFileVersion>* seen);

// Removes what the user's processes, living and dead, have answered, and nothing else. OutOfRange:
// there are more files than it looks at.
absl::Status ClearStackFolder(const std::filesystem::path& runtime, uint32_t uid, int entries_max);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_STACKS_STACK_FOLDER_H_
