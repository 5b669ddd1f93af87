// SPDX-License-Identifier: Apache-2.0
// What is read of damaged streams, and what is declared lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ctf/test_trace.h"

namespace syncline::ctf::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SalvageTest : public ::testing::Test {
 protected:
  ReadResult Read(std::span<const uint8_t> bytes, CursorRange range = {}) {
    return ReadAll(layout_, bytes, range);
  }
  std::shared_ptr<const TraceLayout> layout_ = LayoutOf(kMetadata);
};

TEST_F(SalvageTest, ReadsASoundStreamWithoutLoss) {
  const auto bytes =
      Join({PacketBuilder(100, 200, 0).Number(110, 7).Text(200, "a", {1, 2}).Close(),
            PacketBuilder(200, 300, 1).Id(250, 2).Close(), PacketBuilder(300, 400, 2).Close()});
  const ReadResult result = Read(bytes);
  EXPECT_THAT(
      result.events,
      ElementsAre("110 t:number value=7",
                  "200 t:text text=a _items_length=2 items=#2 items=1 items=2", "250 t:empty"));
  EXPECT_THAT(result.losses, IsEmpty());
}

// As LTTng writes it: a stream is declared behind its first events.
TEST_F(SalvageTest, MetadataCutAnywhereInventsNothing) {
  std::string metadata(kMetadata);
  const size_t stream = metadata.find("stream {");
  const size_t events = metadata.find("event { name");
  metadata += metadata.substr(stream, events - stream);
  metadata.erase(stream, events - stream);
  const auto bytes =
      PacketBuilder(100, 200, 0).Number(110, 7).Text(150, "a", {1}).Id(190, 2).Close();
  const std::vector<std::string> all = ReadAll(LayoutOf(metadata), bytes).events;
  ASSERT_THAT(all, SizeIs(3));
  size_t readable = 0;
  for (size_t length = 0; length <= metadata.size(); ++length) {
    const auto layout = LayoutOf(metadata.substr(0, length));
    if (layout == nullptr) continue;
    ++readable;
    for (const std::string& event : ReadAll(layout, bytes).events) {
      EXPECT_THAT(all, ::testing::Contains(event)) << "metadata cut at " << length;
    }
  }
  EXPECT_GT(readable, 100u);
}

TEST_F(SalvageTest, EmptyStreamHasNothing) {
  const ReadResult result = Read({});
  EXPECT_THAT(result.events, IsEmpty());
  EXPECT_THAT(result.losses, IsEmpty());
}

TEST_F(SalvageTest, ShortTimestampsWrapAndLongOnesDoNot) {
  const uint64_t base = (uint64_t{1} << 32) - 50;
  const auto bytes = PacketBuilder(base, base + 10'000'000'000)
                         .Number(base + 10, 1)
                         .Number(base + 60, 2)
                         .NumberExtended(base + 9'000'000'000, 3)
                         .Number(base + 9'000'000'007, 4)
                         .Close();
  EXPECT_THAT(Read(bytes).events,
              ElementsAre("4294967256 t:number value=1", "4294967306 t:number value=2",
                          "13294967246 t:number value=3", "13294967253 t:number value=4"));
}

TEST_F(SalvageTest, FileCutInsideAPacketKeepsWholeEvents) {
  auto bytes = Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(),
                     PacketBuilder(200, 300, 1).Number(210, 2).Number(290, 3).Close(256)});
  const size_t second = PacketBuilder(100, 200, 0).Number(110, 1).Close().size();
  bytes.resize(second + PacketBuilder::kFirstEventAt + 10 + 4);  // inside the last event
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, ElementsAre("110 t:number value=1", "210 t:number value=2"));
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].reason, LossReason::kTruncated);
  EXPECT_EQ(result.losses[0].begin_ns, 210);
  EXPECT_EQ(result.losses[0].end_ns, 300);
  EXPECT_EQ(result.losses[0].count, std::nullopt);
}

TEST_F(SalvageTest, FileCutInsideAHeader) {
  auto bytes = Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(),
                     PacketBuilder(200, 300, 1).Number(210, 2).Close()});
  bytes.resize(PacketBuilder(100, 200, 0).Number(110, 1).Close().size() + 30);
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, ElementsAre("110 t:number value=1"));
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].reason, LossReason::kTruncated);
  EXPECT_EQ(result.losses[0].begin_ns, 200);
  EXPECT_EQ(result.losses[0].end_ns, kUnknownHi);
}

