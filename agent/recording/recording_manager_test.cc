// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/recording_manager.h"

#include <filesystem>
#include <memory>
#include <string>

#include "agent/recording/fakes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kHourNs = 3600 * kSecondNs;
constexpr int64_t kRetentionNs = 48 * kHourNs;

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
                     .host = &host_,
                     .clock = &clock_,
                     .clock_recorder = &clocks_,
                     .guard = &guard_,
                     .sources = {&profiles_, &kineto_},
                     .log = &log_,
                     .node_json = [] { return std::string("{}"); }},
        ManagerOptions{.data_directory = data_, .retention_ns = kRetentionNs, .seed = 1});
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
  FakeHost host_;
  FakeClockRecorder clocks_;
  FakeGuard guard_;
  FakeProfiles profiles_;
  FakeProfiles kineto_;
  Log log_{-1, &clock_};
  std::unique_ptr<RecordingManager> manager_;
};

TEST_F(RecordingManagerTest, WholeLife) {
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_THAT(lttng_.calls, ElementsAre("create", "start", "stop", "start"));
  EXPECT_THAT(lttng_.spec.events,
              ElementsAre("syncline:*", "syncline_itt:*", "syncline_net:*", "syncline_torch:*"));
  EXPECT_EQ(InfoOf("r1").state(), v1::READY);
  EXPECT_EQ(gate_.generation, 0u) << "nothing is recorded before Start";
  EXPECT_TRUE(gate_.locked);

  const int64_t at_ns = clock_.now_ns + kSecondNs;
  const auto started = Start("r1", at_ns);
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_GE(started->gate_begin_monotonic_raw_ns(), at_ns);
  EXPECT_LT(started->gate_begin_monotonic_raw_ns(), at_ns + 10'000);
  EXPECT_EQ(gate_.generation, 7u);
  EXPECT_EQ(InfoOf("r1").state(), v1::RECORDING);

  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_TRUE(stopped->complete());
  EXPECT_EQ(stopped->stop_reason(), "requested");
  EXPECT_EQ(stopped->coverage_size(), 1);
  EXPECT_EQ(gate_.generation, 0u);
  EXPECT_FALSE(gate_.locked);
  EXPECT_FALSE(clocks_.recording);
  EXPECT_TRUE(lttng_.running.empty());
  EXPECT_TRUE(std::filesystem::exists(DirectoryOf("r1") / "node.json"));

  EXPECT_EQ(Release("r1", false).status().code(), absl::StatusCode::kFailedPrecondition);
  manager_->MarkFetched("r1");
  ASSERT_TRUE(Release("r1", false).ok());
  EXPECT_FALSE(std::filesystem::exists(DirectoryOf("r1")));
}

TEST_F(RecordingManagerTest, OperatorsAreAskedForAtTheStartAndHandedOverBeforeTheFilesAreListed) {
  v1::PrepareRequest request = PrepareOf("r1");
  request.set_tf_profiler_level(2);
  ASSERT_TRUE(manager_->Prepare(request).ok());
  EXPECT_THAT(profiles_.calls, ElementsAre("find")) << "the profilers' locks are not taken yet";
  v1::StartRequest start;
  start.set_recording_id("r1");
  start.set_at_monotonic_raw_ns(clock_.now_ns + kSecondNs);
  start.set_window_ns(3 * kSecondNs);
  ASSERT_TRUE(manager_->Start(start).ok());
  EXPECT_THAT(profiles_.calls, ElementsAre("find", "begin"));
  EXPECT_EQ(profiles_.window.start_raw_ns, start.at_monotonic_raw_ns());
  EXPECT_EQ(profiles_.window.length_ns, 3 * kSecondNs);
  EXPECT_EQ(profiles_.window.host_tracer_level, 2);
  EXPECT_EQ(profiles_.window.directory, DirectoryOf("r1"));
  v1::Complaint busy;
  busy.set_what("busy");
  profiles_.complaints = {busy};
  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok());
  EXPECT_THAT(profiles_.calls, ElementsAre("find", "begin", "end", "collect"));
  EXPECT_THAT(kineto_.calls, ElementsAre("find", "begin", "end", "collect"));
  EXPECT_TRUE(stopped->complete()) << "a profile that did not come is no loss of the trace";
  ASSERT_EQ(stopped->complaints_size(), 1);
  EXPECT_EQ(stopped->complaints(0).what(), "busy");
}

