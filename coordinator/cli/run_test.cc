// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "coordinator/cli/preload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

const RunPlace kRoot{"/opt/syncline/lib", 0};
const RunPlace kUser{"/opt/syncline/lib", 1001};

RunOptions Command(std::vector<std::string> command, int32_t rank = -1) {
  RunOptions options;
  options.rank = rank;
  options.command = std::move(command);
  return options;
}

TEST(CheckRunOptionsTest, ARankForALauncherIsRefusedWithTheReason) {
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"torchrun", "train.py"},
           {"/usr/bin/torchrun", "train.py"},
           {"python3", "-m", "torch.distributed.run", "train.py"},
           {"python", "-u", "-m", "torch.distributed.launch", "train.py"},
           {"/usr/bin/python3.11", "/venv/bin/torchrun", "train.py"},
           {"python3", "-X", "dev", "-mtorch.distributed.run", "train.py"},
           {"mpirun", "-n", "4", "train"},
           {"/usr/bin/mpirun.openmpi", "train"},
           {"srun", "train"},
           {"bash", "-c", "torchrun train.py"},
           {"bash", "-lc", "cd /x && OMP_NUM_THREADS=1 exec torchrun train.py"},
           {"/bin/sh", "-e", "-c", "if true; then 'torchrun' train.py; fi"},
           {"sh", "-c", "python -m torch.distributed.run train.py | tee log"},
           {"sh", "-c", "bash -c \"mpirun -n 2 train\""},
           {"/bin/bash", "-c", "source venv/bin/activate && torchrun train.py", "fab launch"},
           {"sh", "-c", ". venv/bin/activate\ncd x; exec torchrun train.py", "fab launch"},
           {"sh", "-c", "echo begin; (cd x && mpirun -n 2 train); echo end", "fab launch"},
           {"env", "OMP_NUM_THREADS=1", "torchrun", "train.py"},
           {"env", "-u", "HOME", "torchrun", "train.py"},
           {"env", "A=/b/c", "sh", "-c", "srun train"},
           {"nohup", "nice", "-n", "5", "torchrun", "train.py"},
           {"timeout", "10m", "python", "-m", "torch.distributed.run", "train.py"},
           {"numactl", "--cpunodebind=0", "torchrun", "train.py"},
           {"conda", "run", "-n", "env", "torchrun", "train.py"}}) {
    const absl::Status status = CheckRunOptions(Command(command, 3));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << testing::PrintToString(command);
    EXPECT_THAT(std::string(status.message()), HasSubstr("every one of them would be rank 3"));
    EXPECT_TRUE(CheckRunOptions(Command(command)).ok()) << command[0];
  }
}

TEST(CheckRunOptionsTest, OrdinaryProgramsMayHaveARank) {
  EXPECT_TRUE(
      CheckRunOptions(Command({"python", "train.py", "-m", "torch.distributed.run"}, 3)).ok());
  EXPECT_TRUE(CheckRunOptions(Command({"python", "-m", "trainer", "torchrun"}, 0)).ok());
  EXPECT_TRUE(CheckRunOptions(Command({"./torchrunner"}, 0)).ok());
  EXPECT_TRUE(CheckRunOptions(Command({"sh", "-c", "echo torchrun; python train.py"}, 0)).ok());
  EXPECT_TRUE(
      CheckRunOptions(Command({"sh", "-c", "python train.py --with 'mpirun; srun'"}, 0)).ok());
  EXPECT_TRUE(CheckRunOptions(Command({"sh", "-c"}, 0)).ok());
  EXPECT_TRUE(
      CheckRunOptions(Command({"bash", "-c", "cd torchrun && python train.py", "torchrun"}, 0))
          .ok());
  EXPECT_TRUE(CheckRunOptions(Command({"bash", "train.sh", "torchrun"}, 0)).ok());
  EXPECT_TRUE(CheckRunOptions(Command({"env", "X=torchrun", "train", "srun"}, 0)).ok());
  EXPECT_TRUE(CheckRunOptions(Command({"nohup", "python", "train.py", "torchrun"}, 0)).ok());
  EXPECT_TRUE(CheckRunOptions(Command({"python", "-c", "import x", "torchrun"}, 0)).ok());
  EXPECT_TRUE(CheckRunOptions(Command({"mpirun.py"}, 0)).ok());
  EXPECT_FALSE(CheckRunOptions(Command({})).ok());
  EXPECT_FALSE(CheckRunOptions(Command({""})).ok());
}

