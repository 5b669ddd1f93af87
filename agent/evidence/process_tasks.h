// SPDX-License-Identifier: Apache-2.0
// The threads of a recorded process, each looked at once, when it is first seen: searches come
// every few seconds, and a process may have hundreds of threads.
#ifndef SYNCLINE_AGENT_EVIDENCE_PROCESS_TASKS_H_
#define SYNCLINE_AGENT_EVIDENCE_PROCESS_TASKS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "agent/host/cpu_list.h"
#include "agent/host/process_table.h"

namespace syncline::agent {

struct SeenTask {
  int32_t own_tid = 0;       // as the process sees it; 0: not known
  bool transfers = false;    // by its name it carries out collectives: "gloo_tcp_loop"
  std::string allowed_cpus;  // on which it may run, as the kernel lists them; empty: not known
};

using SeenTasks = std::map<int32_t, SeenTask>;  // by tid, as the agent sees it

// All threads that `process` has now. What `known` has of them is taken over, but for the first
// thread's CPUs: a program may pin itself at any time, and threads that it makes later inherit
// that.
SeenTasks ListTasks(const std::filesystem::path& proc, const ProcessEntry& process,
                    const SeenTasks& known);

// The CPUs of all of them together. One thread alone tells too little: OpenMP may bind each of its
// threads, the first one too, to a CPU of its own. Empty: those of the first one, `pid`, are not
// known.
CpuSet AllowedOf(const SeenTasks& tasks, int32_t pid);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_PROCESS_TASKS_H_
