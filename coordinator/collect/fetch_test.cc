// SPDX-License-Identifier: Apache-2.0
#include "coordinator/collect/fetch.h"

#include <filesystem>

#include "common/files.h"
#include "coordinator/collect/incoming_file.h"
#include "coordinator/fleet/fake_agent.h"
#include "coordinator/host/fake_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::collect {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Fetch : public testing::Test {
 protected:
  Fetch()
      : layout_(fs::path(testing::TempDir()) /
                (std::string("syncline_fetch_") +
                 testing::UnitTest::GetInstance()->current_test_info()->name())),
        agent_(&clock_) {}
  void SetUp() override {
    fs::remove_all(layout_.root());
    agent_.files = {{"trace/ust/uid/0/64-bit/metadata", "the metadata"},
                    {"trace/ust/uid/0/64-bit/syncline_0", std::string(1000, 's')},
                    {"processes/1-26-5.block", "block"},
                    {"xspace/1-26-5-0.xspace.pb", "operators"},
                    {"clock.tuples", "tuples"},
                    {"node.json", "{}"},
                    {"agent.log", ""}};
  }
  void TearDown() override { fs::remove_all(layout_.root()); }

  absl::StatusOr<uint64_t> Run() {
    FetchOptions options;
    options.recording_id = "r1";
    options.node = "n1";
    options.attempts_max = attempts_max_;
    options.free_bytes = [this](const fs::path&) { return free_bytes_; };
    return FetchNode(&agent_, layout_, options, &clock_, stop_.get_token());
  }
  void ExpectWhole() {
    for (const auto& [path, bytes] : agent_.files) {
      const auto local = LocalPath(layout_, "n1", path);
      ASSERT_TRUE(local.ok());
      const auto text = ReadFile(*local);
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(*text, bytes) << path;
      EXPECT_FALSE(fs::exists(local->string() + ".part"));
    }
  }

  host::FakeClock clock_;
  recording::Layout layout_;
  fleet::FakeAgent agent_;
  std::stop_source stop_;
  uint64_t free_bytes_ = 1 << 30;
  int attempts_max_ = FetchOptions().attempts_max;
};

TEST_F(Fetch, BringsEverythingToItsPlace) {
  const auto bytes = Run();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, 12u + 1000 + 5 + 9 + 6 + 2);
  ExpectWhole();
  EXPECT_TRUE(fs::exists(layout_.Trace("n1") / "ust/uid/0/64-bit/syncline_0"));
  EXPECT_TRUE(fs::exists(layout_.Tuples("n1")));
}

TEST_F(Fetch, GoesOnWhereTheConnectionBroke) {
  agent_.behaviour.break_after_chunks = 100;
  ASSERT_TRUE(Run().ok());
  ExpectWhole();
  EXPECT_EQ(agent_.Count("fetch"), 2);
  uint64_t resumed = 0;
  const v1::FetchRequest last = agent_.last_fetch();
  for (const auto& entry : last.resume()) {
    if (entry.path() == "trace/ust/uid/0/64-bit/syncline_0") resumed = entry.offset_bytes();
  }
  EXPECT_GT(resumed, 100u);
}

TEST_F(Fetch, ADamagedChunkIsBroughtAgain) {
  agent_.behaviour.damage_path = "trace/ust/uid/0/64-bit/syncline_0";
  agent_.behaviour.damage_times = 2;
  ASSERT_TRUE(Run().ok());
  ExpectWhole();
}

TEST_F(Fetch, APrefixThatRottedIsNoticedAndBroughtAgain) {
  const auto local = *LocalPath(layout_, "n1", "trace/ust/uid/0/64-bit/syncline_0");
  ASSERT_TRUE(MakeDirectories(local.parent_path()).ok());
  ASSERT_TRUE(WriteFileAtomically(local.string() + ".part", std::string(500, 'x')).ok());
  ASSERT_TRUE(Run().ok());
  ExpectWhole();
}

