// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/udp/packet.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "agent/probe/udp/replay_window.h"

namespace syncline::probe {
namespace {

ProbePacket Example() {
  return {.kind = ProbePacket::Kind::kResponse,
          .spin = true,
          .burst_remaining = 7,
          .plan_id = 0x1122334455667788,
          .edge_id = 0xa1b2c3d4,
          .sequence = 123,
          .nonce = 0xfedcba9876543210,
          .report_sequence = 122,
          .report = HostStamps{.received_raw_ns = 5'000'000'000,
                               .sent_raw_ns = -1,
                               .source = clocksync::StampSource::kUserSpin}};
}

TEST(Packet, ComesBackAsItWas) {
  for (const auto& packet : {Example(), ProbePacket{}}) {
    const auto again = DecodePacket(EncodePacket(packet));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, packet);
  }
}

TEST(Packet, HasTheDocumentedLayout) {
  const PacketBytes bytes = EncodePacket(Example());
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + 4), "SLPB");
  EXPECT_EQ(bytes[4], 1);  // version
  EXPECT_EQ(bytes[5], 2);  // response
  EXPECT_EQ(bytes[7], 7);
  EXPECT_EQ(bytes[8], 0x88);  // little endian
  EXPECT_EQ(bytes[16], 0xd4);
  EXPECT_EQ(bytes[24], 123);
  EXPECT_EQ(bytes[40], 122);
}

TEST(Packet, RefusesWhatItDoesNotUnderstand) {
  const PacketBytes good = EncodePacket(Example());
  // magic, version, kind, a flag that has no meaning yet, source, spare bytes
  for (const size_t at : {0u, 3u, 4u, 5u, 21u, 22u, 23u}) {
    PacketBytes bad = good;
    bad[at] ^= 0x40;
    EXPECT_FALSE(DecodePacket(bad).has_value()) << "byte " << at;
  }
  PacketBytes bad = good;
  bad[6] |= 0x80;
  EXPECT_FALSE(DecodePacket(bad).has_value());
  bad = good;
  bad[20] = 5;
  EXPECT_FALSE(DecodePacket(bad).has_value()) << "an unknown stamp source";
  bad = good;
  bad[6] &= 1;
  EXPECT_FALSE(DecodePacket(bad).has_value()) << "stamps without a report";
  EXPECT_FALSE(DecodePacket(std::span(good).first(79)).has_value());
  EXPECT_FALSE(DecodePacket({}).has_value());
}

TEST(PacketSealer, KnowsItsOwnAndNothingElse) {
  ProbeKey key{};
  const PacketSealer sealer(key);
  PacketBytes bytes = EncodePacket(Example());
  EXPECT_FALSE(sealer.IsGenuine(bytes));
  sealer.Seal(&bytes);
  EXPECT_TRUE(sealer.IsGenuine(bytes));
  EXPECT_TRUE(sealer.IsGenuine(bytes)) << "checking changed the sealer";
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= 1;
    EXPECT_FALSE(sealer.IsGenuine(bytes)) << "byte " << i;
    bytes[i] ^= 1;
  }
  key[0] = 1;
  EXPECT_FALSE(PacketSealer(key).IsGenuine(bytes));
}

// RFC 4231 has no case of 64 bytes; made with: openssl mac -digest SHA256 -macopt hexkey:00..1f
// HMAC.
TEST(PacketSealer, IsHmacSha256) {
  ProbeKey key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i);
  PacketBytes bytes{};
  PacketSealer(key).Seal(&bytes);
  const uint8_t expected[] = {0x09, 0x9e, 0x45, 0xe9, 0xf7, 0xe9, 0x82, 0x02,
                              0x46, 0x4e, 0xfb, 0x53, 0x2e, 0x52, 0x30, 0xa0};
  EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), bytes.begin() + 64));
}

TEST(ReplayWindow, AcceptsEachNumberOnce) {
  ReplayWindow window;
  EXPECT_TRUE(window.Accept(100));
  EXPECT_FALSE(window.Accept(100));
  EXPECT_TRUE(window.Accept(99));
  EXPECT_FALSE(window.Accept(99));
  EXPECT_TRUE(window.Accept(103));
  EXPECT_FALSE(window.Accept(100));
  EXPECT_FALSE(window.Accept(99));
  EXPECT_TRUE(window.Accept(101));
  EXPECT_TRUE(window.Accept(40)) << "63 behind";
  EXPECT_FALSE(window.Accept(39)) << "too old to know";
  EXPECT_TRUE(window.Accept(1'000'000));
  EXPECT_FALSE(window.Accept(103));
  EXPECT_TRUE(window.Accept(999'999));
  EXPECT_TRUE(window.Accept(~uint64_t{0}));
  EXPECT_FALSE(window.Accept(~uint64_t{0}));
}

TEST(ReplayWindow, AcceptsZeroFirst) {
  ReplayWindow window;
  EXPECT_TRUE(window.Accept(0));
  EXPECT_FALSE(window.Accept(0));
  EXPECT_TRUE(window.Accept(64));
  EXPECT_FALSE(window.Accept(0));
}

}  // namespace
}  // namespace syncline::probe
