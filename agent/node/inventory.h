// SPDX-License-Identifier: Apache-2.0
// What this node is and what can be traced on it, what cannot, why, and the remedy.
#ifndef SYNCLINE_AGENT_NODE_INVENTORY_H_
#define SYNCLINE_AGENT_NODE_INVENTORY_H_

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/host/process_table.h"
#include "agent/host/room.h"
#include "agent/probe/clock.h"
#include "agent/recording/gate.h"
#include "agent/session/lttng_control.h"
#include "agent/session/spawn.h"
#include "agent/tfprofiler/profiler_finder.h"
#include "syncline/v1/agent.pb.h"

namespace syncline::agent {

struct InventoryParts {
  Gate* gate = nullptr;
  LttngControl* lttng = nullptr;
  ProcessRunner* runner = nullptr;
  Room* room = nullptr;
  Clock* clock = nullptr;
  ProfilerFinder* profilers = nullptr;
  std::function<std::vector<v1::NodeTool>()> tools;  // what else a recording can use; null: none
  std::function<std::vector<v1::EvidenceOffer>()> offers;  // likewise, of the kernel
};

struct InventoryOptions {
  std::filesystem::path data_directory;
  std::filesystem::path proc = "/proc";
  std::string version;
  std::string lttng_home;  // what the agent uses; empty: root's own places
};

// Thread-safe.
class Inventory {
 public:
  // The parts are not owned.
  Inventory(InventoryParts parts, InventoryOptions options);

  // Without the recordings: those are the manager's. `cpu_checked`: what agent/cpu finds is said
  // there, and is no complaint.
  v1::DescribeResponse Describe(bool cpu_checked = false);
  // The same as JSON with a format_version, for the recording's node.json.
  std::string DescribeAsJson();

 private:
  void DescribeMachine(v1::DescribeResponse* response) const;
  void DescribeProcesses(const std::vector<FoundProfiler>& profilers, bool cpu_checked,
                         v1::DescribeResponse* response);
  void DescribeLttng(v1::DescribeResponse* response);
  std::string LttngVersion();
  void ComplainOfProcess(const ProcessEntry& entry, const std::vector<ProcessEntry>& entries,
                         bool has_block, bool has_profiler, v1::DescribeResponse* response) const;

  const InventoryParts parts_;
  const InventoryOptions options_;
  std::mutex mutex_;
  std::optional<std::string> lttng_version_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_NODE_INVENTORY_H_
