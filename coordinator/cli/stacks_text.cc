// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/stacks_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/text_width.h"
#include "coordinator/cli/terminal.h"

namespace syncline::cli {
namespace {

constexpr size_t kLabel = 11;
constexpr size_t kVerdictsMax = 16;
constexpr size_t kCommandMax = 60;
constexpr const char* kDot = " · ";

// Of x86-64, where threads of training jobs wait.
constexpr std::array<std::pair<const char*, const char*>, 16> kCalls = {{{"0", "read"},
                                                                         {"1", "write"},
                                                                         {"7", "poll"},
                                                                         {"23", "select"},
                                                                         {"34", "pause"},
                                                                         {"35", "nanosleep"},
                                                                         {"45", "recvfrom"},
                                                                         {"47", "recvmsg"},
                                                                         {"61", "wait4"},
                                                                         {"202", "futex"},
                                                                         {"230", "clock_nanosleep"},
                                                                         {"232", "epoll_wait"},
                                                                         {"247", "waitid"},
                                                                         {"270", "pselect6"},
                                                                         {"271", "ppoll"},
                                                                         {"281", "epoll_pwait"}}};

struct Shown {
  const std::string* node;
  const v1::ProcessStacks* process;
  const Shown* of = nullptr;  // the process of the same rank that this one serves

  int32_t rank() const {
    for (const v1::ProcessGroupState& group : process->groups()) {
      if (group.rank() >= 0) return group.rank();
    }
    return process->process().rank();
  }
  auto Order() const {
    const int32_t own = rank();
    return std::tuple(process->groups().empty(), own < 0, own, *node, process->process().pid());
  }
};

// `text` behind `begin`, broken at blanks; later lines hang behind as many blanks.
std::string Wrapped(std::string_view begin, size_t hanging, const std::string& text, size_t width) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  return Wrap(begin, words, {.width = width, .hanging = hanging});
}

std::string VerdictText(const stacks::GroupVerdict& verdict, size_t width) {
  const bool is_group = !verdict.name.empty();
  std::string text = is_group              ? absl::StrCat("group ", verdict.name)
                     : verdict.job.empty() ? std::string("a job")
                                           : absl::StrCat("job ", verdict.job);
  if (!verdict.description.empty()) absl::StrAppend(&text, " (", verdict.description, ")");
  absl::StrAppend(&text, " of ", verdict.size, verdict.size == 1 ? " rank" : " ranks");
  if (is_group && !verdict.job.empty()) absl::StrAppend(&text, ", job ", verdict.job);
  absl::StrAppend(&text, ": ", verdict.sentence);
  return LabelledText(stacks::KindName(verdict.kind), text, width);
}

std::string GroupText(const v1::ProcessGroupState& group) {
  std::string text = absl::StrCat("  group ", group.name(), " (");
  if (!group.description().empty()) absl::StrAppend(&text, group.description(), ", ");
  absl::StrAppend(&text, group.backend(), ", ranks ", group.ranks(), "): ");
  if (!stacks::HasOwnRecord(group)) {
    absl::StrAppend(&text, "last number ",
                    group.sequence_number() < 0 ? std::string("unknown")
                                                : absl::StrCat("#", group.sequence_number()));
    return Printable(text);
  }
  absl::StrAppend(&text, "last collective ", group.collective(), " #", group.collective_number(),
                  group.collective_pending() ? ", not over" : ", over");
  if (group.pending_number() >= 0 && group.pending_number() != group.collective_number()) {
    absl::StrAppend(&text, "; the oldest that is not over: ", group.pending(), " #",
                    group.pending_number());
  }
  return Printable(text);
}

std::string ThreadsText(const v1::PythonThreads& threads) {
  const std::string names = absl::StrJoin(threads.names(), ", ");
  std::string text = threads.main() ? "  main thread" : "";
  if (threads.main() && threads.count() > 1) {
    absl::StrAppend(&text, " and ", threads.count() - 1, " more");
  } else if (!threads.main()) {
    text = threads.count() == 1 ? "  thread" : absl::StrCat("  ", threads.count(), " threads");
  }
  if (!names.empty() && names != "MainThread") absl::StrAppend(&text, " (", names, ")");
  if (threads.frames().empty()) absl::StrAppend(&text, ": no Python frame");
  text = Printable(text) + "\n";
  for (const v1::StackFrame& frame : threads.frames()) {
    std::string line = absl::StrCat("    ", frame.function(), "  ", frame.file());
    if (frame.line_number() > 0) absl::StrAppend(&line, ":", frame.line_number());
    absl::StrAppend(&text, Printable(line), "\n");
    if (frame.left_out_behind()) {
      absl::StrAppend(&text, "    ... ", threads.frames_left_out_count(), " frames ...\n");
    }
  }
  return text;
}

std::string StateText(const std::string& state) {
  if (state == "R") return "running, or ready to";
  if (state == "S") return "asleep";
  if (state == "D") return "in an uninterruptible wait (disk, driver)";
  if (state == "T") return "stopped";
  if (state == "t") return "stopped by a debugger";
  if (state == "Z" || state == "X") return "ended";
  return absl::StrCat("state ", state);
}

std::string KernelText(const v1::KernelThread& thread) {
  std::string text = StateText(thread.state());
  const std::string& call = thread.system_call();
  if (call == "running") {
    absl::StrAppend(&text, ", not in a system call");
  } else if (!call.empty()) {
    const auto* const known = std::find_if(kCalls.begin(), kCalls.end(),
                                           [&](const auto& one) { return call == one.first; });
    absl::StrAppend(&text, ", in system call ", known == kCalls.end() ? call : known->second);
  }
  if (!thread.wait_channel().empty()) absl::StrAppend(&text, ", in ", thread.wait_channel());
  if (!thread.kernel_stack().empty()) {
    absl::StrAppend(&text, "\n      ", absl::StrJoin(thread.kernel_stack(), " < "));
  }
  return text;
}

// Threads in the same place on one line; the main thread on its own.
std::string KernelThreadsText(const v1::ProcessStacks& process) {
  std::vector<std::pair<std::string, size_t>> same;
  std::string text;
  for (int i = 0; i < process.kernel_threads_size(); ++i) {
    const std::string where = KernelText(process.kernel_threads(i));
    if (i == 0) {
      text = absl::StrCat("  main thread: ", where, "\n");
      continue;
    }
    const auto found =
        std::find_if(same.begin(), same.end(), [&](const auto& one) { return one.first == where; });
    if (found == same.end()) {
      same.emplace_back(where, 1);
    } else {
      ++found->second;
    }
  }
  for (const auto& [where, count] : same) {
    absl::StrAppend(&text, "  ", count, count == 1 ? " thread: " : " threads: ", where, "\n");
  }
  if (process.kernel_threads_left_out_count() > 0) {
    absl::StrAppend(&text, "  ", process.kernel_threads_left_out_count(), " more threads\n");
  }
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) line = Printable(line);
  return absl::StrJoin(lines, "\n");
}