TEST_F(Fetch, APrefixLongerThanTheFileIsDropped) {
  const auto local = *LocalPath(layout_, "n1", "processes/1-26-5.block");
  ASSERT_TRUE(MakeDirectories(local.parent_path()).ok());
  ASSERT_TRUE(WriteFileAtomically(local, std::string(500, 'x')).ok());
  ASSERT_TRUE(Run().ok());
  ExpectWhole();
}

TEST_F(Fetch, DamageWithoutEndGivesUp) {
  agent_.behaviour.lie_about_hash = true;
  const auto bytes = Run();
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(agent_.Count("fetch"), 4);
  EXPECT_FALSE(fs::exists(layout_.Trace("n1") / "ust/uid/0/64-bit/syncline_0"));
}

// The bytes that lie in the node's directory.
uint64_t BytesBelow(const fs::path& directory) {
  uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

TEST_F(Fetch, NoMoreIsWrittenThanWasListed) {
  agent_.behaviour.beyond_the_list = std::string(100'000, 'x');
  const auto bytes = Run();
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("that it listed"));
  EXPECT_EQ(agent_.Count("fetch"), 4);
  EXPECT_LE(BytesBelow(layout_.root()), 12u + 1000 + 5 + 9 + 6 + 2);
}

TEST_F(Fetch, AFileBeginsWhenTheOneBeforeHasEnded) {
  agent_.behaviour.unfinished_path = "processes/1-26-5.block";
  attempts_max_ = 1;
  const auto bytes = Run();
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("before the end of"));
}

TEST_F(Fetch, ANodeThatSendsALittleAndBreaksIsGivenUp) {
  // The file that is always brought whole comes each time, and the first byte of another.
  agent_.files = {{"agent.log", "a line"}, {"trace/stream", std::string(100'000, 's')}};
  agent_.chunk_bytes = 1;
  agent_.behaviour.break_after_chunks = 1 + 6 + 1 + 1;
  agent_.behaviour.break_times = 1'000;  // a test that fails ends, too
  EXPECT_EQ(Run().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(agent_.Count("fetch"), 4);
}

TEST_F(Fetch, AWeakLinkBringsALargeFileInTheEnd) {
  agent_.files = {{"trace/stream", std::string(10 << 20, 's')}};
  agent_.chunk_bytes = 256 << 10;
  agent_.behaviour.break_after_chunks = 2;  // the list, and one chunk
  agent_.behaviour.break_times = 39;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(agent_.Count("fetch"), 40);
  ExpectWhole();
}

TEST_F(Fetch, ATrickleIsNoTransfer) {
  agent_.files = {{"trace/stream", std::string(10'000, 's')}};
  agent_.behaviour.chunk_pause_ns = 10'000'000'000;  // less than what counts as silence
  const auto bytes = Run();
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("20 bytes in 60 s"));
}

TEST_F(Fetch, AFullDiskIsSaidBeforeTheFirstByte) {
  free_bytes_ = 100;
  const auto bytes = Run();
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("disk is too full"));
  EXPECT_EQ(agent_.Count("fetch"), 1);
}

TEST_F(Fetch, HostilePathsAreRefused) {
  for (const char* path : {"../x", "trace/../../x", "/etc/passwd", "trace//x", "trace/./x", "",
                           "processes/", "trace/a.part", ".."}) {
    EXPECT_FALSE(LocalPath(layout_, "n1", path).ok()) << path;
    agent_.files = {{path, "x"}};
    EXPECT_EQ(Run().status().code(), absl::StatusCode::kInvalidArgument) << path;
  }
}

TEST_F(Fetch, WhatANewerAgentKeepsBesidesIsBroughtToo) {
  agent_.files = {{"node.json", "{}"}, {"summary/1.bin", "of tomorrow"}, {"notes.json", "[]"}};
  ASSERT_TRUE(Run().ok());
  ExpectWhole();
  ASSERT_TRUE(Run().ok());  // and is not brought twice
  ExpectWhole();
}

TEST_F(Fetch, AnInterruptKeepsWhatCame) {
  stop_.request_stop();
  EXPECT_EQ(Run().status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace syncline::collect
