// SPDX-License-Identifier: Apache-2.0
// What /proc and /sys say of a node's CPUs and of the processes on them, as far as the rules
// (cpu_rules.h) need it.
#ifndef SYNCLINE_AGENT_CPU_CPU_FACTS_H_
#define SYNCLINE_AGENT_CPU_CPU_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/host/cpu_list.h"

namespace syncline::agent {

// A control group with a limit of processor time.
struct CpuQuota {
  std::string group;
  double cpus = 0;  // quota / period
};

struct CpuProcessFacts {
  int32_t pid = 0;
  int32_t rank = -1;  // -1: it is no rank, or nobody knows
  std::string job;
  std::map<std::string, std::string> settings;  // of the environment that it was started with
  std::optional<CpuSet> allowed;                // nullopt: cannot be read
  std::vector<CpuQuota> quotas;                 // of its group and of those around it
  bool has_gnu_openmp = false;                  // libgomp is mapped
  bool has_intel_openmp = false;                // libiomp5 or libomp is
};

struct CpuFacts {
  std::set<std::string> flags;            // of /proc/cpuinfo
  CpuSet online;                          // empty: cannot be read
  std::map<uint32_t, uint32_t> core_of;   // CPU to the first CPU of its core; empty: not known
  std::map<uint32_t, CpuSet> numa_nodes;  // those with CPUs
  std::string huge_pages;                 // the mode of transparent huge pages; empty: not known
  std::set<std::string> governors;        // of the CPUs; empty: none can be read
  std::string scaling_driver;
  std::vector<CpuProcessFacts> processes;
  std::vector<std::string> not_read;  // what there is, and nobody may see
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CPU_CPU_FACTS_H_