TEST_F(RecordingManagerTest, ProfilersAreLeftAloneWhenTold) {
  v1::PrepareRequest request = PrepareOf("r1");
  request.set_skip_tf_profiler(true);
  ASSERT_TRUE(manager_->Prepare(request).ok());
  ASSERT_TRUE(Start("r1").ok());
  EXPECT_TRUE(profiles_.calls.empty());
  EXPECT_THAT(kineto_.calls, ElementsAre("find", "begin")) << "it was asked for when the job began";
}

TEST_F(RecordingManagerTest, EveryCallMayBeRepeated) {
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  ASSERT_TRUE(prepared.ok());
  EXPECT_EQ(manager_->Prepare(PrepareOf("r1"))->SerializeAsString(), prepared->SerializeAsString());
  const auto started = Start("r1");
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(Start("r1")->SerializeAsString(), started->SerializeAsString());
  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(Stop("r1")->SerializeAsString(), stopped->SerializeAsString());
  EXPECT_TRUE(Release("r1", true)->existed());
  EXPECT_FALSE(Release("r1", true)->existed());
}

TEST_F(RecordingManagerTest, ASecondRecordingIsRefusedWithTheHoldersName) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  const auto second = manager_->Prepare(PrepareOf("r2"));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("ann@laptop"));
  ASSERT_TRUE(Stop("r1").ok());
  EXPECT_TRUE(manager_->Prepare(PrepareOf("r2")).ok()) << "a finished one is in nobody's way";
}

