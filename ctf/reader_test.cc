// SPDX-License-Identifier: Apache-2.0
// What a trace says of its streams when it is opened.
#include "ctf/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "common/descriptors.h"
#include "ctf/stream_summary.h"
#include "ctf/test_directory.h"
#include "ctf/test_trace.h"

namespace syncline::ctf::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ReaderTest : public TraceDirectoryTest {
 protected:
  // kMetadata in other words.
  void Describe(std::vector<std::pair<std::string_view, std::string_view>> replacements) {
    std::string metadata(kMetadata);
    for (const auto& [from, to] : replacements) {
      metadata.replace(metadata.find(from), from.size(), to);
    }
    std::ofstream(directory_ / "metadata") << metadata;
  }
  // "begin end" of each stream.
  std::vector<std::string> Extents() {
    std::vector<std::string> found;
    const auto reader = OpenTrace(directory_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    for (const StreamInfo& stream : (*reader)->streams()) {
      found.push_back(std::to_string(stream.begin_ns) + " " + std::to_string(stream.end_ns));
    }
    return found;
  }
};

constexpr std::string_view kBegin = "uint64_clock_t timestamp_begin;";
constexpr std::string_view kEnd = "uint64_clock_t timestamp_end;";

TEST_F(ReaderTest, AStreamLastsAsLongAsItsPacketsSay) {
  Write("a", Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(),
                   PacketBuilder(200, 300, 1).Number(210, 2).Close()}));
  Write("b", {});
  EXPECT_EQ(Extents(), (std::vector<std::string>{"100 300", "0 0"}));
}

TEST_F(ReaderTest, AnOpenPacketLastsUpToItsLastEvent) {
  const auto closed = PacketBuilder(100, 200, 0).Number(110, 1).Close();
  const auto open = PacketBuilder(200, 0, 1).Number(210, 2).Number(5000, 3).LeaveOpen();
  Write("a", Join({closed, open}));
  Write("b", PacketBuilder(200, 0, 0).LeaveOpen());
  EXPECT_EQ(Extents(), (std::vector<std::string>{"100 5000", "200 200"}));
  Write("index/a.idx", IndexOf({closed}));
  EXPECT_EQ(Extents()[0], "100 5000");
}

TEST_F(ReaderTest, WithoutEndsEventsTell) {
  Describe({{kEnd, "uint64_t other;"}});
  Write("a", Join({PacketBuilder(100, 200, 0).Number(110, 1).Close(),
                   PacketBuilder(200, 300, 1).Number(210, 2).Number(280, 3).Close()}));
  EXPECT_EQ(Extents(), (std::vector<std::string>{"100 280"}));
}

// The short times of the last packet go on from those before it.
TEST_F(ReaderTest, WithoutAnyTimesOfPacketsEventsTell) {
  Describe({{kBegin, "uint64_t other;"}, {kEnd, "uint64_t another;"}});
  const uint64_t late = uint64_t{5} << 32;
  Write("a", Join({PacketBuilder(0, 0, 0).NumberExtended(late, 1).Close(),
                   PacketBuilder(0, 0, 1).Number(late + 9, 2).Number(late + 20, 3).Close()}));
  Write("b", Join({PacketBuilder(0, 0, 0).Close(), PacketBuilder(0, 0, 1).Close()}));
  EXPECT_EQ(Extents(), (std::vector<std::string>{
                           std::to_string(late) + " " + std::to_string(late + 20), "0 0"}));
}

// The time is that of the first stream class's clock; the other's zero may lie before its own.
TEST_F(ReaderTest, StreamsOfOtherClocksLieWhereTheirOffsetsSay) {
  constexpr int64_t kOffsetNs = 1795198221037990821;
  Write("a", PacketBuilder(100, 200).Number(110, 1).Close());
  std::vector<uint8_t> other = PacketBuilder(100, 200).Number(120, 2).Close();
  other[20] = 1;  // stream_id
  Write("b", other);
  for (const int64_t later_ns : {700, -700}) {
    std::string second(
        kMetadata.substr(kMetadata.find("typealias integer { size = 32; align = 8; map")));
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"monotonic", "b"},
                                                          {"_clock_t", "_b_t"},
                                                          {"packet_context", "context_b"},
                                                          {"event_header_large", "header_b"},
                                                          {"id = 0; event.h", "id = 1; event.h"},
                                                          {"stream_id = 0", "stream_id = 1"}}) {
      for (size_t at = second.find(from); at != std::string::npos; at = second.find(from, at)) {
        second.replace(at, from.size(), to);
        at += to.size();
      }
    }
    std::ofstream(directory_ / "metadata")
        << kMetadata << "clock { name = \"b\"; freq = 1000000000; offset = " << kOffsetNs + later_ns
        << "; };\n"
        << second;
    const auto reader = OpenTrace(directory_);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->wall_clock_offset_ns(), kOffsetNs);
    EXPECT_THAT((*reader)->losses(), IsEmpty());
    std::vector<int64_t> times;
    for (const uint32_t stream : {0, 1}) {
      const auto cursor = (*reader)->Open(stream, kUnknownLo, kUnknownHi).value();
      for (auto batch = cursor->NextBatch(); !batch->empty(); batch = cursor->NextBatch()) {
        for (const EventRecord& record : *batch) times.push_back(record.time_ns);
      }
    }
    EXPECT_THAT(times, ElementsAre(110, 120 + later_ns));
    EXPECT_THAT(Extents(), later_ns > 0 ? ElementsAre("100 200", "800 900")
                                        : ElementsAre("100 200", "-600 -500"));
  }
}