TEST_F(SalvageTest, PacketNeverClosedGivesItsEvents) {
  const auto bytes = Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(),
                           PacketBuilder(200, 0, 1).Number(210, 2).Number(220, 3).LeaveOpen()});
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events,
              ElementsAre("110 t:number value=1", "210 t:number value=2", "220 t:number value=3"));
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].reason, LossReason::kTruncated);
  EXPECT_EQ(result.losses[0].begin_ns, 220);
  EXPECT_THAT(result.losses[0].detail, HasSubstr("never closed"));
}

TEST_F(SalvageTest, OldBytesBehindTheLastEventOfAnOpenPacketAreNotEvents) {
  auto open = PacketBuilder(uint64_t{5} << 32, 0, 1);
  open.Number((uint64_t{5} << 32) + 10, 2);
  open.Number((uint64_t{5} << 32) + 3'000'000'000, 9);  // LTTng never leaves such a gap
  EXPECT_THAT(Read(open.LeaveOpen()).events, ElementsAre("21474836490 t:number value=2"));
}

TEST_F(SalvageTest, DamagedPacketInTheMiddleIsSkippedToTheNext) {
  auto bad = PacketBuilder(200, 300, 1).Number(210, 2).Close();
  std::fill(bad.begin(), bad.begin() + 80, 0xee);
  const auto bytes = Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(), bad,
                           PacketBuilder(300, 400, 2).Number(310, 3).Close()});
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, ElementsAre("110 t:number value=1", "310 t:number value=3"));
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].reason, LossReason::kCorruptPacket);
  EXPECT_EQ(result.losses[0].begin_ns, 200);
  EXPECT_EQ(result.losses[0].end_ns, 300);
}

TEST_F(SalvageTest, WrongMagicAloneLosesNothing) {
  auto bad = PacketBuilder(200, 300, 1).Number(210, 2).Close();
  bad[0] ^= 1;
  const auto bytes = Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(), bad,
                           PacketBuilder(300, 400, 2).Number(310, 3).Close()});
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, SizeIs(3));
  ASSERT_THAT(result.losses, SizeIs(1)) << "it is said all the same";
  EXPECT_EQ(result.losses[0].count, 0u);
}

// A file's packets are of one stream, and of one trace. One that says otherwise is read where its
// number follows: then only what it says is damaged.
TEST_F(SalvageTest, APacketOfAnotherStreamIsNotReadAsOneOfThisOne) {
  constexpr size_t kStreamIdAt = 20;
  const std::string metadata =
      std::string(kMetadata) +
      "stream { id = 1; event.header := struct event_header_large;"
      " packet.context := struct packet_context; };"
      "event { name = \"u:other\"; id = 0; stream_id = 1; fields := struct {"
      " uint16_t a; uint16_t b; }; };";
  for (const bool number_follows : {true, false}) {
    for (const size_t other : {0, 1, 2}) {
      std::vector<std::vector<uint8_t>> packets;
      for (uint64_t i = 0; i < 4; ++i) {
        const uint64_t number = i == other && !number_follows ? 77 : i;
        packets.push_back(
            PacketBuilder(100 * i, 100 * i + 90, number).Number(100 * i + 1, 5).Close());
      }
      packets[other][kStreamIdAt] = 1;
      const ReadResult result = ReadAll(LayoutOf(metadata), Join(packets));
      EXPECT_THAT(result.events, SizeIs(number_follows ? 4 : 3)) << other;
      EXPECT_THAT(result.events, Each(HasSubstr("t:number value=5"))) << other;
      EXPECT_FALSE(result.losses.empty()) << other;
    }
  }
}

TEST_F(SalvageTest, WrongPacketSizeIsFoundByTheNextPacket) {
  auto first = PacketBuilder(100, 200, 0).Number(110, 1).Close();
  const uint64_t wrong = (first.size() + 192) * 8;
  std::memcpy(first.data() + PacketBuilder::kSizeAt, &wrong, sizeof wrong);
  const auto bytes = Join({first, PacketBuilder(200, 300, 1).Number(210, 2).Close(256),
                           PacketBuilder(300, 400, 2).Number(310, 3).Close()});
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, SizeIs(3));
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].reason, LossReason::kCorruptPacket);
}

