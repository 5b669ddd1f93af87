// SPDX-License-Identifier: Apache-2.0
// One recording's samples on their way to evidence/samples.txt: rounds, searches, how often, and
// what is said where it did not go as it should. Written as it goes, so that a killed agent leaves
// what it had. It has no thread: somebody calls Round() whenever it says.
//
// It takes at most 1 % of a processor: before it would take more it samples less often, and says
// so.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_EVIDENCE_SAMPLING_H_
#define SYNCLINE_AGENT_EVIDENCE_SAMPLING_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "agent/evidence/evidence_file.h"
#include "agent/evidence/runtime_directories.h"
#include "agent/evidence/sampler.h"
#include "agent/probe/clock.h"

namespace syncline::agent {

// When to sample next, from what sampling has cost so far. Pure.
class SampleRate {
 public:
  static constexpr int64_t kUsualNs = 50'000'000;
  static constexpr int64_t kSlowestNs = 1'000'000'000;
  static constexpr int64_t kShareMin = 100;  // one part in so many of a processor, at most

  int64_t period_ns() const { return period_ns_; }
  int64_t slowest_ns() const { return slowest_ns_; }  // the longest period so far
  // Rounds, without searches, took `cpu_ns` in `elapsed_ns`. Whether the period has changed: it
  // doubles when they took too much, and halves when twice as many would take clearly less.
  bool Measured(int64_t cpu_ns, int64_t elapsed_ns);
  // A search took so long: how long to wait until the next one, so that searches take at most a
  // quarter of what everything may.
  static int64_t SearchPauseNs(int64_t search_cpu_ns);

 private:
  int64_t period_ns_ = kUsualNs;
  int64_t slowest_ns_ = kUsualNs;
};

struct EvidenceOptions {
  SamplerOptions sampler;
  uint64_t bytes_max = EvidenceFile::kBytesMax;
  std::function<int64_t()>
      thread_cpu_ns;                 // processor time of the calling thread; empty: ask for it
  std::function<int64_t()> page_ns;  // what a page of memory costs (page_cost.h); empty: measure it
};

class Sampling {
 public:
  // `clock` is not owned.
  Sampling(RuntimeDirectories directories, Clock* clock, EvidenceOptions options);
  Sampling(const Sampling&) = delete;
  Sampling& operator=(const Sampling&) = delete;

  // Looks who is there, and opens what is to be sampled.
  void Find();
  // Makes the file of a recording and reads everything once.
  absl::Status Begin(const std::filesystem::path& recording);
  // Reads everything once more, and searches when it is time to. How long to wait until the next.
  int64_t Round();
  // The last reading, and the end of the file.
  void End();
  // What went wrong, for people.
  std::vector<std::string> TakeComplaints();

 private:
  void Sample();
  void Search();
  void AdaptRate(int64_t now_ns);
  int64_t NextPauseNs();
  void Write(std::string_view text);

  Clock* const clock_;
  const EvidenceOptions options_;
  Sampler sampler_;
  bool searched_ = false;
  EvidenceFile file_;
  SampleRate rate_;
  int64_t before_ns_ = 0;  // when the round before began
  int64_t due_ns_ = 0;     // when the next one should
  std::minstd_rand random_;
  int64_t rounds_cpu_ns_ = 0;
  int64_t measured_since_ns_ = 0;
  int64_t next_search_ns_ = 0;
  std::vector<std::string> complaints_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_EVIDENCE_SAMPLING_H_
