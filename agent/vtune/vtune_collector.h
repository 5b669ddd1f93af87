// SPDX-License-Identifier: Apache-2.0
// Intel VTune beside a recording, as a source of evidence: attaches to each rank before the
// recording starts, paused; collects from the start of the window to its end; and keeps the results
// as vtune/<pid>/ in the recording's directory. A recording never fails for it.
//
// VTune takes seconds to attach and a moment to resume, so what it collects does not begin exactly
// with the window: each result's record (vtune/result_record.h) has the times of the commands.
// VTune runs as the owner of the process it attaches to.
//
// Thread-safe. One thread starts VTune, and lives until it has ended.
#ifndef SYNCLINE_AGENT_VTUNE_VTUNE_COLLECTOR_H_
#define SYNCLINE_AGENT_VTUNE_VTUNE_COLLECTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/evidence/evidence_source.h"
#include "agent/host/log.h"
#include "agent/vtune/collection.h"
#include "agent/vtune/vtune_finder.h"

namespace syncline::agent {

struct VtuneOptions {
  CollectionTools tools;
  size_t processes_max = 64;
  uint64_t bytes_max = uint64_t{8} << 30;  // of all results of a recording
  int start_limit_ms = 20'000;             // Prepare waits for it
  int end_limit_ms = 15'000;               // from the stop until VTune has ended
  int copy_limit_ms = 20'000;              // of all results
};

// What is asked for, as the other side of the wire has it.
vtune::Request VtuneRequestOf(const v1::VtuneRequest& request);

class VtuneCollector : public EvidenceSource {
 public:
  // Those that have a control block, of all users that the agent serves.
  using Processes = std::function<std::vector<v1::ProcessInfo>(std::vector<v1::Complaint>*)>;

  // Neither finder nor log is owned, nor what the options point to; all outlive this.
  VtuneCollector(Processes processes, VtuneFinder* finder, Log* log, VtuneOptions options);
  ~VtuneCollector() override;

  bool IsWanted(const v1::PrepareRequest& request) const override { return request.has_vtune(); }
  void Configure(const v1::PrepareRequest& request) override;
  // Returns when VTune is attached everywhere, or is not waited for any longer.
  void Find(const std::vector<uint32_t>& left_out) override;
  void Begin(const EvidenceWindow& window) override;
  void End() override;
  std::vector<v1::Complaint> Collect() override;

 private:
  class Run;

  std::vector<v1::ProcessInfo> Ranks(const std::vector<uint32_t>& left_out, Run* run) const;

  const Processes processes_;
  VtuneFinder* const finder_;
  Log* const log_;
  const VtuneOptions options_;
  std::mutex mutex_;
  v1::PrepareRequest request_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Run> run_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it ends first
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_VTUNE_VTUNE_COLLECTOR_H_