// An index of another name may be of a file that was given a new one.
TEST_F(ReaderTest, AStreamThatWasRenamedIsNotGone) {
  const std::vector<std::vector<uint8_t>> packets = {
      PacketBuilder(100, 190, 0).Number(110, 1).Close(),
      PacketBuilder(200, 290, 1).Number(210, 2).Close()};
  Write("renamed", Join(packets));
  Write("index/s_0.idx", IndexOf(packets));
  EXPECT_THAT((*OpenTrace(directory_))->losses(), IsEmpty());
  Write("renamed", packets[1]);
  EXPECT_THAT((*OpenTrace(directory_))->losses(), SizeIs(1));
}

// The second packet's size hides its last event; by its begin and end it is that of the index.
TEST_F(ReaderTest, AContentThatIsSmallerThanItsIndexSaysIsALoss) {
  std::vector<std::vector<uint8_t>> packets;
  for (uint64_t i = 0; i < 12; ++i) {
    packets.push_back(PacketBuilder(100 * i, 100 * i + 90, i)
                          .Number(100 * i + 10, 1)
                          .Number(100 * i + 20, 2)
                          .Close());
  }
  const auto index = IndexOf(packets);
  Write("index/s_0.idx", index);
  const auto found = [this] {
    const auto reader = OpenTrace(directory_).value();
    const auto cursor = reader->Open(0, kUnknownLo, kUnknownHi).value();
    size_t events = 0;
    for (auto batch = cursor->NextBatch(); !batch->empty(); batch = cursor->NextBatch()) {
      events += batch->size();
    }
    std::string text = std::to_string(events);
    for (const Loss& loss : cursor->losses()) {
      text += " " + std::to_string(loss.begin_ns) + "-" + std::to_string(loss.end_ns);
    }
    return text;
  };
  Write("s_0", Join(packets));
  EXPECT_EQ(found(), "24");
  uint64_t bits = 0;
  std::memcpy(&bits, packets[5].data() + PacketBuilder::kContentAt, sizeof bits);
  bits -= 10 * 8;  // its last event
  std::memcpy(packets[5].data() + PacketBuilder::kContentAt, &bits, sizeof bits);
  Write("s_0", Join(packets));
  EXPECT_EQ(found(), "23 510-590");
  Write("index/s_0.idx", IndexOf({packets[0]}));  // it does not tell
  EXPECT_EQ(found(), "23");
}

// Neither sizes nor sequence numbers can tell; another stream's index tells nothing.
TEST_F(ReaderTest, WhatOnlyTheIndexListsIsALoss) {
  const std::vector<std::vector<uint8_t>> packets = {
      PacketBuilder(100, 190, 0).Number(110, 1).Close(),
      PacketBuilder(200, 290, 1).Number(210, 2).Close(),
      PacketBuilder(300, 390, 2).Number(310, 3).Close()};
  Write("s_0", Join(packets));
  Write("index/s_0.idx", IndexOf(packets));
  const auto losses = [this] {
    std::vector<std::string> found;
    const auto reader = OpenTrace(directory_).value();
    for (const Loss& loss : reader->losses()) {
      found.push_back(loss.source + " " + std::to_string(loss.begin_ns) + "-" +
                      std::to_string(loss.end_ns) + " " + std::to_string(loss.count.value_or(0)));
    }
    return found;
  };
  EXPECT_THAT(losses(), IsEmpty());
  Write("s_0", packets[2]);  // its head is gone
  EXPECT_THAT(losses(), ElementsAre("s_0 100-290 2"));
  Write("s_0", {});
  EXPECT_THAT(losses(), ElementsAre("s_0 100-390 3"));
  std::filesystem::remove(directory_ / "s_0");
  EXPECT_THAT(losses(), ElementsAre("s_0 100-390 3"));
  auto other = Join(packets);
  other[24] = 2;  // the stream's instance
  for (size_t at = packets[0].size(); at < other.size(); at += packets[0].size())
    other[at + 24] = 2;
  Write("s_0", {other.begin() + static_cast<ptrdiff_t>(packets[0].size()), other.end()});
  EXPECT_THAT(losses(), IsEmpty());
}

TEST_F(ReaderTest, WithoutDescriptorsThereIsAnErrorNotATraceWithoutStreams) {
  Describe({});
  std::ofstream(directory_ / "stream_0") << "bytes";
  EXPECT_THAT(ListStreamFiles(directory_).value(), ElementsAre(directory_ / "stream_0"));
  const DescriptorLimit none(0);
  EXPECT_EQ(ListStreamFiles(directory_).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace syncline::ctf::testing
