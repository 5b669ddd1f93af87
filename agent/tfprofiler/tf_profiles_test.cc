// SPDX-License-Identifier: Apache-2.0
#include "agent/tfprofiler/tf_profiles.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/tfprofiler/fake_worker.h"
#include "agent/tfprofiler/profile_shares.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr int64_t kMsNs = 1'000'000;
constexpr int64_t kLongNs = 100'000 * kMsNs;  // nobody waits so long

TEST(PlanPieceTest, PiecesFollowEachOtherToTheEnd) {
  EXPECT_EQ(PlanPiece(900, 1000, 0, 500).start_realtime_ns, 1000) << "the first waits";
  EXPECT_EQ(PlanPiece(1200, 1000, 0, 500).start_realtime_ns, 1200);
  EXPECT_EQ(PlanPiece(1200, 1000, 0, 500).duration_ns, 500);
  EXPECT_EQ(PlanPiece(0, 0, 300 * kMsNs, 200 * kMsNs).duration_ns, 200 * kMsNs);
  EXPECT_EQ(PlanPiece(200 * kMsNs, 0, 300 * kMsNs, 200 * kMsNs).duration_ns, 100 * kMsNs);
  EXPECT_EQ(PlanPiece(299 * kMsNs, 0, 300 * kMsNs, 200 * kMsNs).duration_ns, 0) << "not worth it";
  EXPECT_EQ(PlanPiece(400 * kMsNs, 0, 300 * kMsNs, 200 * kMsNs).duration_ns, 0);
}

TEST(ProfileShares, UsersShareAlikeAndTheirWorkersTheirPart) {
  EXPECT_THAT(ShareBytes({}, 100), IsEmpty());
  EXPECT_THAT(ShareBytes({7}, 100), testing::ElementsAre(100));
  EXPECT_THAT(ShareBytes({7, 8, 7}, 100), testing::ElementsAre(25, 50, 25));
  std::vector<uint32_t> users(kProfilesOfUserMax + 1, 7);
  users.push_back(8);
  const std::vector<uint64_t> shares = ShareBytes(users, 2 * kProfilesOfUserMax * 10);
  EXPECT_EQ(shares.front(), 10u);
  EXPECT_EQ(shares[kProfilesOfUserMax], 0u);
  EXPECT_EQ(shares.back(), kProfilesOfUserMax * 10);
}

TEST(ProfileShares, UsersTakeTurns) {
  EXPECT_THAT(InTurns({7, 7, 7, 8, 8, 9}, 9), testing::ElementsAre(0, 3, 5, 1, 4, 2));
  EXPECT_THAT(InTurns({7, 7, 7, 8}, 2), testing::ElementsAre(0, 3, 1));
}

class FakeFinder : public ProfilerFinder {
 public:
  std::vector<FoundProfiler> Find() override { return found; }
  std::vector<FoundProfiler> found;
};

class TfProfilesTest : public testing::Test {
 protected:
  TfProfilesTest() {
    std::string pattern = testing::TempDir() + "tf-profiles-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    limits_.connect_limit_ms = 30'000;
    limits_.terminate_limit_ms = 30'000;
  }
  ~TfProfilesTest() override {
    profiles_.reset();
    std::filesystem::remove_all(directory_);
  }

  FoundProfiler Found(const FakeWorker& worker, int32_t pid = 26) {
    FoundProfiler found;
    found.process.pid = pid + 1000;
    found.process.own_pid = pid;
    found.process.pid_namespace = 17;
    found.process.start_ticks = 40123;
    found.address = "127.0.0.1";
    found.port = worker.port();
    found.task = "/job:worker/replica:0/task:0";
    found.incarnation = "0000000000abcdef";
    return found;
  }
  void Begin(int64_t length_ns, int level = 0, int device_level = 0) {
    profiles_ = std::make_unique<TfProfiles>(&finder_, &clock_, &log_, limits_);
    profiles_->Find({});
    profiles_->Begin({.recording_id = "r1",
                      .directory = directory_,
                      .length_ns = length_ns,
                      .host_tracer_level = level,
                      .device_tracer_level = device_level});
  }
  std::vector<v1::Complaint> Finish() {
    profiles_->End();
    return profiles_->Collect();
  }
  nlohmann::json List() {
    const auto text = ReadFile(directory_ / "xspace" / "profiles.json");
    return text.ok() ? nlohmann::json::parse(*text, nullptr, false)["profiles"] : nlohmann::json();
  }
  void AwaitEntries(size_t count) {
    while (List().size() < count) clock_.SleepNs(kMsNs);
  }
  std::string Bytes(const nlohmann::json& entry) {
    return ReadFile(directory_ / "xspace" / entry.value("file", "none")).value_or("");
  }

