// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/run.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/launcher.h"
#include "common/status.h"
#include "common/text.h"
#include "common/trusted_file.h"
#include "coordinator/cli/device_tracers.h"
#include "coordinator/cli/other_collector.h"
#include "coordinator/cli/preload.h"
#include "coordinator/cli/trial.h"
#include "instrumentation/abi/tracer.h"

namespace syncline::cli {
namespace {

// In the order in which they are tried; the later ones need LTTng-UST.
constexpr std::array<const char*, 7> kLibraries = {kCollectorFile,
                                                   "libsyncline_torch.so",
                                                   "libsyncline_provider.so",
                                                   "libsyncline_itt_provider.so",
                                                   "libsyncline_net_provider.so",
                                                   "libsyncline_torch_provider.so",
                                                   "libsyncline_device_provider.so"};
constexpr size_t kLibrariesWithoutLttng = 2;
// Python looks here first; holds the hook for PyTorch.
constexpr char kPythonVariable[] = "PYTHONPATH";
constexpr char kPythonFolder[] = "syncline-python";
// libkineto otherwise says on stderr when a profile begins and ends.
constexpr char kKinetoSilent[] = "99";

// What does not depend on where the program will run.
Environment Facts(const RunOptions& options) {
  Environment facts;
  if (!options.job.empty()) facts["SYNCLINE_JOB"] = options.job;
  if (options.rank >= 0) facts["SYNCLINE_RANK"] = absl::StrCat(options.rank);
  if (!options.role.empty()) facts["SYNCLINE_ROLE"] = options.role;
  if (options.kineto) {
    facts["SYNCLINE_KINETO"] = "1";
    facts["KINETO_LOG_LEVEL"] = kKinetoSilent;
  }
  return facts;
}

// The file that execvp would start; nullopt: none is found.
std::optional<std::filesystem::path> FindProgram(const std::string& name,
                                                 const Environment& current) {
  if (name.find('/') != std::string::npos) return name;
  const auto path = current.find("PATH");
  const std::string folders = path == current.end() ? "/bin:/usr/bin" : path->second;
  for (const std::string& folder : std::vector<std::string>(absl::StrSplit(folders, ':'))) {
    const std::filesystem::path candidate =
        std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

bool RaisesPrivileges(const std::filesystem::path& program) {
  struct stat info;
  return ::stat(program.c_str(), &info) == 0 && (info.st_mode & (S_ISUID | S_ISGID)) != 0;
}

void Warn(std::string_view line) {
  std::fprintf(stderr, "syncline run: warning: %.*s\n", static_cast<int>(line.size()), line.data());
}

// A page of shared memory that cannot be had ends a process with SIGBUS, when LTTng-UST's thread in
// it comes to it: too late for the trial below to see.
absl::Status CheckSharedMemory() {
  constexpr uint64_t kKiB = 1024;
  constexpr uint64_t kNeeded = 64 * kKiB;  // guessed: some pages each for LTTng-UST and us
  struct statvfs found;
  // Without blocks it has no limit.
  if (::statvfs("/dev/shm", &found) != 0 || found.f_blocks == 0) return absl::OkStatus();
  const uint64_t left = found.f_bavail * found.f_frsize;
  if (left >= kNeeded) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "/dev/shm is full (", left / kKiB, " KiB of ", found.f_blocks * found.f_frsize / kKiB,
      " are left): remove what is not needed there, or make it larger (docker run --shm-size)"));
}

// In the child: 0, or the number of the library that does not load; why goes to `report`.
[[noreturn]] void LoadAndExit(const std::filesystem::path& library_directory, int report) {
  // LTTng-UST otherwise waits 3 s for a session daemon to know this process, which ends at once.
  ::setenv(SYNCLINE_TRACER_TIMEOUT_VARIABLE, "0", 1);
  for (size_t i = 0; i < kLibraries.size(); ++i) {
    if (::dlopen((library_directory / kLibraries[i]).c_str(), RTLD_NOW) != nullptr) continue;
    const char* reason = ::dlerror();
    if (reason != nullptr) (void)!::write(report, reason, std::strlen(reason));
    ::_exit(static_cast<int>(i) + 1);
  }
  ::_exit(0);
}

int Exec(const RunOptions& options, const Environment& environment) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : environment) lines.push_back(absl::StrCat(name, "=", value));
  std::vector<char*> envp;
  for (std::string& line : lines) envp.push_back(line.data());
  envp.push_back(nullptr);
  std::vector<std::string> words = options.command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvpe(argv[0], argv.data(), envp.data());
  const int error_number = errno;
  std::fprintf(stderr, "syncline run: cannot start \"%s\": %s\n", argv[0],
               std::strerror(error_number));
  return error_number == ENOENT ? 127 : 126;
}

}  // namespace

