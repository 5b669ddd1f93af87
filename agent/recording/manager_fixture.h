// SPDX-License-Identifier: Apache-2.0
// A RecordingManager on stand-ins, for its tests.
#ifndef SYNCLINE_AGENT_RECORDING_MANAGER_FIXTURE_H_
#define SYNCLINE_AGENT_RECORDING_MANAGER_FIXTURE_H_

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "agent/recording/fakes.h"
#include "agent/recording/recording_manager.h"
#include "gtest/gtest.h"

namespace syncline::agent {

inline constexpr int64_t kSecondNs = 1'000'000'000;
inline constexpr int64_t kHourNs = 3600 * kSecondNs;
inline constexpr int64_t kRetentionNs = 48 * kHourNs;

class RecordingManagerTest : public testing::Test {
 protected:
  RecordingManagerTest() {
    std::string pattern = testing::TempDir() + "agent-XXXXXX";
    data_ = ::mkdtemp(pattern.data());
    profiles_.of_tensorflow = true;
    Restart();
  }
  ~RecordingManagerTest() override { std::filesystem::remove_all(data_); }

  // A new manager on the same disk and the same tracer, as after a kill.
  void Restart() {
    manager_ = std::make_unique<RecordingManager>(
        ManagerParts{.lttng = &lttng_,
                     .daemon = &daemon_,
                     .gate = &gate_,
                     .canary = &canary_,
                     .room = &room_,
                     .clock = &clock_,
                     .clock_recorder = &clocks_,
                     .guard = &guard_,
                     .sources = {&profiles_, &kineto_},
                     .log = &log_,
                     .node_json = [] { return std::string("{}"); }},
        ManagerOptions{.data_directory = data_,
                       .retention_ns = kRetentionNs,
                       .seed = 1,
                       .proc = data_ / "proc"});
    ASSERT_TRUE(manager_->Recover().ok());
  }

  static v1::PrepareRequest PrepareOf(const std::string& id) {
    v1::PrepareRequest request;
    request.set_recording_id(id);
    request.set_holder("ann@laptop");
    return request;
  }
  absl::StatusOr<v1::StartResponse> Start(const std::string& id, int64_t at_raw_ns = 0) {
    v1::StartRequest request;
    request.set_recording_id(id);
    request.set_at_monotonic_raw_ns(at_raw_ns);
    return manager_->Start(request);
  }
  absl::StatusOr<v1::StopResponse> Stop(const std::string& id, int64_t at_raw_ns = 0) {
    v1::StopRequest request;
    request.set_recording_id(id);
    request.set_at_monotonic_raw_ns(at_raw_ns);
    return manager_->Stop(request);
  }
  absl::StatusOr<v1::ReleaseResponse> Release(const std::string& id, bool force) {
    v1::ReleaseRequest request;
    request.set_recording_id(id);
    request.set_even_if_not_fetched(force);
    return manager_->Release(request);
  }
  v1::RecordingInfo InfoOf(const std::string& id) {
    for (const v1::RecordingInfo& info : manager_->Recordings()) {
      if (info.recording_id() == id) return info;
    }
    return {};
  }
  std::filesystem::path DirectoryOf(const std::string& id) { return data_ / "recordings" / id; }

  std::filesystem::path data_;
  FakeClock clock_;
  FakeLttngControl lttng_;
  FakeProcessRunner runner_;
  SessionDaemon daemon_{&lttng_, &runner_, {}, "unused.pid"};
  FakeGate gate_{&clock_};
  FakeCanary canary_{&lttng_};
  FakeRoom room_;
  FakeClockRecorder clocks_;
  FakeGuard guard_;
  FakeProfiles profiles_;
  FakeProfiles kineto_;
  Log log_{-1, &clock_};
  std::unique_ptr<RecordingManager> manager_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_RECORDING_MANAGER_FIXTURE_H_