  std::filesystem::path directory_;
  ProfileLimits limits_;
  SystemClock clock_;
  Log log_{-1, &clock_};
  FakeFinder finder_;
  std::unique_ptr<TfProfiles> profiles_;
};

TEST_F(TfProfilesTest, AWholeProfileIsKeptAsItCame) {
  FakeWorker worker(Behaviour::kRecords);
  finder_.found = {Found(worker)};
  const int64_t before_ns = clock_.RealtimeNs();
  limits_.piece_ns = 20 * kMsNs;
  Begin(0, 2, 1);
  AwaitEntries(1);
  EXPECT_THAT(Finish(), IsEmpty());
  const nlohmann::json entry = List()[0];
  EXPECT_EQ(entry["state"], "complete") << entry;
  EXPECT_EQ(entry["file"], "17-26-40123-0.xspace.pb");
  EXPECT_EQ(Bytes(entry), worker.xspace);
  EXPECT_EQ(entry["bytes"], worker.xspace.size());
  EXPECT_EQ(entry["own_pid"], 26);
  EXPECT_EQ(entry["task"], "/job:worker/replica:0/task:0");
  EXPECT_EQ(entry["host_tracer_level"], 2);
  EXPECT_LE(before_ns, entry["begin_realtime_ns"].get<int64_t>());
  EXPECT_LE(entry["begin_realtime_ns"], entry["end_realtime_ns"]);
  const tensorflow::ProfileRequest request = worker.requests()[0];
  EXPECT_TRUE(request.emit_xspace());
  EXPECT_EQ(request.opts().version(), 1u);
  EXPECT_EQ(request.opts().host_tracer_level(), 2u);
  EXPECT_EQ(request.opts().device_tracer_level(), 1u);
  EXPECT_EQ(request.opts().python_tracer_level(), 0u);
  EXPECT_EQ(request.opts().duration_ms(), 20u);
  EXPECT_EQ(request.opts().start_timestamp_ns(), entry["asked_start_realtime_ns"].get<uint64_t>());
}

TEST_F(TfProfilesTest, AnEarlyEndCutsTheProfileAndKeepsWhatThereIs) {
  FakeWorker worker(Behaviour::kRecords);
  finder_.found = {Found(worker)};
  Begin(kLongNs);
  worker.AwaitRequests(1);
  EXPECT_THAT(Finish(), IsEmpty());
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0]["state"], "cut") << List();
  EXPECT_EQ(Bytes(List()[0]), worker.xspace);
}

TEST_F(TfProfilesTest, AnEndBeforeAnythingWasAskedAsksNothing) {
  FakeWorker worker(Behaviour::kRecords);
  finder_.found = {Found(worker)};
  profiles_ = std::make_unique<TfProfiles>(&finder_, &clock_, &log_, limits_);
  profiles_->Find({});
  profiles_->Begin(
      {.recording_id = "r1", .directory = directory_, .start_raw_ns = clock_.RawNs() + kLongNs});
  EXPECT_THAT(Finish(), IsEmpty());
  EXPECT_THAT(worker.requests(), IsEmpty());
}

TEST_F(TfProfilesTest, LongRecordingsComeInPiecesWithNamesOfTheirOwn) {
  FakeWorker worker(Behaviour::kRecords);
  finder_.found = {Found(worker)};
  limits_.piece_ns = 10 * kMsNs;
  Begin(0);
  worker.AwaitRequests(4);
  Finish();
  const nlohmann::json list = List();
  ASSERT_GE(list.size(), 4u);
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i]["piece"], i);
    EXPECT_EQ(Bytes(list[i]), worker.xspace);
    if (i == 0) continue;
    EXPECT_NE(list[i]["file"], list[i - 1]["file"]);
    EXPECT_NE(list[i]["session"], list[i - 1]["session"]);
    EXPECT_GE(list[i]["begin_realtime_ns"], list[i - 1]["end_realtime_ns"]);
  }
}

TEST_F(TfProfilesTest, AWorkerWithCollectivesIsAskedOnlyOnRequest) {
  FakeWorker worker(Behaviour::kRecords);
  FoundProfiler found = Found(worker);
  found.runs_collectives = true;
  finder_.found = {found};
  Begin(kLongNs);
  const std::vector<v1::Complaint> complaints = Finish();
  EXPECT_THAT(worker.requests(), IsEmpty());
  EXPECT_EQ(List()[0]["state"], "missing");
  EXPECT_THAT(List()[0]["failure"], HasSubstr("collectives"));
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0].what(), HasSubstr("crashes workers"));
  EXPECT_THAT(complaints[0].fix(), HasSubstr("--tf-profiler-collectives"));

  profiles_->Find({});
  profiles_->Begin({.recording_id = "r2",
                    .directory = directory_,
                    .length_ns = kLongNs,
                    .collectives_too = true});
  worker.AwaitRequests(1);
  EXPECT_THAT(Finish(), IsEmpty());
  EXPECT_EQ(List()[0]["state"], "cut");
}

