// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/trial.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "common/status.h"

namespace syncline::cli {

absl::StatusOr<Trial> Try(const std::function<void(int report)>& child, int limit_ms) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "Cannot create a pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    child(ends[1]);
    ::_exit(126);
  }
  const int error_number = errno;
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return ErrnoStatus(error_number, "Cannot fork");
  }
  // The pipe closes when the child ends.
  Trial trial;
  for (;;) {
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = ::poll(&waiting, 1, limit_ms);
    if (ready < 0 && errno == EINTR) continue;
    trial.late = ready == 0;
    char text[512];
    const ssize_t n = ready > 0 ? ::read(ends[0], text, sizeof text) : 0;
    if (n <= 0) break;
    trial.said.append(text, static_cast<size_t>(n));
  }
  ::close(ends[0]);
  if (trial.late) ::kill(pid, SIGKILL);
  while (::waitpid(pid, &trial.status, 0) < 0 && errno == EINTR) {
  }
  return trial;
}

}  // namespace syncline::cli
