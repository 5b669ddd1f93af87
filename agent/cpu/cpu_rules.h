// SPDX-License-Identifier: Apache-2.0
// Which settings of a node and of its processes are known to cost time on CPUs. Pure: facts in,
// findings out. Where each rule comes from: docs/cpu-check.md.
#ifndef SYNCLINE_AGENT_CPU_CPU_RULES_H_
#define SYNCLINE_AGENT_CPU_CPU_RULES_H_

#include <set>
#include <string>

#include "agent/cpu/cpu_facts.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

// The highest instruction set of oneDNN's that a CPU with these flags has ("AVX512_CORE_AMX"), in
// the words of ONEDNN_MAX_CPU_ISA; empty: none.
std::string BestIsa(const std::set<std::string>& flags);

// Processes of which the same is to be said are in one finding.
v1::CpuCheck CheckFacts(const CpuFacts& facts);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CPU_CPU_RULES_H_
