// SPDX-License-Identifier: Apache-2.0
// What is left of recordings: after a kill of the agent, with and without a guard, and for how
// long.

#include <filesystem>
#include <string>

#include "agent/recording/manager_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  room_.disk_free_bytes = 1000;
  manager_->Tick();
  EXPECT_THAT(Stop("r2")->stop_reason(), HasSubstr("disk"));
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

TEST_F(RecordingManagerTest, AGuardKnowsTheGenerationBeforeAGateIsOpen) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  gate_.refused = {1001};  // another agent records them, with numbers of its own
  uint32_t told = 0;
  gate_.on_open = [&] { told = guard_.orders.generation(); };
  ASSERT_TRUE(Start("r1").ok());
  EXPECT_EQ(told, 7u) << "the agent may die with the gates open";
  EXPECT_THAT(guard_.orders.other_uids(), ElementsAre(1001));
  guard_.orders.set_agent_lives(true);
  manager_->EndForAgent(guard_.orders);
  EXPECT_THAT(gate_.last_leftover.others, ElementsAre(1001));
  EXPECT_TRUE(gate_.last_leftover.agent_lives);
  Restart();
  EXPECT_EQ(gate_.last_leftover.generation, 7u);
  EXPECT_THAT(gate_.last_leftover.others, ElementsAre(1001));
  EXPECT_FALSE(gate_.last_leftover.agent_lives);
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

TEST_F(RecordingManagerTest, OneThatNeverBeganHasNoCountsOfTheOneBefore) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  EXPECT_EQ(Stop("r1")->coverage_size(), 1);
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r2")).ok());
  manager_->Shutdown();
  EXPECT_EQ(Stop("r2")->coverage_size(), 0);
}

TEST_F(RecordingManagerTest, OneThatNeverBeganHasNoCountsOfAnotherThatWasAdopted) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  gate_.tells = 7;
  journal::Entry ready;
  ready.set_state(v1::READY);
  ready.set_session_name("syncline-x-r2");
  ASSERT_TRUE(MakeDirectories(DirectoryOf("r2")).ok());
  ASSERT_TRUE(Journal(DirectoryOf("r2") / "journal").Append(ready).ok());
  Restart();
  EXPECT_EQ(Stop("r1")->coverage_size(), 1);
  EXPECT_EQ(Stop("r2")->coverage_size(), 0);
}

TEST_F(RecordingManagerTest, AfterAKillWhileItWasStoppedTheRecordingIsAsItWasAskedFor) {
  lttng_.counters = {{.name = "syncline", .discarded_events = 3}};
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  const auto whole = Stop("r1");
  ASSERT_TRUE(whole.ok());
  const std::filesystem::path journal = DirectoryOf("r1") / "journal";
  std::string lines = ReadFile(journal).value();
  for (const char* step : {"keep", "destroy", "flush"}) {
    SCOPED_TRACE(step);
    lines.erase(lines.rfind('\n', lines.size() - 2) + 1);  // the last line was never written
    ASSERT_TRUE(WriteFileAtomically(journal, lines).ok());
    EXPECT_EQ(Journal(journal).Read()->step(), step);
    // A session that is flushed is still there; one that is being destroyed may be.
    lttng_.running.clear();
    if (std::string(step) == "flush")
      lttng_.running[Journal(journal).Read()->session_name()] = true;
    clock_.now_ns += kSecondNs;
    Restart();
    const auto stopped = Stop("r1");
    ASSERT_TRUE(stopped.ok());
    EXPECT_TRUE(stopped->complete());
    EXPECT_EQ(stopped->stop_reason(), "requested");
    EXPECT_EQ(stopped->gate_end_monotonic_raw_ns(), whole->gate_end_monotonic_raw_ns());
    ASSERT_EQ(stopped->channels_size(), 1);
    EXPECT_EQ(stopped->channels(0).discarded_events_count(), 3u);
    EXPECT_EQ(stopped->coverage_size(), 1);
    EXPECT_TRUE(stopped->complaints().empty());
  }
}