std::string TitleOf(const Shown& shown) {
  const v1::ProcessInfo& process = shown.process->process();
  const int32_t rank = shown.rank();
  std::string text = rank >= 0 ? absl::StrCat("RANK ", rank) : std::string("PROCESS");
  absl::StrAppend(&text, kDot, "node ", *shown.node, kDot, "pid ", process.pid());
  if (!process.role().empty()) absl::StrAppend(&text, kDot, process.role());
  if (!process.job().empty()) absl::StrAppend(&text, kDot, "job ", process.job());
  std::string command = process.command_line();
  if (command.size() > kCommandMax) command = command.substr(0, kCommandMax) + "...";
  return Printable(absl::StrCat(text, kDot, command));
}

std::string SourceText(const v1::ProcessStacks& process, size_t width) {
  if (process.source() == v1::ProcessStacks::HOOK) {
    return process.answered_twice() ? "" : "  it answered once only\n";
  }
  const std::string why = Printable(process.absence());
  if (process.source() == v1::ProcessStacks::PY_SPY) {
    return Wrapped("  ", 2, absl::StrCat("by py-spy, because ", why), width);
  }
  if (process.py_spy_absence().empty()) {
    return Wrapped("  ", 2, absl::StrCat("no stacks: ", why), width);
  }
  return Wrapped("  ", 2,
                 absl::StrCat("no Python stacks: ", why, "; not by py-spy either: ",
                              Printable(process.py_spy_absence()), ". What the kernel says:"),
                 width);
}

