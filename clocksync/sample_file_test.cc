// SPDX-License-Identifier: Apache-2.0
#include "clocksync/sample_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace syncline::clocksync {
namespace {

using testing::HasSubstr;

ProbeSample SomeSample() {
  return {.t1_local_ns = 1,
          .t2_remote_ns = -5,
          .t3_remote_ns = std::numeric_limits<int64_t>::max(),
          .t4_local_ns = 1'000'000'000'000,
          .source = StampSource::kKernel};
}

TEST(SampleFileTest, SamplesComeBackAsTheyWentIn) {
  std::string bytes = EncodeSamplesHeader("coordinator", "worker-0");
  const size_t header = bytes.size();
  AppendSample(SomeSample(), &bytes);
  EXPECT_LE(bytes.size() - header, 40u);
  AppendSample({}, &bytes);
  const auto edge = DecodeSamples(bytes);
  ASSERT_TRUE(edge.ok()) << edge.status();
  EXPECT_EQ(edge->local, "coordinator");
  EXPECT_EQ(edge->remote, "worker-0");
  EXPECT_EQ(edge->truncated_bytes, 0u);
  ASSERT_EQ(edge->samples.size(), 2u);
  EXPECT_EQ(edge->samples[0].t1_local_ns, 1);
  EXPECT_EQ(edge->samples[0].t2_remote_ns, -5);
  EXPECT_EQ(edge->samples[0].t3_remote_ns, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(edge->samples[0].t4_local_ns, 1'000'000'000'000);
  EXPECT_EQ(edge->samples[0].source, StampSource::kKernel);
}

TEST(SampleFileTest, TuplesComeBackAsTheyWentIn) {
  std::string bytes = EncodeTuplesHeader("n");
  AppendTuple({1, 2, 3, 4, 5, -6, 10000, 0x2001}, &bytes);
  const auto host = DecodeTuples(bytes);
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->node, "n");
  ASSERT_EQ(host->tuples.size(), 1u);
  const ClockTuple& tuple = host->tuples[0];
  EXPECT_EQ(tuple.raw_before_ns, 1);
  EXPECT_EQ(tuple.monotonic_ns, 2);
  EXPECT_EQ(tuple.realtime_ns, 3);
  EXPECT_EQ(tuple.boottime_ns, 4);
  EXPECT_EQ(tuple.raw_after_ns, 5);
  EXPECT_EQ(tuple.adjtimex_freq, -6);
  EXPECT_EQ(tuple.adjtimex_tick_us, 10000);
  EXPECT_EQ(tuple.adjtimex_status, 0x2001);
}

TEST(SampleFileTest, EveryCutKeepsWholeRecordsOrNamesTheHeader) {
  std::string bytes = EncodeSamplesHeader("a", "b");
  const size_t header = bytes.size();
  for (int i = 0; i < 3; ++i) AppendSample(SomeSample(), &bytes);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const auto edge = DecodeSamples(std::string_view(bytes).substr(0, size));
    if (size < header) {
      EXPECT_FALSE(edge.ok()) << size;
      continue;
    }
    ASSERT_TRUE(edge.ok()) << size << edge.status();
    EXPECT_EQ(edge->samples.size(), (size - header) / 34) << size;
    EXPECT_EQ(edge->truncated_bytes, (size - header) % 34) << size;
  }
}

TEST(SampleFileTest, DamageTakesItsOwnRecordAlone) {
  std::string bytes = EncodeSamplesHeader("a", "b");
  const size_t header = bytes.size();
  for (int64_t t = 1; t <= 5; ++t) AppendSample({.t1_local_ns = t, .t4_local_ns = t + 1}, &bytes);
  for (size_t damaged = 0; damaged < 5; ++damaged) {
    std::string copy = bytes;
    copy[header + 34 * damaged + 5] ^= 1;
    const auto edge = DecodeSamples(copy);
    ASSERT_TRUE(edge.ok()) << edge.status();
    ASSERT_EQ(edge->samples.size(), 4u);
    EXPECT_EQ(edge->samples[0].t1_local_ns, damaged == 0 ? 2 : 1);
    EXPECT_EQ(edge->samples[3].t1_local_ns, damaged == 4 ? 4 : 5);
    EXPECT_EQ(edge->damage.records, 1u);
    EXPECT_EQ(edge->damage.first_byte, header + 34 * damaged);
    EXPECT_EQ(edge->truncated_bytes, 0u);
  }
}

TEST(SampleFileTest, DamageTakesItsOwnTupleAlone) {
  std::string bytes = EncodeTuplesHeader("n");
  const size_t header = bytes.size();
  for (int64_t t = 1; t <= 3; ++t) AppendTuple({.raw_before_ns = t}, &bytes);
  bytes[header + 57 + 20] ^= 4;
  const auto host = DecodeTuples(bytes);
  ASSERT_TRUE(host.ok()) << host.status();
  ASSERT_EQ(host->tuples.size(), 2u);
  EXPECT_EQ(host->tuples[1].raw_before_ns, 3);
  EXPECT_EQ(host->damage.records, 1u);
  EXPECT_EQ(host->damage.first_byte, header + 57);
}

TEST(SampleFileTest, ZerosOfACrashAreNoSamples) {
  const auto edge = DecodeSamples(EncodeSamplesHeader("a", "b") + std::string(68, '\0'));
  ASSERT_TRUE(edge.ok()) << edge.status();
  EXPECT_TRUE(edge->samples.empty());
  EXPECT_EQ(edge->damage.records, 2u);
}

// Where a byte is missing, all that follows has moved: of 20,000 records some 80 fit their check by
// chance.
TEST(SampleFileTest, NothingIsReadFromRecordsThatHaveMoved) {
  std::string bytes = EncodeSamplesHeader("a", "b");
  const size_t header = bytes.size();
  constexpr int64_t kBegin = 1'234'567'890'123'456;
  for (int64_t i = 0; i < 20'000; ++i) {
    const int64_t t = kBegin + i * 10'000'019;
    AppendSample({t, t + 777, t + 1'777, t + 2'000 + i % 91, StampSource::kKernel}, &bytes);
  }
  bytes.erase(header + 34 * 100 + 3, 1);
  const auto edge = DecodeSamples(bytes);
  ASSERT_TRUE(edge.ok()) << edge.status();
  EXPECT_EQ(edge->samples.size(), 100u);
  EXPECT_EQ(edge->damage.records, 19'899u);
}

TEST(SampleFileTest, OtherFilesAndVersionsAreRefused) {
  EXPECT_FALSE(DecodeSamples(EncodeTuplesHeader("n")).ok());
  EXPECT_FALSE(DecodeTuples(EncodeSamplesHeader("a", "b")).ok());
  std::string bytes = EncodeSamplesHeader("a", "b");
  bytes[8] = 2;
  EXPECT_THAT(std::string(DecodeSamples(bytes).status().message()), HasSubstr("version 2"));
}

TEST(SampleFileTest, UnknownSourceIsPassedOver) {
  std::string bytes = EncodeSamplesHeader("a", "b");
  AppendSample({.source = static_cast<StampSource>(9)}, &bytes);
  AppendSample(SomeSample(), &bytes);
  const auto edge = DecodeSamples(bytes);
  ASSERT_TRUE(edge.ok()) << edge.status();
  EXPECT_EQ(edge->samples.size(), 1u);
  EXPECT_EQ(edge->damage.records, 1u);
}

}  // namespace
}  // namespace syncline::clocksync
