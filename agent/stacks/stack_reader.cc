// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/stack_reader.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/recording/process_info.h"
#include "agent/stacks/kernel_threads.h"
#include "agent/stacks/py_spy.h"
#include "agent/stacks/stack_answer.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

using control_block::LiveBlock;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kAnswerLimitMs = 1'500;
constexpr int64_t kAnswerLimitMsMax = 10'000;
// The looks of all nodes must have an instant in common, although requests do not arrive together.
constexpr int64_t kBetweenMs = 2'000;
constexpr int64_t kBetweenMsMax = 20'000;
constexpr int64_t kPollNs = 10 * kMs;
constexpr int kPollsAWake = 5;
// A user whose processes answer nonsense again and again takes no more time from the others.
constexpr int kReadInARound = 32;
constexpr int kPySpyMs = 1'000;  // of all processes
constexpr uint32_t kLargestNumber = 2047;

int64_t Chosen(int64_t asked_ms, int64_t otherwise_ms, int64_t most_ms) {
  return (asked_ms <= 0 ? otherwise_ms : std::min(asked_ms, most_ms)) * kMs;
}

bool HasHook(const v1::ProcessInfo& process) {
  return std::find(process.sources().begin(), process.sources().end(), "python") !=
         process.sources().end();
}

std::string NoAnswer(int64_t limit_ns, const std::string& failure) {
  const std::string what =
      absl::StrCat("it did not answer within ", static_cast<double>(limit_ns) / 1e9, " s: ");
  if (!failure.empty()) return what + failure;
  return what +
         "a call that has not returned may keep Python's interpreter locked, or the process has "
         "the libraries of an older Syncline";
}

// Whether the process's CLOCK_MONOTONIC is, or may be, another one than ours (time_namespaces(7)).
bool MayHaveOwnClock(const std::filesystem::path& proc, int32_t pid) {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/ns/time", error);
  if (error) return false;  // this kernel has one for all
  return pid == 0 ||
         std::filesystem::read_symlink(proc / std::to_string(pid) / "ns/time", error) != own;
}

// In place of what the process said before.
void Accept(const v1::ProcessStacks& answer, v1::ProcessStacks* stacks) {
  v1::ProcessStacks whole = answer;
  *whole.mutable_process() = stacks->process();
  *stacks = std::move(whole);
}

}  // namespace

void StackReader::AddUntraced(v1::StacksResponse* response) const {
  std::set<int32_t> known;
  for (const v1::ProcessStacks& one : response->processes()) known.insert(one.process().pid());
  for (const ProcessEntry& entry :
       ListProcesses(options_.proc).value_or(std::vector<ProcessEntry>())) {
    if (options_.own_uid != 0 && entry.uid != options_.own_uid) continue;
    if (entry.ended() || known.count(entry.pid) != 0) continue;
    if (static_cast<size_t>(response->processes_size()) >= options_.processes_max) return;
    const std::string framework = FrameworkOf(options_.proc, entry.pid);
    if (framework.empty()) continue;
    v1::ProcessStacks& one = *response->add_processes();
    v1::ProcessInfo& info = *one.mutable_process();
    info.set_pid(entry.pid);
    info.set_own_pid(entry.own_pid);
    info.set_pid_namespace_inode(static_cast<int64_t>(entry.pid_namespace));
    info.set_start_ticks(entry.start_ticks);
    info.set_uid(entry.uid);
    info.set_command_line(entry.name);  // the arguments may hold secrets
    info.set_rank(-1);
    info.set_world_size(-1);
    info.set_stopped(entry.stopped());
    one.set_absence(
        absl::StrCat("it runs ", framework, ", and was not started under `syncline run`"));
  }
}

void StackReader::AddProcesses(v1::StacksResponse* response) const {
  std::vector<v1::Complaint> complaints;
  std::vector<v1::ProcessInfo> processes = processes_(&complaints);
  for (v1::Complaint& complaint : complaints) *response->add_complaints() = std::move(complaint);
  for (v1::ProcessInfo& process : processes) {
    if (static_cast<size_t>(response->processes_size()) >= options_.processes_max) {
      v1::Complaint& complaint = *response->add_complaints();
      complaint.set_severity(v1::Complaint::WARNING);
      complaint.set_what(absl::StrCat("There are more processes than the ", options_.processes_max,
                                      " whose stacks are shown"));
      break;
    }
    v1::ProcessStacks& one = *response->add_processes();
    if (!HasHook(process)) {
      one.set_absence("it runs without Syncline's hook for PyTorch");
    } else if (process.stopped()) {
      one.set_absence("it is stopped (SIGSTOP, or a debugger)");
    }
    *one.mutable_process() = std::move(process);
  }
  for (v1::ProcessInfo& process : ranks_->Ending()) {
    if (static_cast<size_t>(response->processes_size()) >= options_.processes_max) break;
    v1::ProcessStacks& one = *response->add_processes();
    one.set_absence("its exit handlers have run, and the process has not ended yet");
    *one.mutable_process() = std::move(process);
  }
  AddUntraced(response);
}

