// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/preload.h"

#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/cli/trial.h"

namespace syncline::cli {

std::string AppendPreload(std::string_view current, const std::string& library) {
  for (const absl::string_view part :
       absl::StrSplit(AbslView(current), absl::ByAnyChar(": "), absl::SkipEmpty())) {
    if (part == library) return std::string(current);
  }
  return current.empty() ? library : absl::StrCat(AbslView(current), ":", library);
}

absl::Status TryPreload(const std::string& preload, int limit_ms, const std::string& program) {
  if (::access(program.c_str(), X_OK) != 0) return absl::OkStatus();  // nothing to try it with
  const std::string assignment = absl::StrCat(kPreloadVariable, "=", preload);
  const auto start = [&](int report) {
    ::dup2(report, STDERR_FILENO);
    char* argv[] = {const_cast<char*>(program.c_str()), nullptr};
    char* envp[] = {const_cast<char*>(assignment.c_str()), nullptr};
    ::execve(program.c_str(), argv, envp);
  };
  const absl::StatusOr<Trial> trial = Try(start, limit_ms);
  if (!trial.ok()) return WithContext(trial.status(), "Cannot try the preload");
  const std::string said(absl::StripAsciiWhitespace(trial->said));
  if (trial->late) {
    return absl::DeadlineExceededError(
        absl::StrCat(program, " did not start in ", limit_ms, " ms with it"));
  }
  if (!WIFEXITED(trial->status) || WEXITSTATUS(trial->status) != 0 || !said.empty()) {
    return absl::FailedPreconditionError(
        said.empty() ? absl::StrCat(program, " does not start with it") : said);
  }
  return absl::OkStatus();
}

}  // namespace syncline::cli