TEST_F(SalvageTest, UnknownEventLosesTheRestOfItsPacketOnly) {
  const auto bytes =
      Join({PacketBuilder(100, 200, 0).Number(110, 1).Id(120, 77).Number(130, 2).Close(),
            PacketBuilder(200, 300, 1).Number(210, 3).Close()});
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, ElementsAre("110 t:number value=1", "210 t:number value=3"));
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].reason, LossReason::kUnknownEvent);
  EXPECT_EQ(result.losses[0].begin_ns, 110);
  EXPECT_EQ(result.losses[0].end_ns, 200);
  EXPECT_THAT(result.losses[0].detail, HasSubstr("event id 77"));
}

TEST_F(SalvageTest, ImpossibleTimeLosesOneEventAndKeepsTheOrder) {
  const auto bytes =
      PacketBuilder(100, 200, 0).Number(110, 1).Number(1 << 30, 2).Number(130, 3).Close();
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, ElementsAre("110 t:number value=1", "130 t:number value=3"));
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].count, 1u);
}

TEST_F(SalvageTest, TimesBeyondAllClocksAreTold) {
  constexpr uint64_t kBeyond = uint64_t{1} << 63;
  PacketBuilder late(100, kBeyond + 9, 0);
  late.Number(110, 1).NumberExtended(kBeyond - 1, 2).NumberExtended(kBeyond, 3);
  const ReadResult one = Read(late.Number(120, 4).Close());
  EXPECT_THAT(one.events, ElementsAre("110 t:number value=1", "120 t:number value=4"));
  ASSERT_THAT(one.losses, SizeIs(1));
  EXPECT_EQ(one.losses[0].count, 2u);

  PacketBuilder beyond(kBeyond, kBeyond + 9, 0);
  const ReadResult all = Read(beyond.Number(kBeyond + 1, 5).Number(kBeyond + 2, 6).Close());
  EXPECT_THAT(all.events, IsEmpty());
  ASSERT_THAT(all.losses, SizeIs(1));
  EXPECT_EQ(all.losses[0].count, 2u);
}

TEST_F(SalvageTest, EventsMayLieBehindTheirPacketsEndUpToTheNextBegin) {
  const auto bytes = Join({PacketBuilder(100, 200, 0).Number(110, 1).Number(220, 2).Close(),
                           PacketBuilder(250, 300, 1).Number(260, 3).Close()});
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, SizeIs(3));
  EXPECT_THAT(result.losses, IsEmpty());
}

// Which versions these are was found by giving such a trace to babeltrace2: it reads on in these.
TEST_F(SalvageTest, OldTracersEndTheirLastPacketBeforeItsLastEvents) {
  const std::string_view name = "tracer_name = \"lttng-ust\";";
  const auto read = [&](const std::string& tracer, int major, int minor, int patch) {
    std::string metadata(kMetadata);
    metadata.replace(
        metadata.find(name), name.size(),
        absl::StrCat("tracer_name = \"", tracer, "\"; tracer_major = ", major,
                     "; tracer_minor = ", minor, "; tracer_patchlevel = ", patch, ";"));
    const auto bytes =
        Join({PacketBuilder(100, 200, 0).Number(110, 1).Number(220, 2).Close(),
              PacketBuilder(250, 300, 1).Number(260, 3).Number(333, 4).Number(340, 5).Close()});
    return ReadAll(LayoutOf(metadata), bytes);
  };
  for (const auto& [tracer, major, minor, patch, early] :
       {std::tuple("lttng-ust", 2, 10, 7, true), std::tuple("lttng-ust", 1, 9, 9, true),
        std::tuple("lttng-ust", 2, 11, 0, false), std::tuple("lttng-ust", 3, 0, 0, false),
        std::tuple("lttng-modules", 2, 9, 12, true), std::tuple("lttng-modules", 2, 9, 13, false),
        std::tuple("lttng-modules", 2, 10, 0, true), std::tuple("lttng-modules", 2, 10, 9, true),
        std::tuple("lttng-modules", 2, 10, 10, false), std::tuple("barectf", 2, 1, 0, false)}) {
    const ReadResult result = read(tracer, major, minor, patch);
    EXPECT_EQ(result.events.size(), early ? 5u : 3u) << tracer << major << minor << patch;
    EXPECT_EQ(result.losses.empty(), early) << tracer << major << minor << patch;
  }
}

