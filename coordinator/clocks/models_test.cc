// SPDX-License-Identifier: Apache-2.0
// The model of a recording from its files: what the nodes found out about each other counts.
#include "coordinator/clocks/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "clocksync/sample_file.h"
#include "common/files.h"

namespace syncline::clocks {
namespace {

using clocksync::ProbeSample;
using clocksync::StampSource;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;

// The coordinator's clock is zero, a's and b's are ahead by an hour and two.
class ModelsTest : public testing::Test {
 protected:
  ModelsTest()
      : directory_(fs::path(testing::TempDir()) /
                   (std::string("syncline_models_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name())),
        layout_(directory_) {
    fs::remove_all(directory_);
    fs::create_directories(layout_.Clocks());
    recording_.nodes.resize(2);
    recording_.nodes[0].name = "a";
    recording_.nodes[1].name = "b";
    for (recording::NodeRecord& node : recording_.nodes) {
      node.state = recording::NodeState::kComplete;
    }
    recording_.reference.node = "a";
    recording_.reference.zero_monotonic_raw_ns = 3605 * kSecond;
    Write("coordinator", "a", 0, 3600, 40'000, StampSource::kGrpc);
    Write("coordinator", "b", 0, 7200, 40'000, StampSource::kGrpc);
  }
  ~ModelsTest() override { fs::remove_all(directory_); }

  void Write(const std::string& local, const std::string& remote, int64_t local_s, int64_t remote_s,
             int64_t one_way_ns, StampSource source) {
    std::string bytes = clocksync::EncodeSamplesHeader(local, remote);
    for (int64_t i = 0; i < 10; ++i) {
      const int64_t t1 = (local_s + i) * kSecond;
      const int64_t t2 = (remote_s + i) * kSecond + one_way_ns;
      clocksync::AppendSample({.t1_local_ns = t1,
                               .t2_remote_ns = t2,
                               .t3_remote_ns = t2 + 1000,
                               .t4_local_ns = t1 + 2 * one_way_ns + 1000,
                               .source = source},
                              &bytes);
    }
    ASSERT_TRUE(WriteFileAtomically(layout_.Samples(local, remote), bytes).ok());
  }
  // Half the width of the interval between a's and b's clocks, and the estimate's error.
  std::pair<int64_t, int64_t> BoundAndError() {
    const auto built = BuildFromRecording(layout_, recording_);
    EXPECT_TRUE(built.ok()) << built.status();
    events_ = built->events;
    edges_ = built->edges;
    const auto apart = built->model.Difference({{0, ClockKind::kRaw}, 3605 * kSecond},
                                               {{1, ClockKind::kRaw}, 7205 * kSecond});
    return {(apart.hi_ns - apart.lo_ns) / 2, apart.est_ns};
  }

  fs::path directory_;
  recording::Layout layout_;
  recording::Recording recording_;
  std::vector<clocksync::ClockEvent> events_;
  std::vector<clocksync::EdgeQuality> edges_;
};

TEST_F(ModelsTest, TheNodesOwnProbesNarrowTheBound) {
  const auto [wide, wide_error] = BoundAndError();
  EXPECT_GT(wide, 70'000);
  EXPECT_EQ(edges_.size(), 2u);
  Write("a", "b", 3600, 7200, 150, StampSource::kKernel);
  const auto [narrow, error] = BoundAndError();
  EXPECT_LT(narrow, 400);
  EXPECT_GE(narrow, 100);
  EXPECT_LT(std::abs(error), 200);
  ASSERT_EQ(edges_.size(), 3u);
  EXPECT_EQ(edges_[2].source, StampSource::kKernel);
}

TEST_F(ModelsTest, StrangersAndDamagedFilesAreLeftOut) {
  const auto [wide, unused] = BoundAndError();
  Write("a", "stranger", 3600, 99, 1, StampSource::kKernel);
  ASSERT_TRUE(WriteFileAtomically(layout_.Samples("a", "b"), std::string("SYNCSMPL?")).ok());
  const auto [again, error] = BoundAndError();
  EXPECT_EQ(again, wide);
  EXPECT_EQ(edges_.size(), 2u);
  std::string told;
  for (const clocksync::ClockEvent& event : events_) told += event.node + ": " + event.text + "\n";
  EXPECT_THAT(told, HasSubstr("a--b: "));
}

TEST_F(ModelsTest, ADamagedByteCostsOneSampleAndIsSaid) {
  Write("a", "b", 3600, 7200, 150, StampSource::kKernel);
  const auto [whole, unused] = BoundAndError();
  for (const fs::path& path : {layout_.Samples("a", "b"), layout_.Samples("coordinator", "b")}) {
    std::string bytes = *ReadFile(path);
    bytes[bytes.size() / 2] ^= 0x55;
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }
  const auto [bound, error] = BoundAndError();
  EXPECT_LT(bound, whole + 200'000) << "a second without a sample, at 200 ppm";
  EXPECT_LT(std::abs(error), bound);
  EXPECT_EQ(edges_.size(), 3u);
  std::string told;
  for (const clocksync::ClockEvent& event : events_) told += event.node + ": " + event.text + "\n";
  EXPECT_THAT(told, HasSubstr("a--b: clocks/a--b.samples is damaged: 1 entry, the first at byte "));
  EXPECT_THAT(told, HasSubstr("b: clocks/coordinator--b.samples is damaged: 1 entry"));
}

TEST_F(ModelsTest, AStoredModelPlacesNodesWhoseSamplesAreGone) {
  ASSERT_TRUE(WriteModels(layout_, recording_).ok());
  fs::remove(layout_.Samples("coordinator", "b"));
  const auto told_of = [&](std::string* complaint) {
    auto built = BuildFromRecording(layout_, recording_);
    EXPECT_TRUE(built.ok()) << built.status();
    *complaint = CompareWithStored(layout_, &*built).complaint;
    std::string told;
    for (const clocksync::ClockEvent& event : built->events) {
      if (event.node == "b") told += event.text + "\n";
    }
    return told;
  };
  std::string complaint;
  EXPECT_THAT(told_of(&complaint),
              AllOf(HasSubstr("models.json was made from them and still"), Not(HasSubstr("wall"))));
  EXPECT_EQ(complaint, "");
  fs::remove(layout_.Models());
  EXPECT_THAT(told_of(&complaint), HasSubstr("placed by its wall clock"));
  EXPECT_THAT(complaint, AllOf(HasSubstr("models.json\" is missing"), HasSubstr("--refit`")));
  ASSERT_TRUE(WriteFileAtomically(layout_.Models(), std::string("{")).ok());
  told_of(&complaint);
  EXPECT_THAT(complaint, AllOf(HasSubstr("models.json\" is damaged"), HasSubstr("--refit`")));
}

// The stored model knows how many samples it was made of; a file's own end says when a record was
// cut.
TEST_F(ModelsTest, SamplesThatWereCutAreSaidWithHowManyAreLeft) {
  Write("a", "b", 3600, 7200, 150, StampSource::kKernel);
  const auto made = WriteModels(layout_, recording_);
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(SamplesLost(layout_, made->model), IsEmpty());
  const fs::path path = layout_.Samples("a", "b");
  const uint64_t samples = made->edges[2].samples;
  fs::resize_file(path, fs::file_size(path) / 2);
  const auto left = clocksync::DecodeSamples(*ReadFile(path));
  ASSERT_TRUE(left.ok());
  ASSERT_GT(left->truncated_bytes, 0u) << "cut between two samples: the test tests less";
  const std::string counts =
      absl::StrCat(left->samples.size(), " of its ", samples, " samples are left");
  auto lost = SamplesLost(layout_, made->model);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_TRUE(lost[0].cut);
  EXPECT_THAT(lost[0].text, AllOf(HasSubstr("a--b.samples was cut"), HasSubstr(counts)));
  BoundAndError();
  std::string told;
  for (const clocksync::ClockEvent& event : events_) told += event.node + ": " + event.text + "\n";
  EXPECT_THAT(told, HasSubstr("a--b: clocks/a--b.samples was cut off"));
  fs::remove(path);
  lost = SamplesLost(layout_, made->model);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_FALSE(lost[0].cut);
  EXPECT_THAT(lost[0].text, AllOf(HasSubstr("a--b.samples is gone"), HasSubstr("0 of its")));
}

}  // namespace
}  // namespace syncline::clocks
