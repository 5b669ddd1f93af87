// SPDX-License-Identifier: Apache-2.0
// The profiles of one process during one recording, on a thread of its own: pieces one after the
// other until the window is over, each written to disk as it arrives.
//
// Why pieces: a worker keeps what it records in its memory until the profile ends, and dies with
// it. Between two pieces there is a gap while the worker puts its answer together, the longer the
// more there is (for the example 3 % of the piece at level 2, 6 % at level 3, more on a busy
// machine); both ends of it are in the data.
//
// After a profile that somebody else's was in the way of, the process is left alone until the next
// recording: who profiles once may do so again, and would then find us in his way.
#ifndef SYNCLINE_AGENT_TFPROFILER_WORKER_PROFILE_H_
#define SYNCLINE_AGENT_TFPROFILER_WORKER_PROFILE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "agent/evidence/evidence_source.h"
#include "agent/probe/clock.h"
#include "agent/tfprofiler/profile_entry.h"
#include "agent/tfprofiler/profiler_client.h"

namespace syncline::agent {

struct ProfileLimits {
  // A worker of the example job takes 0.5 MB a second, large graphs perhaps ten times as much
  // (guess): 15 s are some tens of MB of its memory, and most recordings are one piece.
  int64_t piece_ns = 15'000'000'000;
  int64_t piece_ns_min = 1'000'000'000;  // pieces that are too large are halved down to this
  // How long before its start a profile is asked for: from then on the program cannot start one of
  // its own. Connecting and asking takes 2 ms.
  int64_t ahead_ns = 100'000'000;
  // So much earlier than the window and so much longer: profiles begin up to 2 ms late, and a Stop
  // comes late too. A profile that is so near its end is not cut.
  int64_t head_ns = 5'000'000;
  int64_t tail_ns = 20'000'000;
  int64_t answer_limit_ns = 15'000'000'000;  // from a piece's end until it has been handed over
  int64_t give_up_ns = 10'000'000'000;       // the same, when the recording is over
  int connect_limit_ms = 500;
  int terminate_limit_ms = 1'000;
  uint64_t answer_bytes_max = 128 << 20;
};

// When to ask for the next piece, and for how long; a duration of 0: there is none.
struct Piece {
  int64_t start_realtime_ns = 0;
  int64_t duration_ns = 0;
};
// `end_realtime_ns` 0: nobody knows when it will be.
Piece PlanPiece(int64_t now_realtime_ns, int64_t window_start_realtime_ns, int64_t end_realtime_ns,
                int64_t piece_ns);

class WorkerProfile {
 public:
  using Keep = std::function<void(ProfileEntry)>;

  // Begins at once. `clock` is not owned; `keep` is called for every piece, on this object's
  // thread.
  WorkerProfile(FoundProfiler worker, EvidenceWindow window, ProfileLimits limits, Clock* clock,
                Keep keep);
  // Ends and joins, within the limits.
  ~WorkerProfile();

  // No more pieces; the running one is ended early unless it is about to end by itself.
  void End();
  // After End: returns when all is kept, at most give_up_ns after it.
  void Join();

 private:
  void Run();
  bool WaitUntilAskingTime();
  struct Outcome {
    ProfileEntry entry;
    bool too_large = false;
  };
  Outcome RunPiece(ProfilerClient& client, const Piece& piece, int number);
  // Waits for the answer of a running call; ends it when the recording ends.
  absl::StatusOr<ProfileAnswer> Await(ProfilerClient& client, ProfilerClient::Call& call,
                                      const ProfileEntry& entry, bool* cut);
  void Store(const absl::StatusOr<ProfileAnswer>& answer, bool cut, ProfileEntry* entry) const;
  std::string FailureText(const absl::Status& status) const;
  ProfileEntry NewEntry(int number) const;
  bool ending();

  const FoundProfiler worker_;
  const EvidenceWindow window_;
  const ProfileLimits limits_;
  Clock* const clock_;
  const Keep keep_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t give_up_monotonic_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::StatusOr<ProfileAnswer>> answer_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the others
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_TFPROFILER_WORKER_PROFILE_H_
