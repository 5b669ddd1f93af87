// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/environment.h"

#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace syncline::cli {

Environment CurrentEnvironment() {
  Environment environment;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) {
    if (const char* equals = std::strchr(*line, '=')) {
      environment.emplace(std::string(static_cast<const char*>(*line), equals), equals + 1);
    }
  }
  return environment;
}

bool IsSet(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found != environment.end() && !found->second.empty();
}

std::filesystem::path RuntimeDirectoryOf(const Environment& environment, uint32_t uid) {
  return IsSet(environment, "SYNCLINE_RUNTIME_DIR") ? environment.at("SYNCLINE_RUNTIME_DIR")
                                                    : absl::StrCat("/dev/shm/syncline-", uid);
}

}  // namespace syncline::cli
