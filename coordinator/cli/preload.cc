#include "coordinator/cli/preload.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/text.h"

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
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "Cannot try the preload");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    char* argv[] = {const_cast<char*>(program.c_str()), nullptr};
    char* envp[] = {const_cast<char*>(assignment.c_str()), nullptr};
    ::execve(program.c_str(), argv, envp);
    ::_exit(126);
  }
  ::close(ends[1]);
  std::string said;
  bool late = false;
  for (;;) {
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = ::poll(&waiting, 1, limit_ms);
    if (ready < 0 && errno == EINTR) continue;
    late = ready == 0;
    char text[512];
    const ssize_t n = ready > 0 ? ::read(ends[0], text, sizeof text) : 0;
    if (n <= 0) break;
    said.append(text, static_cast<size_t>(n));
  }
  ::close(ends[0]);
  if (child < 0) return absl::UnavailableError("Cannot try the preload: fork failed");
  if (late) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  said = std::string(absl::StripAsciiWhitespace(said));
  if (late) {
    return absl::DeadlineExceededError(
        absl::StrCat(program, " did not start in ", limit_ms, " ms with it"));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !said.empty()) {
    return absl::FailedPreconditionError(
        said.empty() ? absl::StrCat(program, " does not start with it") : said);
  }
  return absl::OkStatus();
}

}  // namespace syncline::cli
