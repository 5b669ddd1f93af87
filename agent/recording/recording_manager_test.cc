// SPDX-License-Identifier: Apache-2.0
#include "agent/recording/recording_manager.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "agent/host/fake_process.h"
#include "agent/recording/manager_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "instrumentation/abi/events.h"

namespace syncline::agent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

TEST_F(RecordingManagerTest, WholeLife) {
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_THAT(lttng_.calls, ElementsAre("create", "start", "stop", "start"));
  EXPECT_THAT(lttng_.spec.events, ElementsAreArray(abi::EventPatterns()));
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
  request.set_tf_profiler_device_level(1);
  request.set_detail(v1::DETAIL_LOW);
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
  EXPECT_EQ(profiles_.window.device_tracer_level, 1);
  EXPECT_EQ(gate_.detail, (LeftOut{.operators_least_us = 500, .messages = true}));
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

// A coordinator that was suspended asks for the start of what has ended meanwhile.
TEST_F(RecordingManagerTest, WhatEndedBeforeItsStartSaysWhy) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Stop("r1").ok());
  EXPECT_THAT(
      std::string(Start("r1").status().message()),
      AllOf(HasSubstr("\"r1\" ended on this node before its start: requested. Record again"),
            Not(HasSubstr("STOPPED"))));
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