absl::Status CheckRunOptions(const RunOptions& options) {
  if (options.command.empty() || options.command.front().empty()) {
    return absl::InvalidArgumentError(
        "No command: syncline run [--job ID] [--rank N] [--role NAME] -- COMMAND...");
  }
  const std::string launcher = LauncherIn(options.command);
  if (options.rank >= 0 && !launcher.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(launcher, " starts several processes, and with --rank ", options.rank,
                     " every one of them would be rank ", options.rank,
                     ": omit --rank (each process gets its own from ", launcher,
                     "), or put `syncline run` after the launcher"));
  }
  return absl::OkStatus();
}

namespace {

std::vector<std::string> Preloads(const RunOptions& options, const RunPlace& place) {
  std::vector<std::string> libraries;
  if (options.messages) libraries.push_back((place.library_directory / kPreloadFile).string());
  if (options.devices) {
    libraries.push_back((place.library_directory / kLevelZeroFile).string());
    libraries.push_back((place.library_directory / kRocmFile).string());
  }
  return libraries;
}

}  // namespace

EnvironmentPlan PlanEnvironment(const RunOptions& options, const Environment& current,
                                const RunPlace& place) {
  EnvironmentPlan plan;
  plan.set = Facts(options);
  const std::string collector = (place.library_directory / kCollectorFile).string();
  const std::string said = PlanCollectors(current, collector, options.also_collector, &plan.set);
  if (!said.empty()) plan.warnings.push_back(said);
  const auto warn = [&](std::vector<std::string> lines) {
    for (std::string& line : lines) plan.warnings.push_back(std::move(line));
  };
  if (options.devices) warn(PlanDevices(current, place.library_directory, &plan.set));
  if (options.nccl) warn(PlanNccl(current, place.library_directory, &plan.set));
  const auto preloaded = current.find(kPreloadVariable);
  const std::string own = preloaded == current.end() ? "" : preloaded->second;
  std::string preload = own;
  for (const std::string& library : Preloads(options, place)) {
    preload = AppendPreload(preload, library);
  }
  if (preload != own) plan.set[kPreloadVariable] = preload;
  const std::string python = (place.library_directory / kPythonFolder).string();
  if (!IsSet(current, kPythonVariable)) {
    plan.set[kPythonVariable] = python;
  } else if (!absl::StartsWith(current.at(kPythonVariable) + ":", python + ":")) {
    plan.set[kPythonVariable] = absl::StrCat(python, ":", current.at(kPythonVariable));
  }
  if (!IsSet(current, SYNCLINE_TRACER_TIMEOUT_VARIABLE)) {
    plan.set[SYNCLINE_TRACER_TIMEOUT_VARIABLE] = SYNCLINE_TRACER_TIMEOUT_MS;
  }
  if (current.find(SYNCLINE_TRACER_NO_LIBRARIES_VARIABLE) == current.end()) {
    plan.set[SYNCLINE_TRACER_NO_LIBRARIES_VARIABLE] = "1";
  }
  // An ordinary user's session daemon lives below $HOME, which nodes may share: the agent keeps it
  // here.
  if (place.uid != 0 && !IsSet(current, "LTTNG_HOME")) {
    plan.lttng_home = RuntimeDirectoryOf(current, place.uid) / "lttng";
    plan.set["LTTNG_HOME"] = plan.lttng_home.string();
  }
  return plan;
}

