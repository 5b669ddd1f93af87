// SPDX-License-Identifier: Apache-2.0
#include "agent/vtune/collection.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/session/output_memory.h"
#include "common/text.h"
#include "common/utf8.h"
#include "vtune/commands.h"

namespace syncline::agent {
namespace {

constexpr size_t kOutputBytesMax = size_t{1} << 20;
constexpr size_t kLineBytesMax = 240;
constexpr int kKillLimitMs = 1'000;
// Not in the user guide: VTune prints it since 2011. Without it the start is waited for in vain,
// and goes on.
constexpr char kStarted[] = "Collection started";

// The last line that says something: errors come last.
std::string LastLine(const std::string& text) {
  std::string last;
  for (const absl::string_view line : absl::StrSplit(text, absl::ByAnyChar("\r\n"))) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (!stripped.empty()) last = std::string(stripped);
  }
  return OnlyPrintable(CutText(last, kLineBytesMax), '?');
}

}  // namespace

Collection::Collection(const CollectionTools* tools, const v1::ProcessInfo& process,
                       const v1::NodeTool& vtune, const vtune::Request& request)
    : tools_(*tools), program_(vtune.path()), request_(request) {
  record_.analysis = request.analysis;
  record_.version = vtune.version();
  record_.pid = process.pid();
  record_.own_pid = process.own_pid();
  record_.pid_namespace_inode = process.pid_namespace_inode();
  record_.start_ticks = process.start_ticks();
  record_.uid = process.uid();
  record_.rank = process.rank();
}

Collection::~Collection() {
  if (runs()) AwaitEnd(0);
}

void Collection::Fail(const std::string& what) {
  if (record_.problem.empty()) record_.problem = what;
}

void Collection::FailToo(const std::string& what) {
  if (!record_.problem.empty()) absl::StrAppend(&record_.problem, "; ");
  absl::StrAppend(&record_.problem, what);
}

std::string Collection::Said() const {
  const std::string last = LastLine(ReadOutputMemory(output_.get(), kOutputBytesMax));
  return last.empty() ? "it said nothing" : last;
}

std::vector<std::string> Collection::AsUser(const std::vector<std::string>& command) const {
  std::vector<std::string> arguments = tools_.child;
  arguments.push_back(absl::StrCat(record_.uid));
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

std::string Collection::WorkPath() const {
  return folder_.has_value() ? (folder_->path() / vtune::kResultFolder).string() : "";
}

void Collection::Start() {
  auto folder = ResultFolder::Make(tools_.work, record_.uid);
  if (!folder.ok()) return Fail(std::string(folder.status().message()));
  folder_ = *std::move(folder);
  auto output = MakeOutputMemory("vtune", kOutputBytesMax);
  if (!output.ok()) return Fail(std::string(output.status().message()));
  output_ = *std::move(output);
  record_.collect.arguments = vtune::CollectCommand(program_, request_, record_.pid, WorkPath());
  record_.collect.begin_raw_ns = tools_.clock->RawNs();
  const auto pid = Spawn({.arguments = AsUser(record_.collect.arguments),
                          .for_another_user = true,
                          .pass_as_output = output_.get()});
  if (!pid.ok()) return Fail(std::string(pid.status().message()));
  pid_ = *pid;
}

bool Collection::HasEnded() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid_;
}

bool Collection::IsSettled() {
  if (!runs() || record_.ready_raw_ns != 0) return true;
  if (HasEnded()) {
    AwaitEnd(kKillLimitMs);
    return true;
  }
  if (!absl::StrContains(ReadOutputMemory(output_.get(), kOutputBytesMax), kStarted)) return false;
  record_.ready_raw_ns = tools_.clock->RawNs();
  return true;
}

void Collection::GiveUpWaiting() {
  if (!IsSettled()) Fail("VTune did not say in time that its collection has begun");
}

void Collection::Command(const char* verb, vtune::CommandRun* run) {
  if (!runs()) return;
  run->arguments = vtune::ControlCommand(program_, verb, WorkPath());
  run->begin_raw_ns = tools_.clock->RawNs();
  const auto result = tools_.runner->Run(
      {.arguments = AsUser(run->arguments), .for_another_user = true}, tools_.command_limit_ms);
  run->end_raw_ns = tools_.clock->RawNs();
  if (!result.ok()) {
    return Fail(
        absl::StrCat("`vtune -command ", verb, "` did not end: ", result.status().message()));
  }
  run->exit_code = result->exit_code;
  if (result->exit_code == 0) return;
  Fail(absl::StrCat("`vtune -command ", verb, "` failed with code ", result->exit_code, ": ",
                    LastLine(result->output)));
}

void Collection::Stop() {
  if (!runs()) return;
  if (HasEnded()) {
    AwaitEnd(kKillLimitMs);
    return Fail("VTune ended before the recording did: the process may have ended");
  }
  Command("stop", &record_.stop);
  // Ctrl-C is the other way that is documented.
  if (record_.stop.exit_code != 0 && runs()) ::kill(-pid_, SIGINT);
}

void Collection::AwaitEnd(int limit_ms) {
  if (!runs()) return;
  const auto code = WaitForExit(pid_, limit_ms);
  pid_ = -1;
  record_.collect.end_raw_ns = tools_.clock->RawNs();
  if (!code.ok()) {
    return Fail(absl::StrCat("VTune did not end in time and was killed; it said last: ", Said()));
  }
  record_.collect.exit_code = *code;
  if (*code != 0) Fail(absl::StrCat("VTune ended with code ", *code, ": ", Said()));
}

void Collection::Keep(const std::filesystem::path& to, const CopyLimits& limits) {
  if (!folder_.has_value()) return;
  const std::string stays = absl::StrCat("; it is in ", WorkPath(), " on the node");
  const auto copied = folder_->Copy(vtune::kResultFolder, to, limits);
  if (copied.ok()) {
    record_.bytes = copied->bytes;
    if (copied->left_out > 0) {
      const bool stay = copied->data_left_out > 0;
      FailToo(absl::StrCat(copied->left_out,
                           " entries of the result were not copied: links, files of others, names "
                           "that are no UTF-8, or what could not be opened",
                           stay ? stays : ""));
      if (stay) return;
    }
  } else if (!absl::IsNotFound(copied.status())) {
    std::error_code error;
    std::filesystem::remove_all(to, error);  // a part of it is of no use
    return FailToo(
        absl::StrCat("the result could not be copied: ", copied.status().message(), stays));
  } else {
    Fail("VTune left no result");
  }
  Discard();
}

void Collection::Discard() {
  if (folder_.has_value()) folder_->Remove();
  folder_.reset();
}

}  // namespace syncline::agent