TEST_F(RecordingManagerTest, NotReadyWhenTheSessionDaemonWasStoppedMeanwhile) {
  std::filesystem::create_directories(data_ / "proc/self/ns");
  std::filesystem::create_symlink("pid:[4026531836]", data_ / "proc/self/ns/pid");
  AddFakeProcess(data_ / "proc", 'S', 1000);
  std::string stat = ReadFile(data_ / "proc/1234/stat").value();
  stat.replace(stat.find("(python (x)) S"), 14, "(lttng-sessiond) T");
  ASSERT_TRUE(WriteFileAtomically(data_ / "proc/1234/stat", stat).ok());
  const auto refused = manager_->Prepare(PrepareOf("r1")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("was stopped while"));
  EXPECT_TRUE(lttng_.running.empty());
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

// A process that is registered with LTTng, and has no descriptor of it any more.
v1::ProcessInfo WithoutDescriptors(const std::filesystem::path& proc, uint32_t uid) {
  v1::ProcessInfo process;
  process.set_pid(40);
  process.set_own_pid(40);
  process.set_uid(uid);
  process.set_command_line("launcher");
  process.set_has_control_block(true);
  EXPECT_TRUE(MakeDirectories(proc / "40/fd").ok());
  EXPECT_TRUE(WriteFileAtomically(proc / "40/maps",
                                  "7f00-7f01 rw-s 00000000 00:18 7 "
                                  "/dev/shm/shm-event-notifier-error-accounting-8 (deleted)\n")
                  .ok());
  return process;
}

TEST_F(RecordingManagerTest, AUserWhoseProcessLttngWouldAbortIsLeftOutByName) {
  gate_.processes = {WithoutDescriptors(data_ / "proc", 1001)};
  lttng_.failures["programs"] = absl::InternalError("all programs were asked");
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_THAT(lttng_.spec.only_users, ElementsAre(1000));
  EXPECT_THAT(canary_.sung_for, ElementsAre(1000));
  EXPECT_THAT(gate_.left_out, ElementsAre(1001));
  ASSERT_EQ(prepared->complaints_size(), 1);
  EXPECT_THAT(prepared->complaints(0).what(), HasSubstr("Process 40 (launcher) has closed"));
  EXPECT_TRUE(prepared->complaints(0).not_recorded());
  EXPECT_EQ(prepared->complaints(0).uid(), 1001u);
}

TEST_F(RecordingManagerTest, LttngDoesNotRecordWhomAnotherAgentRecords) {
  gate_.refused = {1001};
  gate_.processes.resize(1);  // of one who came when the others had been locked
  gate_.processes[0].set_uid(1002);
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  EXPECT_THAT(lttng_.spec.only_users, ElementsAre(1000));
  EXPECT_THAT(canary_.sung_for, ElementsAre(1000));
  // It may have begun before that agent was there.
  const std::filesystem::path uids = DirectoryOf("r1") / "trace/ust/uid";
  for (const char* uid : {"1000", "1001"}) {
    ASSERT_TRUE(MakeDirectories(uids / uid / "64-bit").ok());
    std::ofstream(uids / uid / "64-bit/syncline_0") << "bytes";
  }
  ASSERT_TRUE(Start("r1").ok());
  ASSERT_TRUE(Stop("r1").ok());
  EXPECT_TRUE(std::filesystem::exists(uids / "1000"));
  EXPECT_FALSE(std::filesystem::exists(uids / "1001"));
}

TEST_F(RecordingManagerTest, WhereThatUserIsTheAgentsOwnNothingIsBegun) {
  gate_.processes = {WithoutDescriptors(data_ / "proc", 1000)};
  const auto refused = manager_->Prepare(PrepareOf("r1"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("Process 40 (launcher) has closed"));
  EXPECT_THAT(lttng_.calls, testing::Not(testing::Contains("start")));
}

TEST_F(RecordingManagerTest, WithOurPreloadedLibraryItIsRecorded) {
  gate_.processes = {WithoutDescriptors(data_ / "proc", 1000)};
  const auto maps = ReadFile(data_ / "proc/40/maps", 1000);
  ASSERT_TRUE(
      WriteFileAtomically(data_ / "proc/40/maps", *maps + "7f02-7f03 r-xp 00000000 00:18 8 "
                                                          "/opt/syncline/lib/libsyncline_net.so\n")
          .ok());
  EXPECT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
}

TEST_F(RecordingManagerTest, WhoseStoppedProgramsWouldHoldUpAllIsLeftOut) {
  gate_.processes = {WithoutDescriptors(data_ / "proc", 1001)};  // of it, no more than its maps
  for (int pid = 50; pid < 55; ++pid) {
    AddFakeProcess(data_ / "proc", 'T', 1001);
    std::filesystem::copy(data_ / "proc/40/maps", data_ / "proc/1234/maps");
    std::filesystem::rename(data_ / "proc/1234", data_ / "proc" / std::to_string(pid));
  }
  gate_.processes[0].set_has_control_block(false);
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_THAT(lttng_.spec.only_users, ElementsAre(1000));
  EXPECT_THAT(prepared->complaints(0).what(), HasSubstr("User 1001 has 5 stopped programs"));
}

// So many programs of user 1001 that LTTng knows are stopped.
void AddStopped(const std::filesystem::path& proc, int count) {
  for (int pid = 50; pid < 50 + count; ++pid) {
    AddFakeProcess(proc, 'T', 1001);
    ASSERT_TRUE(WriteFileAtomically(proc / "1234/maps",
                                    "7f00-7f01 rw-s 0 00:18 7 "
                                    "/dev/shm/shm-event-notifier-error-accounting-8 (deleted)\n")
                    .ok());
    std::filesystem::rename(proc / "1234", proc / std::to_string(pid));
  }
}

TEST_F(RecordingManagerTest, AsTheRecordingEndsAFewStoppedProgramsAreWaitedFor) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  AddStopped(data_ / "proc", 4);
  lttng_.failures["stop"] = absl::DeadlineExceededError("LTTng did not answer");
  lttng_.failures_left["stop"] = 2;
  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_TRUE(stopped->complete());
  EXPECT_EQ(std::count(lttng_.calls.begin(), lttng_.calls.end(), "stop"), 1 + 3);  // the canary's
  EXPECT_GE(lttng_.destroy_wait_ms, 5'000);
}

TEST_F(RecordingManagerTest, AsTheRecordingEndsManyStoppedProgramsAreNamed) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  AddStopped(data_ / "proc", 6);
  lttng_.failures["stop"] = absl::DeadlineExceededError("LTTng did not answer");
  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_FALSE(stopped->complete());
  EXPECT_EQ(std::count(lttng_.calls.begin(), lttng_.calls.end(), "stop"), 1 + 1);
  EXPECT_LE(lttng_.destroy_wait_ms, 500);
  ASSERT_EQ(stopped->complaints_size(), 1);
  const std::string what = stopped->complaints(0).what();
  EXPECT_THAT(what, HasSubstr("6 are: process "));
  EXPECT_THAT(what, HasSubstr(" of user 1001, process "));
  EXPECT_THAT(what, HasSubstr(" and 1 more; continue them"));
}

TEST_F(RecordingManagerTest, StoppedProgramsOfWhoIsNotRecordedHoldNobodyUp) {
  gate_.refused = {1001};
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  AddStopped(data_ / "proc", 6);
  lttng_.failures["stop"] = absl::DeadlineExceededError("LTTng did not answer");
  const auto stopped = Stop("r1");
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  ASSERT_EQ(stopped->complaints_size(), 1);
  EXPECT_THAT(stopped->complaints(0).what(), HasSubstr("LTTng did not answer"));
}

TEST_F(RecordingManagerTest, LttngMayStillWaitForThemAsTheNextBegins) {
  AddStopped(data_ / "proc", 6);
  lttng_.failures["sessions"] = absl::DeadlineExceededError("LTTng did not answer");
  lttng_.failures_left["sessions"] = 3;
  EXPECT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Release("r1", true).ok());

  lttng_.failures_left.clear();  // it never answers
  const auto refused = manager_->Prepare(PrepareOf("r2")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("6 are: process "));
}

TEST_F(RecordingManagerTest, SmallSharedMemoryIsSaidBeforeReady) {
  room_.shm_free_bytes = 100'000;
  const auto prepared = manager_->Prepare(PrepareOf("r1"));
  EXPECT_EQ(prepared.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(lttng_.calls.empty() || lttng_.running.empty());
}

TEST_F(RecordingManagerTest, AFullDiskIsSaidBeforeReady) {
  room_.disk_free_bytes = 1 << 20;
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

TEST_F(RecordingManagerTest, WhatHindersStoppingIsNotWaitedForTwice) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  ASSERT_TRUE(Stop("r1").ok());
  EXPECT_GE(lttng_.destroy_wait_ms, 5'000);
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r2")).ok());
  ASSERT_TRUE(Start("r2").ok());
  lttng_.failures["stop"] =
      absl::DeadlineExceededError("a program stands in the midst of an event");
  const auto stopped = Stop("r2");
  ASSERT_TRUE(stopped.ok());
  EXPECT_FALSE(stopped->complete());
  EXPECT_LE(lttng_.destroy_wait_ms, 500);
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
