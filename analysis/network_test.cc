// SPDX-License-Identifier: Apache-2.0
#include "analysis/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis {
namespace {

using evidence::ConnectionSample;
using evidence::ConnectionValue;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = NetworkFinding::Kind;

constexpr int64_t kSecond = 1'000'000'000;

ConnectionSample Sample(int64_t at_ns, uint64_t sent, uint64_t retransmitted, uint64_t rtt_us) {
  ConnectionSample sample{.connection = 0, .at_ns = at_ns, .until_ns = at_ns + 1000};
  sample.values.Set(ConnectionValue::kSentBytes, sent);
  sample.values.Set(ConnectionValue::kRetransmittedBytes, retransmitted);
  sample.values.Set(ConnectionValue::kRttUs, rtt_us);
  sample.values.Set(ConnectionValue::kMinRttUs, rtt_us / 2);
  return sample;
}

evidence::ConnectionSamples Samples() {
  evidence::ConnectionSamples samples;
  samples.processes = {{40, 99, 7, 4, "python"}};
  samples.connections = {{0, 70, "10.0.0.1:1", "10.0.0.2:2"}};
  samples.samples = {Sample(0, 100, 1, 900),           Sample(kSecond, 200, 2, 1000),
                     Sample(2 * kSecond, 500, 4, 400), Sample(3 * kSecond, 500, 4, 90),
                     Sample(4 * kSecond, 900, 9, 600), Sample(5 * kSecond, 5000, 70, 700)};
  return samples;
}

TEST(Network, AmountsGrowBetweenTheReadingsAroundTheWindow) {
  const auto usages = UsagesOf(Samples(), kSecond + 500, 3 * kSecond + 500);
  // The reading of 1 s ends behind the window's begin; that of 4 s is the first one behind its end.
  ASSERT_THAT(usages, SizeIs(1));
  EXPECT_EQ(usages[0].process, (ProcessKey{0, 7, 4, 99}));
  EXPECT_EQ(usages[0].sums.sent_bytes, 900 - 100);
  EXPECT_EQ(usages[0].sums.retransmitted_bytes, 9 - 1);
  EXPECT_EQ(usages[0].sums.busy_us, -1);  // the kernel does not say it
  // Without anything sent between, the one of 3 s is old.
  EXPECT_THAT(usages[0].rtts_us, ElementsAre(1000, 400, 600));
  EXPECT_EQ(usages[0].min_rtt_us, 45);
}

TEST(Network, AWindowAfterTheLastReadingHasNothing) {
  EXPECT_THAT(UsagesOf(Samples(), 6 * kSecond, 7 * kSecond), IsEmpty());
}

TEST(Network, ACounterThatBeganAnewIsNotKnown) {
  auto samples = Samples();
  samples.samples.back().values.Set(ConnectionValue::kSentBytes, 3);
  EXPECT_EQ(UsagesOf(samples, 0, 10 * kSecond)[0].sums.sent_bytes, -1);
}

ConnectionUsage Usage(const char* local, const char* remote, int64_t segments, int64_t again) {
  ConnectionUsage usage{.network_namespace = 70, .local = local, .remote = remote};
  usage.sums = {.sent_bytes = segments * 1000,
                .retransmitted_bytes = again * 1000,
                .sent_segments = segments,
                .retransmitted_segments = again,
                .busy_us = 1'000'000};
  usage.min_rtt_us = 50;
  usage.rtts_us = {60, 80};
  return usage;
}

NetworkEnd Rank(int32_t rank) {
  return {"n" + std::to_string(rank), "process " + std::to_string(rank), rank};
}

TEST(Network, BothEndsAreBroughtTogetherByTheirAddresses) {
  const std::vector<NodeConnections> nodes = {
      {{Usage("10.0.0.1:1", "10.0.0.2:2", 900, 0), Usage("10.0.0.1:3", "10.0.0.2:4", 100, 5),
        Usage("10.0.0.1:5", "192.168.0.9:443", 7, 0)},
       {Rank(0), Rank(0), Rank(0)}},
      {{Usage("10.0.0.2:2", "10.0.0.1:1", 50, 0), Usage("10.0.0.2:4", "10.0.0.1:3", 0, 0)},
       {Rank(1), Rank(1)}}};
  const auto links = LinksOf(nodes);
  ASSERT_THAT(links, SizeIs(3));
  EXPECT_EQ(links[0].from.rank, 0);
  ASSERT_TRUE(links[0].to.has_value());
  EXPECT_EQ(links[0].to->rank, 1);
  EXPECT_EQ(links[0].connections, 2U);
  EXPECT_EQ(links[0].sums.sent_segments, 1000);
  EXPECT_DOUBLE_EQ(links[0].retransmitted_share().value(), 0.005);
  EXPECT_EQ(links[0].median_rtt_us, 80);
  EXPECT_FALSE(links[1].to.has_value());
  EXPECT_EQ(links[1].remote, "192.168.0.9");
  EXPECT_EQ(links[2].from.rank, 1);
  EXPECT_EQ(links[2].connections, 1U);
}

TEST(Network, ALoopbackAddressIsOneOfItsOwnNodeAndNamespace) {
  ConnectionUsage other_container = Usage("127.0.0.1:2", "127.0.0.1:1", 1, 0);
  other_container.network_namespace = 71;
  const std::vector<NodeConnections> nodes = {
      {{Usage("127.0.0.1:1", "127.0.0.1:2", 10, 0), other_container}, {Rank(0), Rank(1)}},
      {{Usage("127.0.0.1:2", "127.0.0.1:1", 10, 0)}, {Rank(2)}}};
  for (const NetworkLink& link : LinksOf(nodes)) EXPECT_FALSE(link.to.has_value());
}

TEST(Network, WhereTwoMayBeTheOtherEndNobodyIs) {
  const std::vector<NodeConnections> nodes = {
      {{Usage("172.17.0.2:1", "172.17.0.3:2", 10, 0)}, {Rank(0)}},
      {{Usage("172.17.0.3:2", "172.17.0.2:1", 10, 0)}, {Rank(1)}},
      {{Usage("172.17.0.3:2", "172.17.0.2:1", 10, 0)}, {Rank(2)}}};
  EXPECT_FALSE(LinksOf(nodes)[0].to.has_value());
}

TEST(Network, WhatOneKernelDoesNotSayIsNotKnownOfTheSum) {
  auto unknown = Usage("10.0.0.1:3", "10.0.0.2:4", 100, 0);
  unknown.sums.busy_us = -1;
  const std::vector<NodeConnections> nodes = {
      {{Usage("10.0.0.1:1", "10.0.0.2:2", 900, 0), unknown}, {Rank(0), Rank(0)}}};
  const auto links = LinksOf(nodes);
  EXPECT_EQ(links[0].sums.busy_us, -1);
  EXPECT_EQ(links[0].window_full_share(), std::nullopt);
}

NetworkLink Link(int32_t from, int32_t to, int64_t segments, int64_t again) {
  NetworkLink link{.from = Rank(from), .to = Rank(to), .connections = 1};
  link.sums = {.sent_segments = segments, .retransmitted_segments = again, .busy_us = 1'000'000};
  link.min_rtt_us = 50;
  return link;
}

TEST(Network, FewLostSegmentsAreNotWorthAWord) {
  EXPECT_THAT(FindingsOf(std::vector{Link(0, 1, 1000, 9)}), IsEmpty());         // too few
  EXPECT_THAT(FindingsOf(std::vector{Link(0, 1, 1'000'000, 900)}), IsEmpty());  // too small a part
  const auto found = FindingsOf(std::vector{Link(0, 1, 10'000, 10), Link(1, 0, 10'000, 300)});
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].kind, Kind::kRetransmitted);
  EXPECT_EQ(found[0].link.from.rank, 1);
}

