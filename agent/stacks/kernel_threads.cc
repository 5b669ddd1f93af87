// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/kernel_threads.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

constexpr size_t kThreadsMax = 64;
constexpr int kFramesMax = 32;
constexpr uint64_t kFileBytesMax = 64 << 10;

// Without the line's end; empty where it may not be read.
std::string Text(const std::filesystem::path& path) {
  const auto text = ReadFile(path, kFileBytesMax);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
}

// Of "12 (python (x)) S 1 ...".
std::string StateOf(const std::string& stat) {
  const size_t close = stat.rfind(')');
  return close == std::string::npos || close + 2 >= stat.size() ? "" : stat.substr(close + 2, 1);
}

v1::KernelThread Look(const std::filesystem::path& directory, int32_t tid) {
  v1::KernelThread thread;
  thread.set_tid(tid);
  thread.set_name(Text(directory / "comm"));
  thread.set_state(StateOf(Text(directory / "stat")));
  const std::string channel = Text(directory / "wchan");
  if (channel != "0") thread.set_wait_channel(channel);
  // "202 0x7f... ..." or "running" or "-1 ...": in none.
  const std::string call = Text(directory / "syscall");
  const std::string number = call.substr(0, call.find(' '));
  if (number != "-1") thread.set_system_call(number);
  for (absl::string_view line :
       absl::StrSplit(Text(directory / "stack"), '\n', absl::SkipEmpty())) {
    if (thread.kernel_stack_size() == kFramesMax) break;
    // "[<0>] futex_wait_queue+0x69/0xd0": addresses say nothing to anybody.
    const size_t bracket = line.find("] ");
    if (bracket != absl::string_view::npos) line.remove_prefix(bracket + 2);
    thread.add_kernel_stack(std::string(line.substr(0, line.find('+'))));
  }
  return thread;
}

}  // namespace

void AddKernelThreads(const std::filesystem::path& proc, int32_t pid, v1::ProcessStacks* stacks) {
  const std::filesystem::path tasks = proc / std::to_string(pid) / "task";
  std::vector<int32_t> tids;
  std::error_code error;
  for (std::filesystem::directory_iterator it(tasks, error), end; !error && it != end;
       it.increment(error)) {
    int32_t tid = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &tid)) tids.push_back(tid);
  }
  std::sort(tids.begin(), tids.end(), [pid](int32_t a, int32_t b) {
    return std::pair(a != pid, a) < std::pair(b != pid, b);
  });
  for (size_t i = 0; i < std::min(tids.size(), kThreadsMax); ++i) {
    v1::KernelThread thread = Look(tasks / std::to_string(tids[i]), tids[i]);
    if (!thread.state().empty()) *stacks->add_kernel_threads() = std::move(thread);
  }
  if (tids.size() > kThreadsMax) {
    stacks->set_kernel_threads_left_out_count(static_cast<uint32_t>(tids.size() - kThreadsMax));
  }
}

}  // namespace syncline::agent