TEST_F(SalvageTest, PacketsWhoseEndIsNoneOrTheNextBeginLoseNothing) {
  for (const uint64_t end_ns : {0, 250}) {
    const auto bytes = Join({PacketBuilder(100, end_ns, 0).Number(110, 1).Number(250, 2).Close(),
                             PacketBuilder(250, 0, 1).Number(250, 3).Number(400, 4).Close()});
    const ReadResult result = Read(bytes);
    EXPECT_THAT(result.events, SizeIs(4)) << end_ns;
    EXPECT_THAT(result.losses, IsEmpty()) << end_ns;
  }
}

TEST_F(SalvageTest, DiscardedEventsAreCountedFromTheCumulativeCounter) {
  const auto bytes =
      Join({PacketBuilder(100, 200, 0, 5).Close(), PacketBuilder(200, 300, 1, 5).Close(),
            PacketBuilder(300, 400, 2, uint64_t{1} << 63 | 9).Close(),
            PacketBuilder(400, 500, 3, 12).Close()});
  const ReadResult result = Read(bytes);
  ASSERT_THAT(result.losses, SizeIs(2));
  EXPECT_EQ(result.losses[0].count, 5u);
  EXPECT_EQ(result.losses[0].begin_ns, 100);
  EXPECT_EQ(result.losses[0].end_ns, 200);
  EXPECT_EQ(result.losses[1].count, 7u);
  EXPECT_EQ(result.losses[1].begin_ns, 300);  // some of them, or all, before the odd count
  EXPECT_EQ(result.losses[1].end_ns, 500);
}

// Bit 63 is damage. Where no sound count follows, the other bits are all there is.
TEST_F(SalvageTest, ADiscardedCounterWithBit63AtTheEndHidesNothing) {
  constexpr uint64_t kBit = uint64_t{1} << 63;
  struct Case {
    uint64_t first, second, third;
    std::vector<std::optional<uint64_t>> counts;
  };
  for (const Case& one :
       {Case{0, 5, kBit | 5, {5}}, Case{0, 5, kBit | 7, {5, 2}},
        Case{kBit | 1, kBit | 4, kBit | 4, {4}}, Case{0, kBit, kBit, {}}, Case{kBit | 1, 4, 4, {4}},
        Case{0, 5, kBit | 2, {5, std::nullopt}}, Case{0, 5, ~uint64_t{0}, {5, std::nullopt}}}) {
    const auto bytes = Join({PacketBuilder(100, 200, 0, one.first).Close(),
                             PacketBuilder(200, 300, 1, one.second).Close(),
                             PacketBuilder(300, 400, 2, one.third).Close()});
    std::vector<std::optional<uint64_t>> counts;
    for (const Loss& loss : Read(bytes).losses) {
      EXPECT_EQ(loss.reason, LossReason::kDiscardedEvents);
      counts.push_back(loss.count);
    }
    EXPECT_EQ(counts, one.counts) << one.first << " " << one.second << " " << one.third;
  }
}

TEST_F(SalvageTest, ADiscardedCounterThatDipsIsNotCountedTwice) {
  const auto bytes =
      Join({PacketBuilder(100, 200, 0, 500).Close(), PacketBuilder(200, 300, 1, 0).Close(),
            PacketBuilder(300, 400, 2, 500).Close(), PacketBuilder(400, 500, 3, 507).Close()});
  const ReadResult result = Read(bytes);
  ASSERT_THAT(result.losses, SizeIs(2));
  EXPECT_EQ(result.losses[0].count, 500u);
  EXPECT_EQ(result.losses[1].count, 7u);
  EXPECT_EQ(result.losses[1].begin_ns, 400);
}

