// SPDX-License-Identifier: Apache-2.0
// The samples of a recording (Sampling) as a source of evidence: a thread that takes them, 20 times
// a second, from before the gate opens until it is closed. A recording never fails for it.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_EVIDENCE_EVIDENCE_RECORDER_H_
#define SYNCLINE_AGENT_EVIDENCE_EVIDENCE_RECORDER_H_

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/evidence/evidence_source.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/evidence/sampling.h"
#include "agent/host/log.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

class EvidenceRecorder : public EvidenceSource {
 public:
  // Neither clock nor log is owned; both outlive this.
  EvidenceRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                   EvidenceOptions options = {});

  bool IsWanted(const v1::PrepareRequest& request) const override {
    return !request.skip_evidence();
  }
  void Find(const std::vector<uint32_t>&) override;
  // Everything is read once when it returns.
  void Begin(const EvidenceWindow& window) override;
  void End() override;
  std::vector<v1::Complaint> Collect() override;

 private:
  const RuntimeDirectories directories_;
  Clock* const clock_;
  Log* const log_;
  const EvidenceOptions options_;
  std::mutex mutex_;
  std::string recording_id_ ABSL_GUARDED_BY(mutex_);
  std::string failure_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Sampling> sampling_;  // the thread's own, while there is one; else by mutex_
  std::jthread thread_;                 // last: it ends first
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_EVIDENCE_RECORDER_H_
