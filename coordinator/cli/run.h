// SPDX-License-Identifier: Apache-2.0
// `syncline run` and `syncline env`: starts a program so that it can be traced later.
//
// The program stays the same process (exec): pid, signals and exit code are its own. What is
// planted is environment only; what the user has set already is kept. Before that a child tries
// whether the libraries load here, within a time limit: when they do not, the program is started
// without them, with one line of warning, because a job that does not start is worse than one that
// is not traced.
//
// Planning is pure; only ExecTraced touches the process. Call it before threads or signal handlers
// are set up: both would leak into the program.
#ifndef SYNCLINE_COORDINATOR_CLI_RUN_H_
#define SYNCLINE_COORDINATOR_CLI_RUN_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/cli/environment.h"

namespace syncline::cli {

struct RunOptions {
  std::string job;    // empty: from the launcher (Slurm, torchrun)
  int32_t rank = -1;  // -1: from the launcher
  std::string role;
  bool messages = true;              // socket calls too: a library is preloaded
  bool kineto = false;               // PyTorch's own profiler too
  bool devices = false;              // what devices do: OpenCL's, CUDA's
  bool nccl = false;                 // what devices do for NCCL's collectives
  std::string also_collector;        // another ITT collector; empty: what the environment names
  std::vector<std::string> command;  // program and arguments
};

// Where the program will run.
struct RunPlace {
  std::filesystem::path library_directory;  // holds libsyncline_itt.so
  uint32_t uid = 0;
};

struct EnvironmentPlan {
  Environment set;                    // to be added to the program's environment
  std::vector<std::string> warnings;  // one line each
  std::filesystem::path lttng_home;   // to be made, 0700, with its parent; empty: none needed
};

// InvalidArgument, with the reason, for what cannot be meant: no command, or a rank for a launcher
// of several processes (every one of them would have it).
absl::Status CheckRunOptions(const RunOptions& options);

EnvironmentPlan PlanEnvironment(const RunOptions& options, const Environment& current,
                                const RunPlace& place);

enum class EnvFormat { kShell, kDocker };

// `syncline env`: lines for a job script (sh) or a Dockerfile. Decided where they run, not here: an
// environment of the user's own wins there too.
std::string EnvLines(const RunOptions& options, const RunPlace& place,
                     EnvFormat format = EnvFormat::kShell);

// bin/../lib of `executable`, which must hold libsyncline_itt.so. NotFound otherwise.
absl::StatusOr<std::filesystem::path> FindLibraryDirectory(const std::filesystem::path& executable);
// The same of the program that runs.
absl::StatusOr<std::filesystem::path> OwnLibraryDirectory();

// Whether the libraries load on this machine, tried in a child that is given `limit_ms`.
absl::Status TryLibraries(const std::filesystem::path& library_directory, int limit_ms = 5000);

// Makes the directory and its parent, if there is one to make. FailedPrecondition: somebody else
// has taken the place of one of them.
absl::Status MakeLttngHome(const std::filesystem::path& home);

// Becomes the program. Returns only when it does not: a status of CheckRunOptions, or the exit code
// that a shell would give (127 not found, 126 not executable), with the reason on stderr.
absl::StatusOr<int> ExecTraced(const RunOptions& options, const Environment& current);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_RUN_H_
