// SPDX-License-Identifier: Apache-2.0
// syncline run and env: the command lines; run.h does the work.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/context.h"
#include "coordinator/cli/other_collector.h"
#include "coordinator/cli/run.h"

namespace syncline::cli {
namespace {

struct LaunchArguments {
  RunOptions options;
  std::string format = "sh";
};

// CLI11's check of an option's text: what is wrong with it, or nothing.
std::string IsRank(const std::string& text) {
  int32_t rank = -1;
  if (absl::SimpleAtoi(text, &rank) && rank >= 0) return "";
  return absl::StrCat("\"", text, "\" is not a rank: ranks are 0, 1, 2, ...");
}

std::string IsAnother(const std::string& collector) {
  return IsOurs(collector) ? "it is Syncline's own collector, which gets the calls anyway" : "";
}

// The program and its arguments: from the first word that is no option of ours, "--" before it or
// not. An option of ours that is written wrong must not become the program.
absl::StatusOr<std::vector<std::string>> ProgramOf(
    std::vector<std::string> words, const std::optional<std::vector<std::string>>& after_dashes) {
  if (!words.empty() && words.front().size() > 1 && words.front()[0] == '-') {
    return absl::InvalidArgumentError(
        absl::StrCat("`syncline run` has no option ", words.front(),
                     " (--job, --rank, --role, --no-messages, --kineto, --devices, --nccl, "
                     "--also-collector; the program follows \"--\")"));
  }
  if (!after_dashes.has_value()) return words;
  // `run program -x -- y`: those dashes are the program's.
  if (!words.empty()) words.emplace_back("--");
  words.insert(words.end(), after_dashes->begin(), after_dashes->end());
  return words;
}

void AddIdentity(CLI::App* command, const std::shared_ptr<LaunchArguments>& arguments) {
  command->add_option("--job", arguments->options.job,
                      "The job's name (default: from Slurm or torchrun)");
  command
      ->add_option("--rank", arguments->options.rank,
                   "This process's rank (default: from the launcher)")
      ->check(IsRank);
  command->add_option("--role", arguments->options.role, "master, worker, ps, ...");
  command->add_flag("!--no-messages", arguments->options.messages,
                    "Do not record socket calls (no LD_PRELOAD)");
  command->add_flag("--kineto", arguments->options.kineto,
                    "Also run PyTorch's own profiler while it is recorded: shapes, GPU kernels "
                    "(experimental). High overhead: see docs/pytorch.md");
  command->add_flag("--devices", arguments->options.devices,
                    "Also record what devices do in programs without a framework: OpenCL, CUDA, "
                    "ROCm, Level Zero. PyTorch's own: --kineto. See docs/devices.md");
  command->add_flag("--nccl", arguments->options.nccl,
                    "Also record when GPUs work at the collectives of NCCL (2.28 to 2.30) or RCCL: "
                    "whom ranks wait for. No profiler is needed. See docs/nccl.md");
  command
      ->add_option("--also-collector", arguments->options.also_collector,
                   "Another ITT collector (a library) that gets every call, too (default: the "
                   "one that INTEL_LIBITTNOTIFY64 names, as under VTune)")
      ->check(IsAnother);
}

// The program may go elsewhere. A name without a file here is the loader's to find.
std::string FoundHere(const std::string& collector) {
  std::error_code error;
  return std::filesystem::exists(collector, error)
             ? std::filesystem::absolute(collector, error).string()
             : collector;
}

int Run(const Context& context, RunOptions options, const std::vector<std::string>& words) {
  absl::StatusOr<std::vector<std::string>> program = ProgramOf(words, context.program);
  if (!program.ok()) return Fail(context, program.status());
  options.command = *std::move(program);
  options.also_collector = FoundHere(options.also_collector);
  const absl::StatusOr<int> code = ExecTraced(options, CurrentEnvironment());
  return code.ok() ? *code : Fail(context, code.status());
}

int Env(const Context& context, const LaunchArguments& arguments) {
  const absl::StatusOr<std::filesystem::path> libraries = OwnLibraryDirectory();
  if (!libraries.ok()) return Fail(context, libraries.status());
  const bool docker = arguments.format == "docker";  // its files are an image's
  RunOptions options = arguments.options;
  if (!docker) options.also_collector = FoundHere(options.also_collector);
  *context.out << EnvLines(options, {*libraries, ::getuid()},
                           docker ? EnvFormat::kDocker : EnvFormat::kShell);
  return kDone;
}

}  // namespace

void RegisterRun(CLI::App* app, Context* context) {
  CLI::App* const run =
      app->add_subcommand("run", "Start a program so that it can be traced later");
  const auto arguments = std::make_shared<LaunchArguments>();
  AddIdentity(run, arguments);
  // Also without "--": from the first word that is no option of ours, all belongs to the program.
  run->prefix_command();
  run->fallthrough(false);
  run->footer(
      "Nothing is recorded, and there is no overhead, until `syncline record`. The program keeps\n"
      "its pid, signals and exit code. With a launcher of several processes omit --rank: each\n"
      "process has its own.\n\n"
      "Examples:\n"
      "  syncline run -- python train.py\n"
      "  syncline run --job nightly -- torchrun --nproc-per-node 4 train.py");
  run->callback([=] {
    context->becomes_program = true;
    context->action = [=, words = run->remaining()] {
      return Run(*context, arguments->options, words);
    };
  });
}

void RegisterEnv(CLI::App* app, Context* context) {
  CLI::App* const env = app->add_subcommand(
      "env", "Print the environment that `run` sets, as lines for a job script or Dockerfile");
  const auto arguments = std::make_shared<LaunchArguments>();
  AddIdentity(env, arguments);
  env->add_option("--format", arguments->format, "sh or docker")
      ->check(CLI::IsMember({"sh", "docker"}))
      ->capture_default_str();
  env->footer("Example, in an sbatch file:\n  eval \"$(syncline env)\"");
  env->callback([=] { context->action = [=] { return Env(*context, *arguments); }; });
}

}  // namespace syncline::cli