// On a busy machine acknowledgements come late, and all of it was sent in vain.
TEST(Network, WhatTheReceiverHadAlreadyWasNotLost) {
  NetworkLink link = Link(0, 1, 10'000, 213);
  link.sums.duplicates = 213;
  EXPECT_THAT(FindingsOf(std::vector{link}), IsEmpty());
  link.sums.duplicates = 113;
  EXPECT_THAT(FindingsOf(std::vector{link}), SizeIs(1));
  link.sums.duplicates = -1;  // the kernel does not say it
  EXPECT_THAT(FindingsOf(std::vector{link}), IsEmpty());
}

// It drops segments itself, and the sender waits for it, not for the network.
TEST(Network, WhatAReceiverWithoutRoomLacksIsNotTheNetworks) {
  NetworkLink link = Link(0, 1, 10'000, 213);
  link.sums.window_full_us = 499'000;
  EXPECT_THAT(FindingsOf(std::vector{link}), SizeIs(1));
  link.sums.window_full_us = 500'000;
  EXPECT_THAT(FindingsOf(std::vector{link}), IsEmpty());
}

TEST(Network, OnOneNodeNothingIsLostAndNoBufferIsTooSmall) {
  NetworkLink link = Link(0, 1, 10'000, 213);
  link.sums.buffer_short_us = 500'000;
  EXPECT_THAT(FindingsOf(std::vector{link}), SizeIs(2));
  link.to->node = link.from.node;
  EXPECT_THAT(FindingsOf(std::vector{link}), IsEmpty());
  link.to.reset();
  link.remote = "127.0.0.1";
  EXPECT_THAT(FindingsOf(std::vector{link}), IsEmpty());
}

TEST(Network, ASendBufferThatIsTooSmallIsFound) {
  NetworkLink link = Link(0, 1, 1000, 0);
  link.sums.buffer_short_us = 99'000;
  EXPECT_THAT(FindingsOf(std::vector{link}), IsEmpty());
  link.sums.buffer_short_us = 101'000;
  ASSERT_THAT(FindingsOf(std::vector{link}), SizeIs(1));
  EXPECT_EQ(FindingsOf(std::vector{link})[0].kind, Kind::kBufferShort);
  link.sums.busy_us = 200'000;  // hardly anything was sent
  link.sums.buffer_short_us = 49'000;
  EXPECT_THAT(FindingsOf(std::vector{link}), IsEmpty());
}

TEST(Network, APairOfNodesIsSlowComparedWithTheOthersAlone) {
  std::vector<NetworkLink> links = {Link(0, 1, 10, 0), Link(1, 0, 10, 0), Link(0, 2, 10, 0),
                                    Link(2, 0, 10, 0)};
  links[0].min_rtt_us = links[1].min_rtt_us = 900;
  EXPECT_THAT(FindingsOf(links), IsEmpty());  // two pairs: which one is unusual is not known
  links.push_back(Link(1, 2, 10, 0));
  const auto found = FindingsOf(links);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].kind, Kind::kSlowPair);
  EXPECT_EQ(found[0].usual_rtt_us, 50);
  links[1].min_rtt_us = 200;  // the way back was as fast once
  EXPECT_THAT(FindingsOf(links), IsEmpty());
}

}  // namespace
}  // namespace syncline::analysis
