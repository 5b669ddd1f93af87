// SPDX-License-Identifier: Apache-2.0
// A source of evidence with a thread of its own for each recording: from Begin until it is told to
// stop it works, and Collect waits for it. A recording never fails for it.
#ifndef SYNCLINE_AGENT_EVIDENCE_THREADED_SOURCE_H_
#define SYNCLINE_AGENT_EVIDENCE_THREADED_SOURCE_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "agent/evidence/evidence_source.h"
#include "agent/host/log.h"

namespace syncline::agent {

// One recording's work. Not thread-safe: only Work() is called by the thread, all else before it
// begins or behind its end.
class EvidenceRun {
 public:
  virtual ~EvidenceRun() = default;
  // Makes its file.
  virtual absl::Status Begin(const EvidenceWindow& window) = 0;
  // Until `stop` is requested, or the window is over.
  virtual void Work(const std::stop_token& stop) = 0;
  // Begin has failed; Work is not called.
  virtual void Fail(const absl::Status& status) = 0;
  virtual std::vector<v1::Complaint> TakeComplaints() = 0;

 protected:
  // In real time: it is the machine that is sampled. false: it is to end.
  bool Wait(int64_t ns, const std::stop_token& stop);

 private:
  std::mutex sleeping_;
  std::condition_variable_any wake_;
};

// Thread-safe.
class ThreadedSource : public EvidenceSource {
 public:
  void Find(const std::vector<uint32_t>& left_out) override;
  void Begin(const EvidenceWindow& window) override;
  void End() override;
  std::vector<v1::Complaint> Collect() override;

 protected:
  // `what`: for the log. `log` is not owned.
  ThreadedSource(const char* what, Log* log) : what_(what), log_(log) {}
  // Users who are `left_out`: their processes are nobody's business here.
  virtual std::unique_ptr<EvidenceRun> MakeRun(const std::vector<uint32_t>& left_out) = 0;

 private:
  // Waits for the thread.
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const char* const what_;
  Log* const log_;
  std::mutex mutex_;
  std::string recording_id_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<EvidenceRun> run_;  // the thread's own, while there is one; else by mutex_
  std::jthread thread_;               // last: it ends first
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_THREADED_SOURCE_H_