TEST_F(RecordingManagerTest, IdsAndPatternsAreCheckedBeforeAnythingIsTouched) {
  EXPECT_EQ(manager_->Prepare(PrepareOf("../x")).status().code(),
            absl::StatusCode::kInvalidArgument);
  v1::PrepareRequest request = PrepareOf("r1");
  request.add_extra_events("not a pattern");
  EXPECT_EQ(manager_->Prepare(request).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Start("nobody").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(lttng_.calls.empty());
  EXPECT_TRUE(manager_->Recordings().empty());
}

TEST_F(RecordingManagerTest, NotReadyWithoutTheCanary) {
  canary_.reaches_the_trace = false;
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  EXPECT_EQ(prepared.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(prepared.status().message()), HasSubstr("canary"));
  EXPECT_EQ(InfoOf("r1").state(), v1::FAILED);
  EXPECT_TRUE(lttng_.running.empty());
  EXPECT_FALSE(gate_.locked);
  EXPECT_FALSE(clocks_.recording);
  canary_.reaches_the_trace = true;
  EXPECT_TRUE(manager_->Prepare(PrepareOf("r1")).ok()) << "a failed one may be tried again";
}

TEST_F(RecordingManagerTest, EveryUserWithAProcessHasACanary) {
  v1::ProcessInfo process;
  process.set_uid(1001);
  gate_.processes = {process};
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  EXPECT_THAT(canary_.sung_for, ElementsAre(1000, 1001));
}

TEST_F(RecordingManagerTest, AUserWhoseCanaryIsKilledHindersNobodyElse) {
  v1::ProcessInfo process;
  process.set_uid(1001);
  gate_.processes = {process};
  canary_.failing = {1001};
  EXPECT_EQ(manager_->Prepare(PrepareOf("r1")).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "nothing would be recorded";
  process.set_uid(1002);
  gate_.processes.push_back(process);
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  ASSERT_EQ(prepared->complaints_size(), 1);
  EXPECT_THAT(prepared->complaints(0).what(), HasSubstr("user 1001"));
  ASSERT_TRUE(Stop("r1").ok());
  gate_.processes[1].set_uid(1000);  // the agent's own
  EXPECT_TRUE(manager_->Prepare(PrepareOf("r2")).ok());
}

TEST_F(RecordingManagerTest, OnlyProcessesThatAreVisibleTakeBuffers) {
  const auto buffers = [&](int32_t pid, const std::string& id) {
    gate_.processes.assign(300, {});
    for (v1::ProcessInfo& process : gate_.processes) {
      process.set_uid(1000);
      process.set_pid(pid);
    }
    v1::PrepareRequest request = PrepareOf(id);
    request.set_buffer_scheme(v1::PER_PROCESS);
    const auto prepared = manager_->Prepare(request);
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_TRUE(Stop(id).ok());
    return prepared.ok() ? prepared->subbuffer_bytes() : 0;
  };
  EXPECT_LT(buffers(7, "r1"), buffers(0, "r2"));
}

TEST_F(RecordingManagerTest, SmallSharedMemoryIsSaidBeforeReady) {
  host_.shm_free_bytes = 100'000;
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  EXPECT_EQ(prepared.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(lttng_.calls.empty() || lttng_.running.empty());
}

TEST_F(RecordingManagerTest, AFullDiskIsSaidBeforeReady) {
  host_.disk_free_bytes = 1 << 20;
  EXPECT_THAT(std::string(manager_->Prepare(PrepareOf("r1")).status().message()),
              HasSubstr("keep-free"));
}

TEST_F(RecordingManagerTest, FilesAreTakenAsTheyAreWhenTheTracerHangs) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  lttng_.failures["destroy"] = absl::DeadlineExceededError("not flushed");
  lttng_.counters = {{.name = "syncline", .discarded_events = (uint64_t{1} << 63) + 5}};
  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_FALSE(stopped->complete());
  EXPECT_FALSE(stopped->channels(0).discarded_events_valid());
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
}

TEST_F(RecordingManagerTest, AnExpiredLeaseStopsAndKeeps) {
  v1::PrepareRequest request = PrepareOf("r1");
  request.set_lease_ms(5'000);
  ASSERT_TRUE(manager_->Prepare(request).ok());
  ASSERT_TRUE(Start("r1").ok());
  clock_.now_ns += 4 * kSecondNs;
  v1::StatusRequest renew;
  renew.set_recording_id("r1");
  renew.set_renew_lease_ms(5'000);
  EXPECT_EQ(manager_->Status(renew)->events_count(), 42u);
  clock_.now_ns += 4 * kSecondNs;
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::RECORDING) << "renewed";
  clock_.now_ns += 2 * kSecondNs;
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  EXPECT_THAT(Stop("r1")->stop_reason(), HasSubstr("lease"));
}

TEST_F(RecordingManagerTest, SizeLimitAndDiskGuardStop) {
  v1::PrepareRequest request = PrepareOf("r1");
  request.set_size_limit_bytes(4096);
  ASSERT_TRUE(manager_->Prepare(request).ok());
  ASSERT_TRUE(Start("r1").ok());
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::RECORDING);
  std::ofstream(DirectoryOf("r1") / "trace" / "big") << std::string(8192, 'x');
  manager_->Tick();
  EXPECT_THAT(Stop("r1")->stop_reason(), HasSubstr("size limit"));

  ASSERT_TRUE(manager_->Prepare(PrepareOf("r2")).ok());
  host_.disk_free_bytes = 1000;
  manager_->Tick();
  EXPECT_THAT(Stop("r2")->stop_reason(), HasSubstr("disk"));
}

TEST_F(RecordingManagerTest, AStopOvertakesAWaitingStart) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  bool done = false;
  clock_.on_sleep = [&] {
    if (std::exchange(done, true)) return;
    EXPECT_TRUE(Stop("r1").ok());
  };
  const auto started = Start("r1", clock_.now_ns + 60 * kSecondNs);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(gate_.generation, 0u);
  EXPECT_LT(clock_.now_ns, 2 * kSecondNs) << "it did not wait for the instant";
}

TEST_F(RecordingManagerTest, AnImmediateStopOvertakesAWaitingOne) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  bool done = false;
  clock_.on_sleep = [&] {
    if (std::exchange(done, true)) return;
    EXPECT_TRUE(Stop("r1").ok());
  };
  EXPECT_TRUE(Stop("r1", clock_.now_ns + 60 * kSecondNs).ok());
  EXPECT_LT(clock_.now_ns, 2 * kSecondNs);
}

