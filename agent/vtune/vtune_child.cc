// SPDX-License-Identifier: Apache-2.0
#include "agent/vtune/vtune_child.h"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace syncline::agent {

int RunVtuneChild(uint32_t uid, char** argv) {
  const passwd* const user = ::getpwuid(uid);
  if (uid != ::geteuid()) {
    const gid_t gid = user != nullptr ? user->pw_gid : static_cast<gid_t>(uid);
    const int grouped =
        user != nullptr ? ::initgroups(user->pw_name, gid) : ::setgroups(0, nullptr);
    if (grouped != 0 || ::setgid(gid) != 0 || ::setuid(uid) != 0) {
      std::fprintf(stderr, "Cannot become user %u: %s\n", uid, std::strerror(errno));
      return 1;
    }
  }
  // Behind setuid, which would forget it. As Ctrl-C: VTune ends its collection and lets go.
  ::prctl(PR_SET_PDEATHSIG, SIGINT);
  if (user != nullptr) ::setenv("HOME", user->pw_dir, 1);
  ::umask(0077);
  [[maybe_unused]] const int moved = ::chdir("/");
  const rlimit core{0, 0};
  ::setrlimit(RLIMIT_CORE, &core);
  ::execv(argv[0], argv);
  std::fprintf(stderr, "Cannot start %s: %s\n", argv[0], std::strerror(errno));
  return 1;
}

}  // namespace syncline::agent
