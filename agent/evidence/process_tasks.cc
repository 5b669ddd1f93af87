// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/process_tasks.h"

#include <set>
#include <string_view>

#include "agent/evidence/proc_text.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;

SeenTask Look(const fs::path& proc, const ProcessEntry& process, int32_t tid) {
  const fs::path task = proc / std::to_string(process.pid) / "task" / std::to_string(tid);
  const std::string status = ProcFile(task / "status");
  SeenTask seen;
  const bool one_namespace = process.own_pid == process.pid;
  seen.own_tid = one_namespace ? tid : ParseOwnTid(status).value_or(0);
  seen.allowed_cpus = AllowedCpuList(status).value_or("");
  seen.transfers = ProcFile(task / "comm").find("gloo") != std::string::npos;
  return seen;
}

}  // namespace

SeenTasks ListTasks(const fs::path& proc, const ProcessEntry& process, const SeenTasks& known) {
  SeenTasks tasks;
  const fs::path folder = proc / std::to_string(process.pid);
  for (const int32_t tid : ListThreads(proc, process.pid)) {
    const auto before = known.find(tid);
    tasks[tid] = before != known.end() ? before->second : Look(proc, process, tid);
  }
  if (const auto first = tasks.find(process.pid); first != tasks.end()) {
    first->second.allowed_cpus = AllowedCpuList(ProcFile(folder / "status")).value_or("");
  }
  return tasks;
}

CpuSet AllowedOf(const SeenTasks& tasks, int32_t pid) {
  const auto first = tasks.find(pid);
  if (first == tasks.end() || first->second.allowed_cpus.empty()) return {};
  std::set<std::string_view> lists;  // most have the same
  for (const auto& [tid, task] : tasks) lists.insert(task.allowed_cpus);
  CpuSet all;
  for (const std::string_view list : lists) {
    if (auto cpus = ParseCpuList(list); cpus.has_value()) all.merge(*cpus);
  }
  return all;
}

}  // namespace syncline::agent
