// SPDX-License-Identifier: Apache-2.0
#include "evidence/connection_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evidence/code_samples.h"
#include "evidence/write.h"

namespace syncline::evidence {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Text() {
  std::string text;
  AppendConnectionsHead(&text);
  Append(ProcessIdentity{40123, 99, 4026532281, 26, "train me"}, &text);
  Append(Connection{0, 4026531840, "10.0.0.1:2222", "[fd00::2]:40000"}, &text);
  ConnectionSample sample{.connection = 0, .at_ns = 5'000, .until_ns = 6'000};
  sample.values.Set(ConnectionValue::kRttUs, 312);
  sample.values.Set(ConnectionValue::kMinRttUs, 0xffffffff);  // the kernel knows none yet
  sample.values.Set(ConnectionValue::kSentBytes, uint64_t{1} << 50);
  sample.values.Set(ConnectionValue::kRetransmittedBytes, 0);
  sample.values.Set(ConnectionValue::kBusyUs, uint64_t{1} << 63);
  Append(sample, &text);
  AppendRound(6'500, &text);
  AppendCost(1234, &text);
  AppendNote("connections of other namespaces are not seen", &text);
  AppendEnd(&text);
  return text;
}

TEST(ConnectionSamples, WhatIsWrittenReadsBack) {
  const auto found = ParseConnectionSamples(Text());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->damaged_lines, 0U);
  ASSERT_THAT(found->processes, SizeIs(1));
  EXPECT_EQ(found->processes[0].name, "train me");
  EXPECT_EQ(found->processes[0].own_pid, 26);
  ASSERT_THAT(found->connections, SizeIs(1));
  EXPECT_EQ(found->connections[0].network_namespace, 4026531840U);
  EXPECT_EQ(found->connections[0].local, "10.0.0.1:2222");
  EXPECT_EQ(found->connections[0].remote, "[fd00::2]:40000");
  ASSERT_THAT(found->samples, SizeIs(1));
  const ConnectionValues& values = found->samples[0].values;
  EXPECT_EQ(found->samples[0].until_ns, 6'000);
  EXPECT_EQ(values.Get(ConnectionValue::kRttUs), 312);
  EXPECT_EQ(values.Get(ConnectionValue::kMinRttUs), std::nullopt);
  EXPECT_EQ(values.Get(ConnectionValue::kSentBytes), int64_t{1} << 50);
  EXPECT_EQ(values.Get(ConnectionValue::kRetransmittedBytes), 0);
  EXPECT_EQ(values.Get(ConnectionValue::kBusyUs), std::nullopt);
  EXPECT_EQ(values.Get(ConnectionValue::kWindowFullUs), std::nullopt);
  EXPECT_THAT(found->rounds_ns, ElementsAre(6'500));
  EXPECT_EQ(found->cost_ns, 1234);
  EXPECT_THAT(found->notes, ElementsAre("connections of other namespaces are not seen"));
  EXPECT_TRUE(found->ended);
}

TEST(ConnectionSamples, DamagedLinesAreCountedAndKeepTheirNumbers) {
  std::string text;
  AppendConnectionsHead(&text);
  text += "P 1 broken\n";
  Append(ProcessIdentity{2, 5, 7, 2, "second"}, &text);
  text += "C 9 1 =a =b\n";
  Append(Connection{1, 3, "10.0.0.1:1", "10.0.0.2:2"}, &text);
  text += "s 1 10 9 rtt_us 5\ns 7 1 2 rtt_us 5\ns 1 10 11 of_later 3 rtt_us 6\ns 1 12 13 rtt_us";
  const auto found = ParseConnectionSamples(text);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->damaged_lines, 4U);
  EXPECT_EQ(found->processes.at(1).name, "second");
  EXPECT_EQ(found->connections.at(1).remote, "10.0.0.2:2");
  ASSERT_THAT(found->samples, SizeIs(1));
  EXPECT_EQ(found->samples[0].values.Get(ConnectionValue::kRttUs), 6);
  EXPECT_FALSE(found->ended);
}

// 100 MB in half a second after a silence are not 100 MB in the silence.
TEST(ConnectionSamples, ASilenceEndsAtTheLastRoundOfIt) {
  std::string text;
  AppendConnectionsHead(&text);
  Append(ProcessIdentity{40123, 99, 4026532281, 26, "python"}, &text);
  Append(Connection{0, 1, "10.0.0.1:1", "10.0.0.2:2"}, &text);
  const auto read = [&](int64_t at_ns, std::optional<uint64_t> sent) {
    ConnectionSample sample{.connection = 0, .at_ns = at_ns, .until_ns = at_ns + 1};
    if (sent.has_value()) sample.values.Set(ConnectionValue::kSentBytes, *sent);
    if (sent.has_value()) Append(sample, &text);
    AppendRound(at_ns + 2, &text);
  };
  read(10, 100);
  read(20, 200);
  for (int64_t at_ns = 30; at_ns <= 90; at_ns += 10) read(at_ns, std::nullopt);
  read(100, 900);
  read(110, std::nullopt);
  const auto found = ParseConnectionSamples(text);
  ASSERT_TRUE(found.ok());
  std::vector<std::pair<int64_t, int64_t>> readings;
  for (const ConnectionSample& sample : found->samples) {
    readings.emplace_back(sample.at_ns,
                          sample.values.Get(ConnectionValue::kSentBytes).value_or(-1));
  }
  EXPECT_THAT(readings, ElementsAre(std::pair(10, 100), std::pair(20, 200), std::pair(92, 200),
                                    std::pair(100, 900)));
}

TEST(ConnectionSamples, AnotherFormatIsRefused) {
  EXPECT_EQ(ParseConnectionSamples("syncline-connections 2\n").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ParseConnectionSamples("").ok());
  const auto empty = ParseConnectionSamples("syncline-connections 1\n");
  ASSERT_TRUE(empty.ok());
  EXPECT_THAT(empty->samples, IsEmpty());
}

}  // namespace
}  // namespace syncline::evidence