TEST_F(RecordingManagerTest, WhatWasDeletedByHandIsNoEmptyRecording) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  ASSERT_TRUE(Stop("r1").ok());
  EXPECT_TRUE(manager_->DirectoryForFetch("r1").ok());
  std::filesystem::remove_all(DirectoryOf("r1"));
  const absl::Status gone = manager_->DirectoryForFetch("r1").status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(gone.message().find("\"r1\" was deleted on this node by hand"),
            absl::string_view::npos);
}

TEST_F(RecordingManagerTest, WhatNobodyFetchesIsForgottenAfterItsRetention) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
  ASSERT_TRUE(Stop("r1").ok());
  manager_->Tick();
  EXPECT_EQ(InfoOf("r1").state(), v1::STOPPED);
  clock_.now_ns += kRetentionNs;
  manager_->Tick();
  EXPECT_TRUE(manager_->Recordings().empty());
  EXPECT_FALSE(std::filesystem::exists(DirectoryOf("r1")));
}

TEST_F(RecordingManagerTest, WhatWasPreparedAndAbandonedIsRemovedSoonAfterItsLease) {
  v1::PrepareRequest request = PrepareOf("r1");
  request.set_lease_ms(5'000);
  ASSERT_TRUE(manager_->Prepare(request).ok());
  clock_.now_ns += 6 * kSecondNs;
  manager_->Tick();
  EXPECT_TRUE(lttng_.running.empty());
  EXPECT_THAT(InfoOf("r1").stop_reason(), HasSubstr("lease expired")) << "for who asks now";
  EXPECT_THAT(Start("r1").status().message(), HasSubstr("lease expired"));
  clock_.now_ns += 6 * kSecondNs;
  manager_->Tick();
  EXPECT_TRUE(manager_->Recordings().empty());
  EXPECT_FALSE(std::filesystem::exists(DirectoryOf("r1")));
  EXPECT_THAT(Start("r1").status().message(), HasSubstr("was not started before its lease"));
}

TEST_F(RecordingManagerTest, WhatWasPreparedAndIsStoppedByAnybodyIsKeptForAnHour) {
  v1::PrepareRequest request = PrepareOf("r1");
  request.set_lease_ms(5'000);
  ASSERT_TRUE(manager_->Prepare(request).ok());
  clock_.now_ns += 6 * kSecondNs;
  manager_->Tick();
  ASSERT_TRUE(Stop("r1").ok()) << "as a fetch does first";
  clock_.now_ns += kHourNs / 2;
  manager_->Tick();
  EXPECT_TRUE(std::filesystem::exists(DirectoryOf("r1")));
  clock_.now_ns += kHourNs;
  manager_->Tick();
  EXPECT_FALSE(std::filesystem::exists(DirectoryOf("r1")));
}

TEST_F(RecordingManagerTest, WhatItsLeaseEndsAfterItsStartIsKept) {
  v1::PrepareRequest request = PrepareOf("r1");
  request.set_lease_ms(5'000);
  ASSERT_TRUE(manager_->Prepare(request).ok());
  ASSERT_TRUE(Start("r1").ok());
  clock_.now_ns += 6 * kSecondNs;
  manager_->Tick();
  EXPECT_THAT(InfoOf("r1").stop_reason(), HasSubstr("lease expired"));
  clock_.now_ns += 2 * kHourNs;
  manager_->Tick();
  EXPECT_TRUE(std::filesystem::exists(DirectoryOf("r1")));
}

TEST_F(RecordingManagerTest, AWallClockThatIsSetForgetsNothing) {
  ASSERT_TRUE(manager_->Prepare(PrepareOf("r1")).ok());
  ASSERT_TRUE(Start("r1").ok());
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
  ASSERT_TRUE(Start("r1").ok());
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

}  // namespace
}  // namespace syncline::agent
