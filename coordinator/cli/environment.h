// SPDX-License-Identifier: Apache-2.0
// Environments as values: what a process has, and what those that it starts will have.
#ifndef SYNCLINE_COORDINATOR_CLI_ENVIRONMENT_H_
#define SYNCLINE_COORDINATOR_CLI_ENVIRONMENT_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace syncline::cli {

using Environment = std::map<std::string, std::string>;

// The environment of this process.
Environment CurrentEnvironment();

// Set and not empty.
bool IsSet(const Environment& environment, const std::string& name);

// `text` as one word of a shell.
std::string ShellQuoted(std::string_view text);

// Where the libraries of `uid`'s programs and the agent meet: $SYNCLINE_RUNTIME_DIR, else
// /dev/shm/syncline-UID, which no other machine shares.
std::filesystem::path RuntimeDirectoryOf(const Environment& environment, uint32_t uid);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_ENVIRONMENT_H_
