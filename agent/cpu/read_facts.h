// SPDX-License-Identifier: Apache-2.0
// Reads the facts of cpu_facts.h. Looks only: nothing is changed, and no process notices.
#ifndef SYNCLINE_AGENT_CPU_READ_FACTS_H_
#define SYNCLINE_AGENT_CPU_READ_FACTS_H_

#include <filesystem>
#include <vector>

#include "agent/cpu/cpu_facts.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct CpuRoots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

// Launchers, loader workers and other children of ranks are passed over: what holds for them holds
// for their ranks.
CpuFacts ReadCpuFacts(const CpuRoots& roots, const std::vector<v1::ProcessInfo>& processes);

// The same, and what is to be said of it.
v1::CpuCheck CheckCpu(const CpuRoots& roots, const std::vector<v1::ProcessInfo>& processes);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CPU_READ_FACTS_H_