TEST_F(SalvageTest, DiscardedEventsBeforeARotationAreNotCountedAgain) {
  const auto bytes =
      Join({PacketBuilder(100, 200, 8, 1000).Close(), PacketBuilder(200, 300, 9, 1003).Close()});
  const ReadResult result = Read(bytes);
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].count, 3u);
}

// What a count of 16 bits grew by is not known when that may be more than half of what it holds.
TEST_F(SalvageTest, ANarrowDiscardedCounterThatMayHaveGoneAroundIsTold) {
  std::string metadata(kMetadata);
  const std::string_view wide = "unsigned long events_discarded;";
  metadata.replace(metadata.find(wide), wide.size(),
                   "uint16_t events_discarded; uint16_t p; uint32_t q;");
  const auto bytes =
      Join({PacketBuilder(100, 200, 0, 7).Close(), PacketBuilder(200, 300, 1, 40000).Close(),
            PacketBuilder(300, 400, 2, 40001).Close(), PacketBuilder(400, 500, 3, 9).Close()});
  const ReadResult result = ReadAll(LayoutOf(metadata), bytes);
  ASSERT_THAT(result.losses, SizeIs(3));
  EXPECT_EQ(result.losses[0].count, 7u);
  EXPECT_EQ(result.losses[1].reason, LossReason::kDiscardedEvents);
  EXPECT_EQ(result.losses[1].count, std::nullopt);
  EXPECT_EQ(result.losses[1].begin_ns, 200);
  EXPECT_EQ(result.losses[1].end_ns, 400);
  EXPECT_THAT(result.losses[1].detail, HasSubstr("went from 7 to 40000"));
  EXPECT_EQ(result.losses[2].count, 2u);
}

TEST_F(SalvageTest, APacketThatEndsBeforeItBeginsIsTold) {
  const auto bytes = Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(),
                           PacketBuilder(250, 220, 1).Number(260, 2).Close(),
                           PacketBuilder(300, 300, 2).Number(300, 3).Close()});
  const ReadResult result = Read(bytes);
  EXPECT_THAT(result.events, SizeIs(3));
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].reason, LossReason::kCorruptPacket);
  EXPECT_EQ(result.losses[0].begin_ns, 200);
  EXPECT_EQ(result.losses[0].end_ns, 300);
  EXPECT_EQ(result.losses[0].count, std::nullopt);
  EXPECT_THAT(result.losses[0].detail, HasSubstr("ends before it begins"));
}

// Each level may be as long as one; both together may not.
TEST_F(SalvageTest, ArraysOfArraysOfNothingAreBounded) {
  std::string metadata(kMetadata);
  const std::string_view value = "uint32_t _value;";
  metadata.replace(metadata.find(value), value.size(),
                   "uint32_t n; struct { struct { } z[n]; } a[n];");
  const auto layout = LayoutOf(metadata);
  const ReadResult few = ReadAll(layout, PacketBuilder(100, 200).Number(110, 100).Close());
  EXPECT_THAT(few.events, SizeIs(1));
  EXPECT_THAT(few.losses, IsEmpty());
  for (const uint32_t n : {1000, 65000}) {
    const ReadResult many = ReadAll(layout, PacketBuilder(100, 200).Number(110, n).Close());
    EXPECT_THAT(many.events, IsEmpty());
    ASSERT_THAT(many.losses, SizeIs(1));
    EXPECT_THAT(many.losses[0].detail, HasSubstr("do not decode"));
  }
}

TEST_F(SalvageTest, SequenceGapIsLostPackets) {
  const auto bytes = Join({PacketBuilder(100, 200, 4).Close(), PacketBuilder(500, 600, 7).Close()});
  const ReadResult result = Read(bytes);
  ASSERT_THAT(result.losses, SizeIs(1));
  EXPECT_EQ(result.losses[0].reason, LossReason::kLostPackets);
  EXPECT_EQ(result.losses[0].count, 2u);
  EXPECT_EQ(result.losses[0].begin_ns, 200);
  EXPECT_EQ(result.losses[0].end_ns, 500);
}

TEST_F(SalvageTest, RangeCutsEventsAndPackets) {
  const auto bytes = Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(),
                           PacketBuilder(200, 300, 1).Number(210, 2).Number(220, 3).Close(),
                           PacketBuilder(300, 400, 2).Number(310, 4).Close()});
  EXPECT_THAT(Read(bytes, {211, 310}).events, ElementsAre("220 t:number value=3"));
  EXPECT_THAT(Read(bytes, {210, 311}).events, SizeIs(3));
}