std::vector<StackReader::Asked> StackReader::OpenBlocks(v1::StacksResponse* response) const {
  std::map<uint32_t, std::filesystem::path> runtime_of;
  for (const auto& [uid, runtime] : directories_()) {
    // Answers to earlier requests; what stays of them is said at the end.
    ClearStackFolder(runtime, uid, options_.folder_entries_max).IgnoreError();
    runtime_of[uid] = runtime;
  }
  std::vector<Asked> asked;
  for (int i = 0; i < response->processes_size(); ++i) {
    v1::ProcessStacks& one = *response->mutable_processes(i);
    const auto runtime = runtime_of.find(one.process().uid());
    if (!one.absence().empty()) continue;
    if (runtime == runtime_of.end()) {
      one.set_absence("its runtime directory is not one that this agent serves");
      continue;
    }
    auto block = LiveBlock::Open(runtime->second, BlockIdOf(one.process()), runtime->first);
    const auto read = block.ok() ? block->Read() : block.status();
    if (!read.ok()) {
      one.set_absence(absl::StrCat("its control block cannot be read: ", read.status().message()));
      continue;
    }
    asked.push_back({.index = i,
                     .uid = runtime->first,
                     .runtime = runtime->second,
                     .block = *std::move(block),
                     .number = read->gate.stacks_asked,
                     .has_own_clock = MayHaveOwnClock(options_.proc, one.process().pid())});
  }
  return asked;
}

bool StackReader::TakeAnswer(Asked* one) {
  const auto text = ReadStackFile(one->runtime, one->uid, one->block.id(), &one->seen);
  if (absl::IsNotFound(text.status())) return false;
  absl::StatusOr<StackAnswer> answer =
      text.ok() ? ParseStackAnswer(*text) : absl::StatusOr<StackAnswer>(text.status());
  if (!answer.ok()) {
    one->failure = std::string(answer.status().message());
  } else if (answer->number == one->number && !one->has_own_clock &&
             answer->begin_ns < one->asked_ns) {
    one->failure = "its answer is one to an earlier question, perhaps another agent's";
  } else if (answer->number == one->number) {
    one->answered = true;
    one->bytes = text->size();
    one->answer = std::move(answer->stacks);
  }
  return true;
}

void StackReader::Tell(std::vector<Asked>* asked) {
  for (Asked& one : *asked) {
    if (one.answered || one.refused) continue;
    if (const absl::Status told = one.block.AskForStacks(one.number); !told.ok()) {
      one.failure = std::string(told.message());
    }
  }
}

int64_t StackReader::Ask(std::vector<Asked>* asked, int64_t limit_ns) {
  int64_t last_answer_ns = clock_->MonotonicNs();
  const int64_t end_ns = last_answer_ns + limit_ns;
  std::map<uint32_t, size_t> bytes;  // that a user's answers have
  for (Asked& one : *asked) {
    one.number = one.number % kLargestNumber + 1;
    one.asked_ns = last_answer_ns;
    one.answered = false;
    one.refused = false;
    one.failure.clear();
    bytes[one.uid] = 0;
  }
  for (int polls = 0;; ++polls) {
    if (polls % kPollsAWake == 0) Tell(asked);
    bool all = true;
    std::map<uint32_t, int> read;  // of a user's answers, in this round
    for (Asked& one : *asked) {
      if (one.answered || one.refused) continue;
      if (clock_->MonotonicNs() >= end_ns) return last_answer_ns;
      const bool is_new = read[one.uid] < kReadInARound && TakeAnswer(&one);
      if (is_new) ++read[one.uid];
      all = all && one.answered;
      if (!one.answered) continue;
      last_answer_ns = clock_->MonotonicNs();
      bytes[one.uid] += one.bytes;
      if (bytes[one.uid] <= options_.answer_bytes_max / bytes.size()) continue;
      bytes[one.uid] -= one.bytes;
      one.answered = false;
      one.refused = true;
      one.answer.Clear();
    }
    if (all || clock_->MonotonicNs() >= end_ns) return last_answer_ns;
    clock_->SleepNs(kPollNs);
  }
}