TEST_F(TfProfilesTest, LookAlikesLeaveOtherUsersWorkersTheirShare) {
  FakeWorker look_alike(Behaviour::kBusy);
  FakeWorker worker(Behaviour::kRecords);
  worker.xspace = std::string(3 << 20, 'x');
  for (int i = 0; i < 1'000; ++i) {
    finder_.found.push_back(Found(look_alike, 100 + i));
    finder_.found.back().process.uid = 1001;
  }
  finder_.found.push_back(Found(worker));
  finder_.found.back().process.uid = 1002;
  limits_.piece_ns = 20 * kMsNs;
  Begin(0);
  worker.AwaitRequests(2);
  look_alike.AwaitRequests(kProfilesOfUserMax);
  const auto complaints = Finish();
  EXPECT_THAT(look_alike.requests(), SizeIs(kProfilesOfUserMax));
  EXPECT_THAT(complaints, SizeIs(kProfilesOfUserMax + 1));
  EXPECT_THAT(complaints.back().what(), HasSubstr("User 1001"));
  EXPECT_THAT(complaints.back().what(), HasSubstr("936 of these processes"));
  const nlohmann::json list = List();
  const auto first = std::find_if(list.begin(), list.end(),
                                  [](const nlohmann::json& one) { return one["own_pid"] == 26; });
  ASSERT_NE(first, list.end());
  EXPECT_EQ((*first)["state"], "complete") << *first;
  EXPECT_EQ(Bytes(*first).size(), worker.xspace.size());
}

TEST_F(TfProfilesTest, ABusyProfilerIsSaidAndLeftAlone) {
  FakeWorker worker(Behaviour::kBusy);
  FakeWorker idle(Behaviour::kRecords);
  finder_.found = {Found(worker), Found(idle, 27)};
  limits_.piece_ns = 10 * kMsNs;
  Begin(0);
  worker.AwaitRequests(1);
  idle.AwaitRequests(2);
  const auto complaints = Finish();
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_EQ(complaints[0].pid(), 1026);
  EXPECT_THAT(complaints[0].what(), HasSubstr("in use by another client"));
  EXPECT_THAT(complaints[0].fix(), HasSubstr("--no-tf-profiler"));
  const nlohmann::json list = List();
  ASSERT_GE(list.size(), 3u);
  EXPECT_EQ(list[0]["state"], "busy");
  EXPECT_FALSE(list[0].contains("file"));
  EXPECT_EQ(list[1]["state"], "complete") << "the other one's operators are there";
  EXPECT_THAT(worker.requests(), SizeIs(1)) << "not tried again";
}

TEST_F(TfProfilesTest, AWorkerThatHangsHoldsUpNobodyForLong) {
  FakeWorker worker(Behaviour::kHangs);
  finder_.found = {Found(worker)};
  limits_.give_up_ns = 100 * kMsNs;
  Begin(kLongNs);
  worker.AwaitRequests(1);
  const auto complaints = Finish();
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0].what(), HasSubstr("did not deliver its profile"));
  EXPECT_EQ(List()[0]["state"], "failed");
}

TEST_F(TfProfilesTest, AWorkerThatIsTooSlowIsGivenUpWhileTheRecordingGoesOn) {
  FakeWorker worker(Behaviour::kHangs);
  finder_.found = {Found(worker)};
  limits_.answer_limit_ns = 50 * kMsNs;
  limits_.piece_ns = 10 * kMsNs;
  Begin(0);
  AwaitEntries(1);
  EXPECT_EQ(List()[0]["state"], "failed");
  EXPECT_THAT(Finish(), SizeIs(1));
  EXPECT_LE(worker.requests().size(), 1u) << "not tried again";
}

TEST_F(TfProfilesTest, AWorkerThatDiesIsSaid) {
  FakeWorker worker(Behaviour::kRecords);
  finder_.found = {Found(worker)};
  Begin(kLongNs);
  worker.AwaitRequests(1);
  worker.Kill();
  AwaitEntries(1);
  const auto complaints = Finish();
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0].what(), HasSubstr("exited while its profile was running"));
}

TEST_F(TfProfilesTest, AWorkerThatIsGoneIsSaid) {
  FakeWorker worker(Behaviour::kRecords);
  finder_.found = {Found(worker)};
  worker.Kill();
  Begin(kLongNs);
  AwaitEntries(1);
  EXPECT_THAT(Finish(), SizeIs(1));
  EXPECT_EQ(List()[0]["state"], "failed");
}