TEST(PlanEnvironmentTest, PlantsTheCollectorAndTheFacts) {
  RunOptions options = Command({"train"}, 0);
  options.job = "night";
  options.role = "worker";
  const EnvironmentPlan plan = PlanEnvironment(options, {{"PATH", "/bin"}}, kRoot);
  EXPECT_THAT(
      plan.set,
      UnorderedElementsAre(
          Pair("INTEL_LIBITTNOTIFY64", "/opt/syncline/lib/libsyncline_itt.so"),
          Pair("LD_PRELOAD", "/opt/syncline/lib/libsyncline_net.so"),
          Pair("LTTNG_UST_REGISTER_TIMEOUT", "500"), Pair("LTTNG_UST_WITHOUT_BADDR_STATEDUMP", "1"),
          Pair("PYTHONPATH", "/opt/syncline/lib/syncline-python"), Pair("SYNCLINE_JOB", "night"),
          Pair("SYNCLINE_RANK", "0"), Pair("SYNCLINE_ROLE", "worker")));
  EXPECT_THAT(plan.warnings, IsEmpty());
  EXPECT_TRUE(plan.lttng_home.empty());
}

TEST(PlanEnvironmentTest, WhatTheUserSetStays) {
  const EnvironmentPlan plan =
      PlanEnvironment(Command({"train"}),
                      {{"INTEL_LIBITTNOTIFY64", "/opt/syncline/lib/libsyncline_itt.so"},
                       {"LTTNG_UST_REGISTER_TIMEOUT", "100"},
                       {"LTTNG_UST_WITHOUT_BADDR_STATEDUMP", ""},
                       {"LTTNG_HOME", "/var/me"},
                       {"PYTHONPATH", "/me/lib:/me/more"},
                       {"LD_PRELOAD", "/usr/lib/libjemalloc.so.2"}},
                      kUser);
  EXPECT_THAT(
      plan.set,
      UnorderedElementsAre(
          Pair("INTEL_LIBITTNOTIFY64", "/opt/syncline/lib/libsyncline_itt.so"),
          Pair("PYTHONPATH", "/opt/syncline/lib/syncline-python:/me/lib:/me/more"),
          Pair("LD_PRELOAD", "/usr/lib/libjemalloc.so.2:/opt/syncline/lib/libsyncline_net.so")));
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST(PlanEnvironmentTest, APathThatIsOursAlreadyIsLeftAlone) {
  for (const char* path :
       {"/opt/syncline/lib/syncline-python", "/opt/syncline/lib/syncline-python:/me/lib"}) {
    const EnvironmentPlan plan = PlanEnvironment(Command({"train"}), {{"PYTHONPATH", path}}, kRoot);
    EXPECT_EQ(plan.set.count("PYTHONPATH"), 0u) << path;
  }
}

TEST(PlanEnvironmentTest, AnOrdinaryUsersLttngIsKeptOnTheNode) {
  EXPECT_EQ(PlanEnvironment(Command({"x"}), {}, kUser).lttng_home, "/dev/shm/syncline-1001/lttng");
  const EnvironmentPlan moved =
      PlanEnvironment(Command({"x"}), {{"SYNCLINE_RUNTIME_DIR", "/run/x"}}, kUser);
  EXPECT_EQ(moved.lttng_home, "/run/x/lttng");
  EXPECT_EQ(moved.set.at("LTTNG_HOME"), "/run/x/lttng");
}

TEST(PlanEnvironmentTest, MessagesAreLeftOutWhenAskedAndNotPlantedTwice) {
  RunOptions options = Command({"train"});
  EXPECT_EQ(
      PlanEnvironment(options, {{"LD_PRELOAD", "/opt/syncline/lib/libsyncline_net.so"}}, kRoot)
          .set.count("LD_PRELOAD"),
      0u);
  options.messages = false;
  EXPECT_EQ(PlanEnvironment(options, {}, kRoot).set.count("LD_PRELOAD"), 0u);
}

TEST(PreloadTest, IsTriedInAProgramThatDoesNothing) {
  EXPECT_TRUE(TryPreload("").ok());
  const absl::Status tried = TryPreload("/nonexistent/libsyncline_net.so");
  EXPECT_EQ(tried.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(tried.message()), HasSubstr("/nonexistent/libsyncline_net.so"));
  EXPECT_FALSE(TryPreload("", 5000, "/bin/false").ok());
}

TEST(EnvLinesTest, ShellQuotesAndLetsTheUsersOwnWin) {
  RunOptions options;
  options.job = "it's";
  const std::string lines = EnvLines(options, kUser);
  EXPECT_THAT(lines, HasSubstr("export SYNCLINE_JOB='it'\\''s'\n"));
  EXPECT_THAT(lines, HasSubstr("LTTNG_HOME"));
  EXPECT_THAT(lines, HasSubstr("export LD_PRELOAD=\"${LD_PRELOAD:+$LD_PRELOAD:}\""
                               "'/opt/syncline/lib/libsyncline_net.so'\n"));
}

// The exit code of a shell that runs `script`, in which nothing that runs before is set.
int ExitOf(const std::string& shell, const std::string& script) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/usr/bin/env", "env", "-i", "PATH=/usr/bin:/bin", shell.c_str(), "-c", script.c_str(),
            nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(EnvLinesTest, StrictScriptsGoOn) {
  RunOptions options;
  options.job = "night";
  const std::string lines = EnvLines(options, kUser);
  const std::string planted =
      "test \"$INTEL_LIBITTNOTIFY64\" = /opt/syncline/lib/libsyncline_itt.so && "
      "test $LTTNG_UST_REGISTER_TIMEOUT$SYNCLINE_JOB = 500night && "
      "test $LTTNG_UST_WITHOUT_BADDR_STATEDUMP = 1";
  // For an ordinary user, and where the directory cannot be made.
  const std::string somebody = "id() { echo 1001; }\nSYNCLINE_RUNTIME_DIR=/dev/null/none\n";
  for (const std::string shell : {"dash", "bash"}) {
    EXPECT_EQ(ExitOf(shell, "set -eu\n" + lines + planted), 0) << shell;
    EXPECT_EQ(ExitOf(shell, "set -eu\n" + somebody + lines + planted +
                                " && test $LTTNG_HOME = /dev/null/none/lttng"),
              0)
        << shell;
  }
}

// A place in shared memory that somebody else was quicker to take.
class TakenPlaceTest : public testing::Test {
 protected:
  TakenPlaceTest() {
    std::string pattern = testing::TempDir() + "taken-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(root_ / "victim");
  }
  ~TakenPlaceTest() override { std::filesystem::remove_all(root_); }
  bool VictimIsUntouched() { return std::filesystem::is_empty(root_ / "victim"); }
  std::filesystem::path root_;
};

TEST_F(TakenPlaceTest, NothingIsMadeBehindALink) {
  EXPECT_EQ(MakeLttngHome(root_ / "runtime/lttng"), absl::OkStatus());
  EXPECT_EQ(MakeLttngHome(root_ / "runtime/lttng"), absl::OkStatus()) << "again";
  EXPECT_TRUE(std::filesystem::is_directory(root_ / "runtime/lttng"));
  EXPECT_EQ(MakeLttngHome("/dev/null/none/lttng"), absl::OkStatus()) << "harms nobody";
  std::filesystem::create_directory_symlink("victim", root_ / "link");
  EXPECT_EQ(MakeLttngHome(root_ / "link/lttng").code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove(root_ / "runtime/lttng");
  std::filesystem::create_directory_symlink(root_ / "victim", root_ / "runtime/lttng");
  EXPECT_EQ(MakeLttngHome(root_ / "runtime/lttng").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(VictimIsUntouched());
}

TEST_F(TakenPlaceTest, TheLinesForAScriptDoNotUseIt) {
  std::filesystem::create_directory_symlink("victim", root_ / "link");
  const std::string lines = EnvLines(RunOptions(), kUser);
  for (const std::string shell : {"dash", "bash"}) {
    const auto with = [&](const std::string& place, const std::string& then) {
      return ExitOf(shell, "set -eu\nid() { echo 1001; }\nSYNCLINE_RUNTIME_DIR=" +
                               (root_ / place).string() + "\n" + lines + then);
    };
    EXPECT_EQ(with("link", "test -z \"${LTTNG_HOME:-}\""), 0) << shell;
    EXPECT_EQ(with(shell, "test -d \"$LTTNG_HOME\""), 0) << shell;
    if (::geteuid() != 0) continue;
    std::filesystem::create_directory(root_ / "theirs");
    ASSERT_EQ(::chown((root_ / "theirs").c_str(), 61234, 61234), 0);
    EXPECT_EQ(with("theirs", "test -z \"${LTTNG_HOME:-}\""), 0) << shell;
    EXPECT_FALSE(std::filesystem::exists(root_ / "theirs/lttng"));
    EXPECT_EQ(::chown((root_ / "theirs").c_str(), 0, 0), 0);
  }
  EXPECT_TRUE(VictimIsUntouched());
}

TEST(EnvLinesTest, Docker) {
  RunOptions options;
  options.role = "a\"b$c";
  EXPECT_EQ(EnvLines(options, kRoot, EnvFormat::kDocker),
            "ENV INTEL_LIBITTNOTIFY64=\"/opt/syncline/lib/libsyncline_itt.so\"\n"
            "ENV LD_PRELOAD=\"/opt/syncline/lib/libsyncline_net.so\"\n"
            "ENV LTTNG_UST_REGISTER_TIMEOUT=\"500\"\n"
            "ENV LTTNG_UST_WITHOUT_BADDR_STATEDUMP=\"1\"\n"
            "ENV SYNCLINE_ROLE=\"a\\\"b\\$c\"\n"
            "ENV PYTHONPATH=\"/opt/syncline/lib/syncline-python${PYTHONPATH:+:$PYTHONPATH}\"\n");
}

TEST(FindLibraryDirectoryTest, BesideBin) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "run_test_prefix";
  std::filesystem::create_directories(root / "lib");
  EXPECT_EQ(FindLibraryDirectory(root / "bin" / "syncline").status().code(),
            absl::StatusCode::kNotFound);
  std::ofstream(root / "lib" / "libsyncline_itt.so");
  const auto found = FindLibraryDirectory(root / "bin" / "syncline");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, root / "lib");
  // An empty file is no library: tried in a child, and named.
  const absl::Status tried = TryLibraries(*found);
  EXPECT_EQ(tried.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(tried.message()), HasSubstr("libsyncline_itt.so"));
  std::filesystem::remove_all(root);
}

TEST(TryLibrariesTest, DoesNotWaitForASessionDaemon) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "run_test_try";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  std::filesystem::copy(RUN_TEST_COLLECTOR, root / "libsyncline_itt.so");
  // The first is loaded; the next one, which is missing, ends the trial.
  EXPECT_THAT(std::string(TryLibraries(root).message()), HasSubstr("libsyncline_torch.so"));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace syncline::cli