std::string EnvLines(const RunOptions& options, const RunPlace& place, EnvFormat format) {
  const std::string collector = (place.library_directory / kCollectorFile).string();
  const std::string preload = absl::StrJoin(Preloads(options, place), ":");
  const std::string python = (place.library_directory / kPythonFolder).string();
  std::string lines;
  if (format == EnvFormat::kDocker) {
    Environment values = Facts(options);
    PlanCollectors({}, collector, options.also_collector, &values);
    values[SYNCLINE_TRACER_TIMEOUT_VARIABLE] = SYNCLINE_TRACER_TIMEOUT_MS;
    values[SYNCLINE_TRACER_NO_LIBRARIES_VARIABLE] = "1";
    if (!preload.empty()) values[kPreloadVariable] = preload;
    if (options.devices) PlanDevices({}, place.library_directory, &values);
    if (options.nccl) PlanNccl({}, place.library_directory, &values);
    for (const auto& [name, value] : values) {
      absl::StrAppend(&lines, "ENV ", name, "=\"",
                      absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"$", "\\$"}}),
                      "\"\n");
    }
    absl::StrAppend(&lines, "ENV ", kPythonVariable, "=\"", python, "${", kPythonVariable, ":+:$",
                    kPythonVariable, "}\"\n");
    return lines;
  }
  for (const auto& [name, value] : Facts(options)) {
    absl::StrAppend(&lines, "export ", name, "=", ShellQuoted(value), "\n");
  }
  // Nothing here may end a script that runs under `set -eu`.
  lines += CollectorLines(collector, options.also_collector);
  if (options.devices) lines += DeviceLines(place.library_directory);
  if (options.nccl) lines += NcclLines(place.library_directory);
  if (!preload.empty()) {
    absl::StrAppend(&lines, "export ", kPreloadVariable, "=\"${", kPreloadVariable, ":+$",
                    kPreloadVariable, ":}\"", ShellQuoted(preload), "\n");
  }
  absl::StrAppend(&lines, "case \"${", kPythonVariable, ":-}:\" in ", ShellQuoted(python + ":"),
                  "*) ;; *) export ", kPythonVariable, "=", ShellQuoted(python), "\"${",
                  kPythonVariable, ":+:$", kPythonVariable, "}\" ;; esac\n");
  absl::StrAppend(
      &lines,
      "[ -n \"${" SYNCLINE_TRACER_TIMEOUT_VARIABLE
      ":-}\" ] || export " SYNCLINE_TRACER_TIMEOUT_VARIABLE "=" SYNCLINE_TRACER_TIMEOUT_MS
      "\n"
      "export " SYNCLINE_TRACER_NO_LIBRARIES_VARIABLE "=\"${" SYNCLINE_TRACER_NO_LIBRARIES_VARIABLE
      "-1}\"\n"
      "if [ \"$(id -u)\" != 0 ] && [ -z \"${LTTNG_HOME:-}\" ]; then\n"
      "  export LTTNG_HOME=\"${SYNCLINE_RUNTIME_DIR:-/dev/shm/syncline-$(id -u)}/lttng\"\n"
      // Nothing is made, and nobody is called, in a place that another user has taken.
      "  for syncline_place in \"${LTTNG_HOME%/*}\" \"$LTTNG_HOME\"; do\n"
      "    (umask 077; mkdir -p \"$syncline_place\") 2>/dev/null || :\n"
      "    if [ -L \"$syncline_place\" ] ||\n"
      "       { [ -e \"$syncline_place\" ] && [ ! -O \"$syncline_place\" ]; }; then\n"
      "      echo \"syncline: $syncline_place is not yours: nothing will be recorded\" >&2\n"
      "      unset LTTNG_HOME\n"
      "      break\n"
      "    fi\n"
      "  done\n"
      "  unset syncline_place\n"
      "fi\n");
  return lines;
}

absl::StatusOr<std::filesystem::path> FindLibraryDirectory(
    const std::filesystem::path& executable) {
  const std::filesystem::path directory =
      (executable.parent_path() / ".." / "lib").lexically_normal();
  std::error_code error;
  if (!std::filesystem::exists(directory / kCollectorFile, error)) {
    return absl::NotFoundError(
        absl::StrCat("No ", kCollectorFile, " in \"", directory.string(),
                     "\": install Syncline with its lib directory next to bin"));
  }
  return directory;
}