TEST_F(TfProfilesTest, AnAnswerThatIsTooLargeIsRefusedAndTheNextPieceIsShorter) {
  FakeWorker worker(Behaviour::kRecords);
  worker.xspace = std::string(100'000, 'x');
  finder_.found = {Found(worker)};
  limits_.answer_bytes_max = 50'000;
  limits_.piece_ns = 40 * kMsNs;
  limits_.piece_ns_min = 10 * kMsNs;
  Begin(0);
  AwaitEntries(3);
  const auto complaints = Finish();
  ASSERT_THAT(complaints, SizeIs(1)) << "one for a process, however many pieces";
  EXPECT_THAT(complaints[0].what(), HasSubstr("larger than"));
  const nlohmann::json list = List();
  ASSERT_THAT(list, SizeIs(3)) << "and at the shortest length it is given up";
  EXPECT_EQ(list[0]["asked_duration_ns"], 40 * kMsNs);
  EXPECT_EQ(list[1]["asked_duration_ns"], 20 * kMsNs);
  EXPECT_EQ(list[2]["asked_duration_ns"], 10 * kMsNs);
  for (const nlohmann::json& entry : list) EXPECT_EQ(entry["state"], "failed");
}

TEST_F(TfProfilesTest, AnEmptyProfileIsOne) {
  FakeWorker worker(Behaviour::kEmpty);
  finder_.found = {Found(worker)};
  limits_.piece_ns = 20 * kMsNs;
  Begin(0);
  AwaitEntries(1);
  EXPECT_THAT(Finish(), IsEmpty());
  EXPECT_EQ(List()[0]["state"], "empty");
}

TEST_F(TfProfilesTest, ATensorFlowWithoutInlineDataIsSaid) {
  FakeWorker worker(Behaviour::kTooOld);
  finder_.found = {Found(worker)};
  limits_.piece_ns = 20 * kMsNs;
  Begin(0);
  AwaitEntries(1);
  const auto complaints = Finish();
  ASSERT_THAT(complaints, SizeIs(1));
  EXPECT_THAT(complaints[0].what(), HasSubstr("too old"));
  EXPECT_THAT(worker.requests()[0].repository_root(), Not(IsEmpty()))
      << "an empty one is the job's own directory, and old workers write there";
}

TEST_F(TfProfilesTest, AProcessWithoutAPortIsListedAndNoReasonToComplainAgain) {
  FakeWorker worker(Behaviour::kRecords);
  finder_.found = {Found(worker)};
  finder_.found[0].port = 0;
  finder_.found[0].absence = "it listens on no port";
  Begin(kLongNs);
  EXPECT_THAT(Finish(), IsEmpty()) << "the inventory says it";
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0]["state"], "missing");
  EXPECT_EQ(List()[0]["failure"], "it listens on no port");
}

TEST_F(TfProfilesTest, WithoutTensorFlowNothingIsWritten) {
  Begin(kLongNs);
  EXPECT_THAT(Finish(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "xspace"));
}

TEST_F(TfProfilesTest, WhoIsLeftOutIsNotAsked) {
  FakeWorker worker(Behaviour::kRecords);
  FakeWorker other(Behaviour::kRecords);
  finder_.found = {Found(worker), Found(other, 27)};
  finder_.found[1].process.uid = 1001;
  profiles_ = std::make_unique<TfProfiles>(&finder_, &clock_, &log_, limits_);
  profiles_->Find({1001});
  profiles_->Begin({.recording_id = "r1", .directory = directory_, .length_ns = kLongNs});
  worker.AwaitRequests(1);
  EXPECT_THAT(Finish(), IsEmpty());
  EXPECT_THAT(List(), SizeIs(1));
  EXPECT_THAT(other.requests(), IsEmpty());
}

TEST_F(TfProfilesTest, ASecondBeginDoesNothingAndANewRecordingBeginsAnew) {
  FakeWorker worker(Behaviour::kRecords);
  finder_.found = {Found(worker)};
  Begin(kLongNs);
  profiles_->Begin({.recording_id = "r1", .directory = directory_});
  worker.AwaitRequests(1);
  Finish();
  EXPECT_THAT(List(), SizeIs(1));
  EXPECT_THAT(worker.requests(), SizeIs(1));
  profiles_->Find({});
  profiles_->Begin({.recording_id = "r2", .directory = directory_, .length_ns = kLongNs});
  worker.AwaitRequests(2);
  Finish();
  EXPECT_THAT(List(), SizeIs(1)) << "of the second recording";
}

}  // namespace
}  // namespace syncline::agent
