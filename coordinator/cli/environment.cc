// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/environment.h"

#include <unistd.h>

#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/text.h"
#include "control_block/live_block.h"

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

std::string ShellQuoted(std::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(AbslView(text), {{"'", "'\\''"}}), "'");
}

std::filesystem::path RuntimeDirectoryOf(const Environment& environment, uint32_t uid) {
  const auto configured = environment.find("SYNCLINE_RUNTIME_DIR");
  return control_block::RuntimeDirectory(
      uid, configured == environment.end() ? std::string_view() : configured->second);
}

}  // namespace syncline::cli
