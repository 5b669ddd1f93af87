// SPDX-License-Identifier: Apache-2.0
// An agent without a machine, for tests: plays the life of one recording from memory, fails where
// it is told to, and counts its calls. Its RAW clock is the test's clock plus an offset.
// Thread-safe as AgentClient is; set `behaviour` and `files` before the first call.
#ifndef SYNCLINE_COORDINATOR_FLEET_FAKE_AGENT_H_
#define SYNCLINE_COORDINATOR_FLEET_FAKE_AGENT_H_

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/fleet/agent_client.h"
#include "coordinator/host/fake_clock.h"

namespace syncline::fleet {

class FakeAgent : public AgentClient {
 public:
  struct Behaviour {
    absl::Status describe, prepare, start, stop, status, release, clock;
    bool dies_while_recording = false;  // every call after Start is Unavailable
    bool blocked = false;               // Describe carries a BLOCKER
    int64_t clock_offset_ns = 0;        // its RAW minus the test's
    uint32_t discarded_events = 0;
    std::string protocol = "syncline.v1";
    std::string version = "0.1.0";
    std::vector<v1::NodeTool> tools;
    std::string stop_reason = "requested";
    int64_t early_end_ns = 0;  // how long before the instant asked for it stopped
    // When its one process was on, its MONOTONIC less the instants asked for; on 0: it never was.
    // (Its MONOTONIC is its RAW.)
    bool has_process = false;
    int64_t on_after_start_ns = 1'000;
    int64_t off_after_stop_ns = 1'000;
    std::function<void()> on_prepare;
    std::function<void()> on_stop;
    std::function<void(v1::StopResponse*)> change_stopped;
    // Fetch: after this many chunks of so many first transfers the connection breaks; < 0: never.
    int break_after_chunks = -1;
    int break_times = 1;
    int64_t chunk_pause_ns = 0;  // Fetch: before each chunk
    // Fetch: what is sent of files beyond the size that is listed.
    std::string beyond_the_list;
    std::string unfinished_path;  // Fetch: the file whose end does not come
    // Fetch: damage the first chunk of this file, as many times.
    std::string damage_path;
    int damage_times = 0;
    bool lie_about_hash = false;
  };

  explicit FakeAgent(host::FakeClock* clock) : clock_(*clock) {}

  Behaviour behaviour;
  std::map<std::string, std::string> files;  // by the agent's path
  size_t chunk_bytes = 4;

  int Count(const std::string& call) const;
  // The last request of its kind.
  v1::PrepareRequest last_prepare() const;
  v1::StartRequest last_start() const;
  v1::FetchRequest last_fetch() const;

  absl::StatusOr<v1::DescribeResponse> Describe(const v1::DescribeRequest&, Timeout) override;
  absl::StatusOr<v1::PrepareResponse> Prepare(const v1::PrepareRequest&, Timeout) override;
  absl::StatusOr<v1::StartResponse> Start(const v1::StartRequest&, Timeout) override;
  absl::StatusOr<v1::StopResponse> Stop(const v1::StopRequest&, Timeout) override;
  absl::StatusOr<v1::StatusResponse> Status(const v1::StatusRequest&, Timeout) override;
  absl::StatusOr<v1::ReleaseResponse> Release(const v1::ReleaseRequest&, Timeout) override;
  absl::Status Fetch(const v1::FetchRequest&, Timeout, const ChunkSink&) override;
  absl::StatusOr<std::unique_ptr<ClockStream>> OpenClockStream() override;
  void Cancel() override {}

 private:
  absl::Status Enter(const std::string& call, const absl::Status& told);

  host::FakeClock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, int> calls_;  // all guarded by mutex_
  v1::PrepareRequest last_prepare_;
  v1::StartRequest last_start_;
  v1::FetchRequest last_fetch_;
  bool recording_ = false;
};

}  // namespace syncline::fleet

#endif  // SYNCLINE_COORDINATOR_FLEET_FAKE_AGENT_H_
