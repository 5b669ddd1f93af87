// SPDX-License-Identifier: Apache-2.0
// A folder below a user's runtime directory in which his processes leave files for the agent, each
// under its process's name: stacks/ and kineto/.
//
// Whatever is there is the user's, who may keep other things in it: the folder must belong to the
// user alone, no link is followed, and of what is there only the processes' files are removed.
// Thread-safe: no state.
#ifndef SYNCLINE_AGENT_HOST_PROCESS_FOLDER_H_
#define SYNCLINE_AGENT_HOST_PROCESS_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"

namespace syncline::agent {

// What is looked at of a folder at a time, in entries (guess: more than the processes of a node
// leave).
inline constexpr int kFolderEntriesMax = 8192;

// NotFound: there is none. PermissionDenied: it, or the runtime directory, is a link, somebody
// else's or open to others.
absl::StatusOr<Descriptor> OpenProcessFolder(const std::filesystem::path& runtime, uint32_t uid,
                                             const char* name);

// Whether it is the stem of a control block's name: "4026531836-1234-98765".
bool IsStemOfProcess(std::string_view text);

// Removes the regular files in the open directory whose names are `ours`. OutOfRange: there are
// more than `entries_max` entries; no more are looked at, and files of ours may be left. The
// message goes on after the folder's name.
absl::Status ClearProcessFolder(int folder, int entries_max,
                                const std::function<bool(std::string_view)>& ours);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_HOST_PROCESS_FOLDER_H_
