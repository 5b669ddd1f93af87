// SPDX-License-Identifier: Apache-2.0
// The runtime directories of the users of this machine, as an agent that runs as root finds them in
// shared memory, where anybody can make anything. Thread-safe: no state.
#ifndef SYNCLINE_AGENT_RECORDING_USER_DIRECTORIES_H_
#define SYNCLINE_AGENT_RECORDING_USER_DIRECTORIES_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files.h"

namespace syncline::agent {

// Where users' runtime directories are.
struct RuntimePlaces {
  uint32_t own_uid = 0;
  std::string configured;  // the own user's ($SYNCLINE_RUNTIME_DIR); empty: as others'
  std::filesystem::path shared_memory;
  std::filesystem::path Of(uint32_t uid) const;
};

struct UserDirectories {
  std::vector<uint32_t> users;  // the agent's own first, whether it has one or not
  // What lies under the name of another user's directory: its paths, by who owns it.
  std::map<uint32_t, std::vector<std::string>> planted;
};

// Who has put something into `shared_memory` under his own name. Only root looks there.
UserDirectories FindUsers(const std::filesystem::path& shared_memory, uint32_t own_uid);

// Takes the lock file in the runtime directory of `uid`: it is held while the descriptor is open,
// and says `holder`. FailedPrecondition: another agent has it, with its holder. PermissionDenied,
// NotFound: the directory or the file is not what it must be (common/trusted_file.h).
absl::StatusOr<Descriptor> LockDirectory(const std::filesystem::path& directory, uint32_t uid,
                                         const std::string& holder);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_USER_DIRECTORIES_H_
