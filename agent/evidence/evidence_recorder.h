// The samples of a recording: a thread that reads what Sampler finds, 20 times a second from before
// the gate opens until it is closed, and writes it to evidence/samples.txt in the recording's
// directory as it goes, so that a killed agent leaves what it had.
//
// It takes at most 1 % of a processor: before it would take more it samples less often, and says
// so. A recording never fails for it.
//
// Thread-safe.
#ifndef SYNCLINE_AGENT_EVIDENCE_EVIDENCE_RECORDER_H_
#define SYNCLINE_AGENT_EVIDENCE_EVIDENCE_RECORDER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/evidence/evidence_source.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/evidence/sampler.h"
#include "agent/log.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

// When to sample next, from what sampling has cost so far. Pure.
class SampleRate {
 public:
  static constexpr int64_t kUsualNs = 50'000'000;
  static constexpr int64_t kSlowestNs = 1'600'000'000;
  static constexpr int64_t kShareMin = 100;  // one part in so many of a processor, at most

  int64_t period_ns() const { return period_ns_; }
  // Rounds, without searches, took `cpu_ns` in `elapsed_ns`. Whether the period has changed.
  bool Measured(int64_t cpu_ns, int64_t elapsed_ns);
  // A search took so long: how long to wait until the next one, so that searches take at most half
  // as much as everything may.
  static int64_t SearchPauseNs(int64_t search_cpu_ns);

 private:
  int64_t period_ns_ = kUsualNs;
};

struct EvidenceOptions {
  SamplerOptions sampler;
  uint64_t bytes_max = 256 << 20;  // of the file
};

class EvidenceRecorder : public EvidenceSource {
 public:
  // Neither clock nor log is owned; both outlive this.
  EvidenceRecorder(RuntimeDirectories directories, Clock* clock, Log* log,
                   EvidenceOptions options = {});
  ~EvidenceRecorder() override;

  bool IsWanted(const v1::PrepareRequest& request) const override {
    return !request.skip_evidence();
  }
  void Find() override;
  void Begin(const EvidenceWindow& window) override;
  void End() override;
  std::vector<v1::Complaint> Collect() override;

 private:
  void Run(const std::stop_token& stop);
  void Search();
  void AdaptRate(int64_t now_ns);
  void Write(std::string text);

  const RuntimeDirectories directories_;
  Clock* const clock_;
  Log* const log_;
  const EvidenceOptions options_;
  std::mutex mutex_;  // guards what Find, Begin, End and Collect share; not held while it samples
  std::string recording_id_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> complaints_;  // of the thread's, read once it has ended

  // The thread's own, while there is one.
  std::unique_ptr<Sampler> sampler_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  bool full_ = false;  // nothing more is written
  SampleRate rate_;
  int64_t rounds_cpu_ns_ = 0;
  int64_t measured_since_ns_ = 0;
  int64_t next_search_ns_ = 0;

  std::jthread thread_;  // last: it ends first
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_EVIDENCE_RECORDER_H_
