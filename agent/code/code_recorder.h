// SPDX-License-Identifier: Apache-2.0
// The code samples of a recording (CodeSampler) as a source of evidence: a thread that empties the
// rings while the window lasts, finds out what the addresses are called behind its end, and writes
// evidence/code.txt. A recording never fails for it. The samples are on the disk as they come: of a
// killed agent they stay, without names.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_CODE_CODE_RECORDER_H_
#define SYNCLINE_AGENT_CODE_CODE_RECORDER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/code/code_sampler.h"
#include "agent/code/symbol_child.h"
#include "agent/code/thread_event.h"
#include "agent/evidence/evidence_source.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/host/log.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

struct CodeOptions {
  CodeSamplerOptions sampler;
  SymbolOptions symbols;
  OpenThreadEvent open = OpenPerfEvent;
  uint64_t bytes_max = 256 << 20;  // of the file
};

// What the agent's CLOCK_MONOTONIC is ahead of the machine's (/proc/self/timens_offsets).
int64_t TimeNamespaceShiftNs(const std::filesystem::path& proc = "/proc");

class CodeRecorder : public EvidenceSource {
 public:
  // Neither clock nor log is owned; both outlive this.
  CodeRecorder(RuntimeDirectories directories, Clock* clock, Log* log, CodeOptions options);
  ~CodeRecorder() override;

  bool IsWanted(const v1::PrepareRequest& request) const override { return request.sample_code(); }
  void Find(const std::vector<uint32_t>& left_out) override;
  void Begin(const EvidenceWindow& window) override;
  void End() override;
  std::vector<v1::Complaint> Collect() override;

 private:
  class Run;

  const RuntimeDirectories directories_;
  Clock* const clock_;
  Log* const log_;
  const CodeOptions options_;
  std::mutex mutex_;
  std::string recording_id_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Run> run_;  // the thread's own, while there is one; else by mutex_
  std::jthread thread_;       // last: it ends first
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_CODE_CODE_RECORDER_H_