void StackReader::LookFromOutside(v1::StacksResponse* response) const {
  const int64_t end_ns = clock_->MonotonicNs() + kPySpyMs * kMs;
  for (v1::ProcessStacks& one : *response->mutable_processes()) {
    if (one.absence().empty()) continue;
    one.set_source(v1::ProcessStacks::KERNEL);
    const int32_t pid = one.process().pid();
    if (pid == 0) {
      one.set_py_spy_absence("the agent does not see the process");
      continue;
    }
    if (!ReadProcess(options_.proc, pid).has_value()) {
      one.set_absence("it has ended meanwhile");
      continue;
    }
    AddKernelThreads(options_.proc, pid, &one);
    const int64_t left_ms = (end_ns - clock_->MonotonicNs()) / kMs;
    if (one.process().uid() != options_.own_uid) {
      one.set_py_spy_absence("py-spy is run on processes of the agent's own user only");
    } else if (left_ms <= 0) {
      one.set_py_spy_absence("py-spy was not run: others took its time");
    } else {
      const absl::Status added =
          AddPySpyThreads(options_.py_spy, pid, static_cast<int>(left_ms), &one);
      if (added.ok() && one.threads_size() > 0) {
        one.set_source(v1::ProcessStacks::PY_SPY);
      } else {
        one.set_py_spy_absence(added.ok() ? "py-spy found no thread of Python's"
                                          : std::string(added.message()));
      }
    }
  }
}

void StackReader::ClearFolders(v1::StacksResponse* response) const {
  for (const auto& [uid, runtime] : directories_()) {
    const absl::Status cleared = ClearStackFolder(runtime, uid, options_.folder_entries_max);
    if (cleared.ok()) continue;
    v1::Complaint& complaint = *response->add_complaints();
    complaint.set_severity(v1::Complaint::WARNING);
    complaint.set_what(absl::StrCat("The folder stacks in \"", runtime.string(), "\" of user ", uid,
                                    " ", cleared.message()));
  }
}

void StackReader::AddEnded(v1::StacksResponse* response) const {
  for (const v1::ProcessStacks& one : response->processes()) {
    if (one.source() != v1::ProcessStacks::HOOK) continue;
    ranks_->Remember(one, one.answered_twice() ? response->second_look_begin_monotonic_ns()
                                               : response->first_look_end_monotonic_ns());
  }
  for (v1::EndedProcess& ended : ranks_->Ended()) *response->add_ended() = std::move(ended);
}

absl::StatusOr<v1::StacksResponse> StackReader::Read(const v1::StacksRequest& request) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return absl::ResourceExhaustedError(
        "Somebody else looks at the stacks of this node right now; try again in some seconds");
  }
  const int64_t limit_ns = Chosen(request.answer_limit_ms(), kAnswerLimitMs, kAnswerLimitMsMax);
  v1::StacksResponse response;
  const int64_t begin_ns = clock_->MonotonicNs();
  response.set_asked_monotonic_ns(begin_ns);
  ranks_->Tick();  // who ends from here on was there
  AddProcesses(&response);
  std::vector<Asked> asked = OpenBlocks(&response);
  // Of those that answer: what the others wait for has no end.
  response.set_first_look_end_monotonic_ns(Ask(&asked, limit_ns));
  std::erase_if(asked, [&](const Asked& one) {
    v1::ProcessStacks& stacks = *response.mutable_processes(one.index);
    if (one.answered) {
      Accept(one.answer, &stacks);
    } else if (one.refused) {
      stacks.set_absence(
          "it answered, but what its user's processes answer is more than an agent takes of one "
          "user at once");
    } else {
      stacks.set_absence(NoAnswer(limit_ns, one.failure));
    }
    return !one.answered;
  });
  LookFromOutside(&response);
  const int64_t again_ns = begin_ns + Chosen(request.between_looks_ms(), kBetweenMs, kBetweenMsMax);
  clock_->SleepNs(std::max<int64_t>(0, again_ns - clock_->MonotonicNs()));
  response.set_second_look_begin_monotonic_ns(clock_->MonotonicNs());
  Ask(&asked, limit_ns);
  for (Asked& one : asked) {
    if (!one.answered) continue;
    v1::ProcessStacks& stacks = *response.mutable_processes(one.index);
    AddFirstLook(stacks, &one.answer);
    Accept(one.answer, &stacks);
  }
  ClearFolders(&response);
  AddEnded(&response);
  response.set_answered_monotonic_ns(clock_->MonotonicNs());
  return response;
}

}  // namespace syncline::agent
