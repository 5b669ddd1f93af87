// SPDX-License-Identifier: Apache-2.0
// Says of PyTorch programs that were started for tracing what will be missing all the same, and
// which of their settings are known to be bad for what is measured.
#ifndef SYNCLINE_AGENT_NODE_TORCH_SIGHT_H_
#define SYNCLINE_AGENT_NODE_TORCH_SIGHT_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/host/process_table.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct Processor {
  uint32_t cpus = 0;
  std::vector<std::string> features;  // "avx512f", ...
  uint32_t threads_per_core = 1;
};

// `infos` are the processes with a control block; those without PyTorch are passed over. Of
// launchers and loader workers nothing is said: what holds for them holds for their ranks. Without
// a processor nothing is said of threads and of oneDNN's limit (agent/cpu says more of them).
std::vector<v1::Complaint> ComplainOfTorch(const std::filesystem::path& proc,
                                           std::span<const v1::ProcessInfo> infos,
                                           const std::optional<Processor>& processor);

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_NODE_TORCH_SIGHT_H_