TEST_F(RecordingManagerTest, InstantsFarAheadAreMistakes) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  EXPECT_EQ(Start("r1", clock_.now_ns + 3600 * kSecondNs).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RecordingManagerTest, AfterAKillTheRecordingIsStoppedAndKept) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  lttng_.running["syncline-ffffffff-other"] = true;  // another agent's
  lttng_.running["mine-by-hand"] = true;
  Restart();
  EXPECT_THAT(gate_.closed_leftovers, ElementsAre(7));
  EXPECT_THAT(kineto_.calls, ElementsAre("find", "begin", "adopt", "collect"));
  EXPECT_EQ(kineto_.window.directory, DirectoryOf("r1"));
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  EXPECT_EQ(InfoOf("r1").holder(), "ann@laptop");
  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok());
  EXPECT_THAT(stopped->stop_reason(), HasSubstr("adopted"));
  EXPECT_TRUE(Start("r1").ok()) << "what was answered before the kill is answered again";
  EXPECT_EQ(lttng_.running.size(), 2u) << "others' sessions are left alone";
  EXPECT_TRUE(manager_->Prepare(PrepareOf("r2")).ok());
}

TEST_F(RecordingManagerTest, AGuardKnowsTheEndAndGoesWithTheRecording) {
  v1::PrepareRequest request = PrepareOf("r1");
  request.set_lease_ms(60'000);
  ASSERT_TRUE(manager_->Prepare(request).ok());
  EXPECT_TRUE(guard_.guards);
  EXPECT_EQ(guard_.orders.session_name(), lttng_.spec.name);
  EXPECT_FALSE(guard_.orders.opened());
  v1::StartRequest start;
  start.set_recording_id("r1");
  start.set_at_monotonic_raw_ns(clock_.now_ns + kSecondNs);
  start.set_window_ns(3 * kSecondNs);
  const auto started = manager_->Start(start);
  ASSERT_TRUE(started.ok());
  EXPECT_TRUE(guard_.orders.opened());
  EXPECT_EQ(guard_.orders.end_raw_ns(), start.at_monotonic_raw_ns() + 3 * kSecondNs);
  EXPECT_EQ(guard_.orders.generation(), started->generation());
  EXPECT_GT(guard_.orders.lease_end_monotonic_ns(), clock_.now_ns);
  ASSERT_TRUE(Stop("r1").ok());
  EXPECT_FALSE(guard_.guards);
}

TEST_F(RecordingManagerTest, AFailedPrepareLeavesNoGuard) {
  canary_.reaches_the_trace = false;
  EXPECT_FALSE(manager_->Prepare(PrepareOf("r1")).ok());
  EXPECT_FALSE(guard_.guards);
}

TEST_F(RecordingManagerTest, WithoutAGuardItRecordsAndSaysSo) {
  guard_.status = absl::ResourceExhaustedError("no process ids");
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  ASSERT_TRUE(prepared.ok());
  ASSERT_EQ(prepared->complaints_size(), 1);
  EXPECT_THAT(prepared->complaints(0).what(), HasSubstr("no guard: no process ids"));
}

TEST_F(RecordingManagerTest, WhatTheGuardEndedIsAdoptedAsItEnded) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  v1::StopResponse by_guard = manager_->EndForAgent(guard_.orders);
  by_guard.set_stop_reason("guard: the agent was dead at the end of the recording");
  journal::Entry entry;
  *entry.mutable_stopped() = by_guard;
  ASSERT_TRUE(Journal(DirectoryOf("r1") / "guard.json").Append(entry).ok());
  lttng_.calls.clear();
  Restart();
  EXPECT_THAT(lttng_.calls, testing::Not(testing::Contains("stop"))) << "the session is gone";
  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok());
  EXPECT_TRUE(stopped->complete());
  EXPECT_THAT(stopped->stop_reason(), HasSubstr("guard:"));
  EXPECT_EQ(stopped->gate_end_monotonic_raw_ns(), by_guard.gate_end_monotonic_raw_ns());
  EXPECT_GE(stopped->coverage_size(), 1) << "what the processes counted is kept";
}

