// SPDX-License-Identifier: Apache-2.0
// Streams of one writer: what is missing between them is lost, what is in two of them is read once.
#include "ctf/stream_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "ctf/reader.h"
#include "ctf/test_directory.h"
#include "ctf/test_trace.h"

namespace syncline::ctf::testing {
namespace {

using Packets = std::vector<std::vector<uint8_t>>;
using Strings = std::vector<std::string>;

class StreamChainTest : public TraceDirectoryTest {
 protected:
  // "stream: events; losses" of each.
  Strings Read() {
    const auto reader = OpenTrace(directory_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::map<std::string, int> events;
    const auto lost = (*reader)->Scan([&](EventCursor& cursor, std::span<const EventRecord> some) {
      events[cursor.stream().name] += static_cast<int>(some.size());
      return absl::OkStatus();
    });
    EXPECT_TRUE(lost.ok()) << lost.status();
    Strings found;
    size_t losses = 0;
    for (const StreamInfo& stream : (*reader)->streams()) {
      const auto cursor = (*reader)->Open(stream.index);
      int in_order = 0;
      for (auto batch = (*cursor)->NextBatch(); !batch->empty(); batch = (*cursor)->NextBatch()) {
        in_order += static_cast<int>(batch->size());
      }
      EXPECT_EQ(in_order, events[stream.name]);
      std::string line = stream.name + ": " + std::to_string(in_order);
      for (const Loss& loss : (*cursor)->losses()) {
        line += "; " + std::string(LossReasonName(loss.reason)) + " " +
                std::to_string(loss.count.value_or(0)) + " from " + std::to_string(loss.begin_ns) +
                " to " + std::to_string(loss.end_ns);
        ++losses;
      }
      found.push_back(line);
    }
    EXPECT_EQ(lost->size(), losses);
    return found;
  }

  // A packet with one event.
  std::vector<uint8_t> One(uint64_t begin_ns, uint64_t number, uint64_t discarded = 0,
                           uint8_t instance = 1) {
    constexpr size_t kInstanceAt = 24;
    auto bytes =
        PacketBuilder(begin_ns, begin_ns + 50, number, discarded).Number(begin_ns, 7).Close();
    bytes[kInstanceAt] = instance;
    return bytes;
  }
};

TEST_F(StreamChainTest, WhatIsMissingBetweenFilesIsLost) {
  Write("a_1", Join({One(400, 3, 5), One(500, 4, 5)}));  // of a ring, say: names say nothing
  Write("a_0", Join({One(100, 0, 2), One(200, 1, 2)}));
  Write("a_2", One(600, 5, 9));
  const Strings expected = {
      "a_0: 2; discarded events 2 from 100 to 150",
      "a_1: 2; lost packets 1 from 250 to 400; discarded events 3 from 250 to 450",
      "a_2: 1; discarded events 4 from 550 to 650"};
  EXPECT_EQ(Read(), expected);
  Write("index/a_0.idx", IndexOf({One(100, 0, 2), One(200, 1, 2)}));
  Write("index/a_1.idx", IndexOf({One(400, 3, 5), One(500, 4, 5)}));
  EXPECT_EQ(Read(), expected);
}

TEST_F(StreamChainTest, WhatIsInTwoFilesIsReadOnce) {
  const Packets packets = {One(100, 0), One(200, 1), One(300, 2), One(400, 3)};
  Write("a", packets[0]);  // saved before there was more
  Write("b", Join({packets[0], packets[1], packets[2]}));
  Write("b~", Join({packets[0], packets[1], packets[2]}));
  Write("c", Join({packets[1], packets[2], packets[3]}));
  Write("d", packets[1]);
  const Strings expected = {"a: 0", "b: 3", "b~: 0", "c: 1", "d: 0"};
  EXPECT_EQ(Read(), expected);
  Write("index/b.idx", IndexOf({packets[0], packets[1], packets[2]}));
  EXPECT_EQ(Read(), expected);
}

// Nothing is passed over for its number alone.
TEST_F(StreamChainTest, WhatIsWholeInOneFileOnlyIsReadThere) {
  const Packets packets = {One(100, 0), One(200, 1), One(300, 2), One(400, 3)};
  const std::vector<uint8_t> all = Join(packets);
  // The last packet of one is cut, one in the middle of it is damaged, or missing.
  std::vector<uint8_t> cut(all.begin(), all.end() - 60);
  std::vector<uint8_t> damaged = all;
  std::fill_n(damaged.begin() + static_cast<ptrdiff_t>(packets[0].size()), 84, uint8_t{0xff});
  for (const auto& bytes : {cut, damaged, Join({packets[0], packets[2], packets[3]})}) {
    for (const auto& [first, second] : {std::pair(bytes, all), std::pair(all, bytes)}) {
      Write("a", first);
      Write("b", second);
      const Strings found = Read();
      EXPECT_EQ(found[0][3] - '0' + found[1][3] - '0', 4) << found[0] << ", " << found[1];
    }
  }
  // Another packet of the same number, times and size, beside one that is the same.
  auto other = One(200, 1);
  other[PacketBuilder::kFirstEventAt + 6] ^= 1;
  Write("a", Join({packets[0], packets[1]}));
  Write("b", Join({packets[0], other}));
  EXPECT_EQ(Read(), Strings({"a: 2", "b: 1"}));
  Write("b", other);
  EXPECT_EQ(Read(), Strings({"a: 2", "b: 1"}));
  // An index that lists more than there is does not make it be there.
  Write("a", Join({packets[0], packets[1]}));
  Write("index/a.idx", IndexOf(packets));
  Write("b", all);
  EXPECT_EQ(Read(), Strings({"a: 0", "b: 4"}));
}

TEST_F(StreamChainTest, AStrayStreamEndsNoChain) {
  Write("a", Join({One(100, 0), One(200, 1)}));
  Write("s", One(50, 1));  // another writer's
  Write("z", Join({One(200, 1), One(300, 2)}));
  EXPECT_EQ(Read(), Strings({"a: 2", "s: 1", "z: 1"}));
}

TEST_F(StreamChainTest, AnOddCountOfTheLastPacketIsNotBelieved) {
  const Packets packets = {One(100, 0, 2), One(200, 1, 5), One(300, 2, 0)};
  Write("a", Join(packets));
  Write("b", One(400, 3, 9));
  const std::string expected = "b: 1; discarded events 4 from 350 to 450";
  EXPECT_EQ(Read()[1], expected);
  Write("index/a.idx", IndexOf(packets));
  EXPECT_EQ(Read()[1], expected);
}

TEST_F(StreamChainTest, AcrossTraces) {
  const std::filesystem::path other = directory_ / "other";
  std::filesystem::create_directories(other);
  std::ofstream(other / "metadata") << kMetadata;
  Write("s", Join({One(100, 0), One(200, 1)}));
  Write("other/s", Join({One(200, 1), One(300, 2), One(500, 4)}));
  const auto first = OpenTrace(directory_);
  const auto second = OpenTrace(other);
  ASSERT_TRUE(first.ok() && second.ok());
  const std::vector<TraceReader*> readers = {second->get(), first->get()};
  for (int i = 0; i < 2; ++i) {
    const std::vector<Again> again = ChainStreams(readers);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].reader, second->get());
    EXPECT_EQ(again[0].packets, 1u);
  }
  const auto cursor = (*second)->Open(0);
  EXPECT_EQ((*cursor)->NextBatch()->size(), 1u);
  EXPECT_EQ((*cursor)->NextBatch()->size(), 1u);
  EXPECT_EQ((*cursor)->NextBatch()->size(), 0u);
  ASSERT_EQ((*cursor)->losses().size(), 1u);
  EXPECT_EQ((*cursor)->losses()[0].count, 1u);
}

TEST_F(StreamChainTest, WhatOnlyLooksAlikeIsLeftAsItIs) {
  Write("a", Join({One(100, 0), One(300, 1)}));
  Write("another instance", One(100, 0, 0, 2));
  Write("another packet of that number", Join({One(110, 0), One(210, 1)}));
  Write("no packet at all", {});
  EXPECT_EQ(Read(), Strings({"a: 2", "another instance: 1", "another packet of that number: 2",
                             "no packet at all: 0"}));
  Write("a later number before it", One(200, 7));
  EXPECT_EQ(Read()[1], "a later number before it: 1");
}

TEST_F(StreamChainTest, NumbersThatWrapSayNothing) {
  std::string metadata(kMetadata);
  metadata.replace(metadata.find("uint64_t packet_seq_num"), 23,
                   "uint32_t s; uint32_t packet_seq_num");
  std::ofstream(directory_ / "metadata") << metadata;
  Write("a", Join({One(100, 5ull << 32), One(200, 9ull << 32)}));
  Write("b", Join({One(300, 11ull << 32), One(400, 0), One(500, 12ull << 32)}));
  EXPECT_EQ(Read()[1].substr(0, 4), "b: 3");
}

TEST_F(StreamChainTest, PacketsThatDoNotSayWhoseTheyAreAreBelieved) {
  std::string metadata(kMetadata);
  metadata.replace(metadata.find("stream_instance_id"), 18, "whatever__________");
  std::ofstream(directory_ / "metadata") << metadata;
  Write("a", One(100, 0));
  Write("b", One(100, 0));
  EXPECT_EQ(Read(), Strings({"a: 1", "b: 1"}));
}

TEST_F(StreamChainTest, PacketsBeforeTheFirstAreCountedByTheirNumbers) {
  Write("a_0", Join({One(100, 3), One(200, 4)}));
  Write("a_1", One(300, 5));
  Write("b_0", Join({One(100, 0, 0, 2), One(200, 1, 0, 2)}));
  const auto reader = OpenTrace(directory_).value();
  TraceReader* const one = reader.get();
  const LateBegins late = FindLateBegins({&one, 1});
  EXPECT_EQ(late.writers, 1u);
  EXPECT_EQ(late.packets, 3u);
}

}  // namespace
}  // namespace syncline::ctf::testing