absl::StatusOr<std::filesystem::path> OwnLibraryDirectory() {
  std::error_code error;
  return FindLibraryDirectory(std::filesystem::read_symlink("/proc/self/exe", error));
}

absl::Status TryLibraries(const std::filesystem::path& library_directory, int limit_ms) {
  SYNCLINE_RETURN_IF_ERROR(CheckSharedMemory());
  const auto load = [&](int report) { LoadAndExit(library_directory, report); };
  const absl::StatusOr<Trial> trial = Try(load, limit_ms);
  if (!trial.ok()) return WithContext(trial.status(), "Cannot try the libraries");
  const int status = trial->status;
  if (trial->late) {
    return absl::DeadlineExceededError(absl::StrCat("the libraries in ", library_directory.string(),
                                                    " did not load in ", limit_ms,
                                                    " ms (is the LTTng session daemon stopped?)"));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  if (WIFEXITED(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat(trial->said, WEXITSTATUS(status) > static_cast<int>(kLibrariesWithoutLttng)
                                      ? " (install the package liblttng-ust1)"
                                      : ""));
  }
  return absl::FailedPreconditionError(absl::StrCat("trying the libraries in ",
                                                    library_directory.string(),
                                                    " ended with signal ", WTERMSIG(status)));
}

absl::Status MakeLttngHome(const std::filesystem::path& home) {
  if (home.empty()) return absl::OkStatus();
  // In the place of either there may be somebody else's directory, or a link to one.
  const std::filesystem::path runtime = home.parent_path();
  for (const std::filesystem::path& directory : {runtime, home}) {
    ::mkdir(directory.c_str(), 0700);
    const absl::Status ours =
        OpenTrustedDirectory(AT_FDCWD, directory, {.owner = ::geteuid(), .others_none = false})
            .status();
    // One that cannot be made harms nobody; the agent says what is missing.
    if (!absl::IsPermissionDenied(ours)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(ours.message(),
                     ", or set SYNCLINE_RUNTIME_DIR to a directory of your own, "
                     "for programs and commands alike"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ExecTraced(const RunOptions& options, const Environment& current) {
  SYNCLINE_RETURN_IF_ERROR(CheckRunOptions(options));
  const auto program = FindProgram(options.command.front(), current);
  if (program && RaisesPrivileges(*program)) {
    Warn(absl::StrCat(program->string(), " runs with other privileges (setuid) and is not traced"));
    return Exec(options, current);
  }
  const auto library_directory = OwnLibraryDirectory();
  const absl::Status usable =
      library_directory.ok() ? TryLibraries(*library_directory) : library_directory.status();
  if (!usable.ok()) {
    Warn(absl::StrCat("not traceable, started without Syncline: ", usable.message()));
    return Exec(options, current);
  }
  RunOptions usable_options = options;
  const std::string dropped = DropUnusableOption(&usable_options.also_collector);
  if (!dropped.empty()) Warn(dropped);
  EnvironmentPlan plan =
      PlanEnvironment(usable_options, current, {*library_directory, ::geteuid()});
  if (const auto preload = plan.set.find(kPreloadVariable); preload != plan.set.end()) {
    const absl::Status tried = TryPreload(preload->second);
    if (!tried.ok()) {
      Warn(absl::StrCat(
          options.devices ? "messages, and devices by ROCm and Level Zero," : "messages",
          " are not recorded (", kPreloadVariable, "): ", tried.message()));
      plan.set.erase(preload);
    }
  }
  if (usable_options.also_collector.empty()) {
    if (const std::string said = DropUnusableCollector(&plan.set); !said.empty()) Warn(said);
  }
  for (const std::string& warning : plan.warnings) Warn(warning);
  if (const absl::Status made = MakeLttngHome(plan.lttng_home); !made.ok()) {
    Warn(absl::StrCat("will not be recorded: ", made.message()));
    plan.set.erase("LTTNG_HOME");
  }
  Environment environment = current;
  for (const auto& [name, value] : plan.set) environment[name] = value;
  return Exec(options, environment);
}

}  // namespace syncline::cli
