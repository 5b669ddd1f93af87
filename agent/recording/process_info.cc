// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/process_info.h"

#include <algorithm>

#include "agent/recording/process_part.h"
#include "common/process_part.h"
#include "control_block/cost.h"
#include "instrumentation/abi/control_block.h"

namespace syncline::agent {

using control_block::Block;
using control_block::BlockId;

namespace {

void SetCost(const control_block::Block& block, v1::ProcessCoverage* coverage) {
  const DurationEstimate cost = control_block::CostOf(block.gate);
  const bool any_sample =
      std::any_of(block.threads.begin(), block.threads.end(),
                  [](const control_block::ThreadSlot& slot) { return slot.cost_samples != 0; });
  coverage->set_cost_ns(static_cast<uint64_t>(cost.est_ns));
  coverage->set_cost_valid(cost.bounded() || any_sample);
  coverage->set_cost_samples_count(block.gate.cost_since_on.samples);
  if (!cost.bounded()) return;
  coverage->set_cost_lo_ns(static_cast<uint64_t>(cost.lo_ns));
  coverage->set_cost_hi_ns(static_cast<uint64_t>(cost.hi_ns));
}

}  // namespace

control_block::BlockId BlockIdOf(const v1::ProcessInfo& process) {
  return {.pid_namespace = static_cast<uint64_t>(process.pid_namespace_inode()),
          .pid = process.own_pid(),
          .start_ticks = process.start_ticks()};
}

const ProcessEntry* FindProcess(const std::vector<ProcessEntry>& processes, const BlockId& id) {
  for (const ProcessEntry& entry : processes) {
    if (entry.own_pid == id.pid && entry.pid_namespace == id.pid_namespace &&
        entry.start_ticks == id.start_ticks) {
      return &entry;
    }
  }
  return nullptr;
}

bool IsForeign(uint32_t uid, const ProcessEntry* entry) {
  return uid != 0 && entry != nullptr && entry->uid != uid;
}

v1::ProcessInfo DescribeProcess(const Block& block, uint32_t uid, const ProcessEntry* entry) {
  const control_block::ProcessFacts& facts = block.facts;
  v1::ProcessInfo info;
  info.set_pid(entry != nullptr ? entry->pid : 0);
  info.set_own_pid(facts.id.pid);
  info.set_pid_namespace_inode(static_cast<int64_t>(facts.id.pid_namespace));
  info.set_start_ticks(facts.id.start_ticks);
  info.set_uid(uid);
  info.set_command_line(facts.command_line);
  info.set_job(facts.job);
  info.set_incarnation(facts.incarnation);
  info.set_part(OwnPart(block, entry));
  // A launcher's is its node's, or its host's share of the job (RANK of Kubeflow, SLURM_PROCID).
  info.set_rank(info.part() == kPartLauncher ? -1 : facts.rank);
  info.set_world_size(facts.world_size);
  info.set_role(facts.role);
  info.set_has_control_block(true);
  info.set_stopped(entry != nullptr && entry->stopped());
  info.set_names_count(block.names_count);
  info.set_events_count(block.events());
  info.set_started_monotonic_ns(static_cast<int64_t>(facts.started_monotonic_ns));
  if ((facts.sources & SYNCLINE_SOURCE_ITT) != 0) info.add_sources("itt");
  if ((facts.sources & SYNCLINE_SOURCE_NET) != 0) info.add_sources("net");
  if ((facts.sources & SYNCLINE_SOURCE_PYTHON) != 0) info.add_sources("python");
  if ((facts.sources & SYNCLINE_SOURCE_DEVICE) != 0) info.add_sources("device");
  return info;
}

void SetAnswer(const Block& block, v1::ProcessCoverage* coverage) {
  const control_block::GateAnswer& gate = block.gate;
  coverage->set_on_monotonic_ns(static_cast<int64_t>(gate.on_monotonic_ns));
  coverage->set_off_monotonic_ns(static_cast<int64_t>(gate.off_monotonic_ns));
  coverage->set_events_count(gate.events_since_on);
  coverage->set_lost_count(gate.lost_since_on);
  coverage->set_pauses_count(gate.pauses);
  SetCost(block, coverage);
}

}  // namespace syncline::agent