// Properties over every damage of one byte or of the length.

std::vector<uint8_t> SmallTrace() {
  return Join(
      {PacketBuilder(1000, 2000, 0).NumberExtended(1100, 7).Text(1200, "abc", {1, 2}).Close(),
       PacketBuilder(2000, 3000, 1).NumberExtended(2100, 8).Id(2500, 2).Close(),
       PacketBuilder(3000, 4000, 2, 4).NumberExtended(3100, 9).Text(3900, "z").Close()});
}

TEST_F(SalvageTest, EveryPrefixGivesAPrefixOfTheEvents) {
  const auto bytes = SmallTrace();
  const ReadResult whole = Read(bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly this size, so that a sanitizer sees every read behind its end.
    const std::vector<uint8_t> prefix(bytes.begin(), bytes.begin() + static_cast<long>(length));
    const ReadResult part = Read(prefix);
    ASSERT_FALSE(part.failed);
    ASSERT_LE(part.events.size(), whole.events.size());
    EXPECT_TRUE(std::equal(part.events.begin(), part.events.end(), whole.events.begin()))
        << "length " << length;
    const bool at_boundary = length % 128 == 0;
    EXPECT_TRUE(at_boundary || !part.losses.empty()) << "length " << length;
  }
}

// A content size that is too small hides events, and nothing else in the packet contradicts it.
bool IsContentSize(size_t byte) {
  const size_t at = byte % 128;
  return at >= PacketBuilder::kContentAt && at < PacketBuilder::kContentAt + 8;
}

TEST_F(SalvageTest, EveryFlippedBitIsSurvivedAndTold) {
  const auto bytes = SmallTrace();
  ASSERT_EQ(bytes.size(), 3 * 128u);
  const ReadResult whole = Read(bytes);
  const std::multiset<std::string> truth(whole.events.begin(), whole.events.end());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    SCOPED_TRACE("bit " + std::to_string(bit % 8) + " of byte " + std::to_string(bit / 8));
    std::vector<uint8_t> damaged = bytes;
    damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const ReadResult result = Read(damaged);
    ASSERT_FALSE(result.failed);
    const std::multiset<std::string> found(result.events.begin(), result.events.end());
    const auto missing = static_cast<size_t>(std::count_if(
        truth.begin(), truth.end(), [&found](const std::string& e) { return !found.contains(e); }));
    EXPECT_LE(missing, 2u) << "packets that were not touched are always whole";
    const bool told = std::any_of(result.losses.begin(), result.losses.end(), [](const Loss& l) {
      return l.reason != LossReason::kDiscardedEvents;
    });
    EXPECT_TRUE(told || result.events.size() >= whole.events.size() || IsContentSize(bit / 8));
  }
}

// The same trace without its fast path.
std::shared_ptr<const TraceLayout> Obvious() {
  auto layout = std::const_pointer_cast<TraceLayout>(LayoutOf(kMetadata));
  for (auto& stream : layout->streams) stream->fast_header = FastHeader::kNone;
  return layout;
}

TEST_F(SalvageTest, FastAndObviousDecodersAgreeOnEveryDamage) {
  ASSERT_EQ(layout_->streams[0]->fast_header, FastHeader::kLarge);
  ASSERT_EQ(layout_->streams[0]->fast_events.size(), 3u);
  const auto obvious = Obvious();
  const auto bytes = SmallTrace();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = bytes;
    damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const ReadResult fast = Read(damaged);
    const ReadResult slow = ReadAll(obvious, damaged);
    ASSERT_EQ(fast.events, slow.events) << "bit " << bit;
    ASSERT_EQ(fast.losses.size(), slow.losses.size()) << "bit " << bit;
    for (size_t i = 0; i < fast.losses.size(); ++i) {
      EXPECT_EQ(fast.losses[i].begin_ns, slow.losses[i].begin_ns);
      EXPECT_EQ(fast.losses[i].detail, slow.losses[i].detail);
    }
  }
}

}  // namespace
}  // namespace syncline::ctf::testing
