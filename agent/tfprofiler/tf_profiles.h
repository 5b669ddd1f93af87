// SPDX-License-Identifier: Apache-2.0
// TensorFlow's own profilers in a recording: every worker with a profiler port is asked for what
// ran in the window, and what came is kept below xspace/ in the recording's directory. Thread-safe.
#ifndef SYNCLINE_AGENT_TFPROFILER_TF_PROFILES_H_
#define SYNCLINE_AGENT_TFPROFILER_TF_PROFILES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/evidence/evidence_source.h"
#include "agent/host/log.h"
#include "agent/probe/clock.h"
#include "agent/tfprofiler/profile_entry.h"
#include "agent/tfprofiler/profiler_finder.h"
#include "agent/tfprofiler/worker_profile.h"

namespace syncline::agent {

class TfProfiles : public EvidenceSource {
 public:
  // None is owned; all outlive this.
  TfProfiles(ProfilerFinder* finder, Clock* clock, Log* log, ProfileLimits limits = {})
      : finder_(finder), clock_(clock), log_(log), limits_(limits) {}

  bool IsWanted(const v1::PrepareRequest& request) const override {
    return !request.skip_tf_profiler();
  }
  void Find(const std::vector<uint32_t>& left_out) override;
  void Begin(const EvidenceWindow& window) override;
  void End() override;
  std::vector<v1::Complaint> Collect() override;

 private:
  void Keep(std::vector<ProfileEntry> entries);

  ProfilerFinder* const finder_;
  Clock* const clock_;
  Log* const log_;
  const ProfileLimits limits_;
  std::mutex mutex_;
  std::vector<FoundProfiler> found_ ABSL_GUARDED_BY(mutex_);
  std::string recording_id_ ABSL_GUARDED_BY(mutex_);  // of the one that has begun; empty: none
  // Of each user, how many processes were not asked because it has too many.
  std::map<uint32_t, size_t> not_asked_ ABSL_GUARDED_BY(mutex_);
  // Apart, because the workers' threads take it while somebody waits for them.
  std::mutex entries_mutex_;
  std::filesystem::path directory_ ABSL_GUARDED_BY(entries_mutex_);
  std::vector<ProfileEntry> entries_ ABSL_GUARDED_BY(entries_mutex_);
  std::vector<std::unique_ptr<WorkerProfile>> workers_ ABSL_GUARDED_BY(mutex_);  // last: they keep
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_TF_PROFILES_H_