TEST_F(RecordingManagerTest, AfterAKillBeforeItBeganKinetoHasNothingOfIt) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  Restart();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  EXPECT_THAT(kineto_.calls, ElementsAre("find", "collect"));
}

TEST_F(RecordingManagerTest, AfterAKillDuringPrepareTheRecordingIsFailed) {
  journal::Entry entry;
  entry.set_state(v1::PREPARING);
  entry.set_session_name("syncline-x-r1");
  lttng_.running["syncline-x-r1"] = true;
  ASSERT_TRUE(MakeDirectories(DirectoryOf("r1")).ok());
  ASSERT_TRUE(Journal(DirectoryOf("r1") / "journal").Append(entry).ok());
  Restart();
  EXPECT_EQ(InfoOf("r1").state(), v1::FAILED);
  EXPECT_TRUE(lttng_.running.empty());
}

TEST_F(RecordingManagerTest, ShutdownStopsAndKeeps) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  manager_->Shutdown();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  EXPECT_EQ(manager_->Prepare(PrepareOf("r2")).status().code(), absl::StatusCode::kUnavailable);
  Restart();
  EXPECT_THAT(Stop("r1")->stop_reason(), HasSubstr("shutdown"));
}

TEST_F(RecordingManagerTest, WhatNobodyFetchesIsForgottenAfterItsRetention) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Stop("r1").ok());
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  clock_.now_ns += kRetentionNs;
  manager_->Tick();
  EXPECT_TRUE(manager_->Recordings().empty());
  EXPECT_FALSE(std::filesystem::exists(DirectoryOf("r1")));
}

TEST_F(RecordingManagerTest, AWallClockThatIsSetForgetsNothing) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Stop("r1").ok());
  clock_.realtime_offset_ns = 2 * kRetentionNs;
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  // Nor one that is wrong when the agent starts, as long as it is set right soon.
  Restart();
  manager_->Tick();
  clock_.now_ns += kHourNs / 2;
  manager_->Tick();
  clock_.realtime_offset_ns = 0;
  clock_.now_ns += kHourNs;
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  // One that goes wrong later: it was young when it was met.
  Restart();
  clock_.now_ns += 2 * kHourNs;
  clock_.realtime_offset_ns = 2 * kRetentionNs;
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
}

TEST_F(RecordingManagerTest, WhatAnotherAgentLeftLongAgoIsForgotten) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Stop("r1").ok());
  clock_.now_ns += kRetentionNs - kHourNs / 2;  // without an agent
  Restart();
  clock_.now_ns += kHourNs / 4;
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  clock_.now_ns += kHourNs;
  manager_->Tick();
  EXPECT_TRUE(manager_->Recordings().empty());
}

TEST_F(RecordingManagerTest, ReleasingAnActiveRecordingNeedsToBeMeant) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  EXPECT_EQ(Release("r1", false).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(manager_->DirectoryForFetch("r1").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Release("r1", true).ok());
  EXPECT_TRUE(lttng_.running.empty());
}

TEST_F(RecordingManagerTest, ProcessesHeldByAnotherAgentAreRefused) {
  gate_.lock_status = absl::FailedPreconditionError("being recorded for bob@laptop");
  EXPECT_THAT(std::string(manager_->Prepare(PrepareOf("r1")).status().message()),
              HasSubstr("bob@laptop"));
}

TEST_F(RecordingManagerTest, ASessionDaemonIsStartedWhenThereIsNone) {
  lttng_.alive = false;
  runner_.on_run = [&] { lttng_.alive = true; };
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_EQ(runner_.runs.size(), 1u);
  EXPECT_EQ(runner_.runs[0][0], "lttng-sessiond");
}

TEST_F(RecordingManagerTest, MissingLttngIsSaid) {
  lttng_.alive = false;
  runner_.result = absl::NotFoundError("no such program");
  EXPECT_THAT(std::string(manager_->Prepare(PrepareOf("r1")).status().message()),
              HasSubstr("lttng-tools"));
}

}  // namespace
}  // namespace syncline::agent