std::string ProcessText(const Shown& shown, const TextOptions& options) {
  const v1::ProcessStacks& process = *shown.process;
  std::string text = "\n" + TitleOf(shown) + "\n" + SourceText(process, options.width);
  for (const v1::ProcessGroupState& group : process.groups()) {
    absl::StrAppend(&text, GroupText(group), "\n");
  }
  if (process.answered_twice() && process.main_thread_moved()) {
    absl::StrAppend(&text, "  its main thread moves: this is where it was at the second look\n");
  }
  for (const v1::PythonThreads& threads : process.threads()) {
    if (threads.main() || !options.main_threads_only) absl::StrAppend(&text, ThreadsText(threads));
  }
  if (process.threads_left_out_count() > 0 && !options.main_threads_only) {
    absl::StrAppend(&text, "  ", process.threads_left_out_count(), " more threads\n");
  }
  if (process.source() == v1::ProcessStacks::KERNEL)
    absl::StrAppend(&text, KernelThreadsText(process));
  return text;
}

// In one line.
std::string ServantText(const Shown& shown) {
  const v1::StackFrame* const place = stacks::MainPlace(*shown.process);
  return Printable(absl::StrCat("  also of this rank: pid ", shown.process->process().pid(), ", ",
                                place == nullptr
                                    ? "no Python stack"
                                    : "its main thread in " + stacks::PlaceText(*place))) +
         "\n";
}

std::vector<Shown> InOrder(const std::vector<stacks::NodeLook>& looks) {
  std::vector<Shown> all;
  for (const stacks::NodeLook& look : looks) {
    if (!look.answer.ok()) continue;
    for (const v1::ProcessStacks& process : look.answer->processes()) {
      all.push_back({&look.node, &process});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Shown& a, const Shown& b) { return a.Order() < b.Order(); });
  for (Shown& shown : all) {
    if (!shown.process->groups().empty() || shown.rank() < 0) continue;
    for (const Shown& other : all) {
      if (other.process->groups().empty() || other.rank() != shown.rank() ||
          other.node != shown.node ||
          other.process->process().job() != shown.process->process().job()) {
        continue;
      }
      shown.of = &other;
      break;
    }
  }
  return all;
}

}  // namespace

std::string LabelledText(std::string label, const std::string& text, size_t width) {
  absl::AsciiStrToUpper(&label);
  label.resize(std::max(kLabel, label.size() + 1), ' ');
  return Wrapped(label, kLabel, Printable(text), width);
}

std::string VerdictsText(const std::vector<stacks::GroupVerdict>& verdicts, size_t width) {
  std::string text;
  for (size_t i = 0; i < std::min(verdicts.size(), kVerdictsMax); ++i) {
    absl::StrAppend(&text, VerdictText(verdicts[i], width));
  }
  if (verdicts.size() > kVerdictsMax) {
    absl::StrAppend(&text, std::string(kLabel, ' '), verdicts.size() - kVerdictsMax,
                    " more groups: --json has them\n");
  }
  if (verdicts.empty()) {
    absl::StrAppend(&text, LabelledText("undecided",
                                        "no process told of a PyTorch process group: who stands "
                                        "behind is not known",
                                        width));
  }
  return text;
}

std::string ProcessesText(const std::vector<stacks::NodeLook>& looks, const TextOptions& options) {
  std::string text;
  const std::vector<Shown> shown = InOrder(looks);
  for (const Shown& one : shown) {
    if (one.of != nullptr && !options.all) continue;
    if (options.only != nullptr && !options.only->contains(one.process)) continue;
    absl::StrAppend(&text, ProcessText(one, options));
    for (const Shown& servant : shown) {
      if (!options.all && servant.of == &one) absl::StrAppend(&text, ServantText(servant));
    }
  }
  return text;
}

std::string StacksText(const std::vector<stacks::NodeLook>& looks,
                       const std::vector<stacks::GroupVerdict>& verdicts,
                       const TextOptions& options) {
  const std::string processes = ProcessesText(looks, options);
  return (processes.empty() ? "" : VerdictsText(verdicts, options.width)) + processes;
}

}  // namespace syncline::cli
