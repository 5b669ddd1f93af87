// What a trace says of its streams when it is opened.
#include "ctf/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ctf/test_directory.h"
#include "ctf/test_trace.h"

namespace syncline::ctf::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
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

TEST_F(ReaderTest, AnotherClocksOffsetIsTold) {
  const auto warnings = [this](std::string_view seconds) {
    std::ofstream(directory_ / "metadata")
        << kMetadata << "clock { name = \"b\"; freq = 1000000; offset_s = " << seconds
        << "; offset = 37990; };\nstream { id = 1; packet.context := struct packet_context;"
        << "event.header := struct { uint8_t id;"
        << "integer { size = 64; map = clock.b.value; } timestamp; }; };\n";
    const auto reader = OpenTrace(directory_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<std::string> details;
    for (const Loss& loss : (*reader)->losses()) details.push_back(loss.detail);
    return details;
  };
  Write("a", PacketBuilder(100, 200).Number(110, 1).Close());
  EXPECT_THAT(warnings("1795198223"), IsEmpty()) << "no stream goes by it";
  std::vector<uint8_t> other = PacketBuilder(100, 200).Close();
  other[20] = 1;  // stream_id
  Write("b", other);
  EXPECT_THAT(warnings("1795198221"), IsEmpty()) << "less than a microsecond";
  const auto told = warnings("1795198223");
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], HasSubstr("stream class 1 uses clock \"b\", whose offset differs from that "
                                 "of \"monotonic\" by 2 s"));
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

}  // namespace
}  // namespace syncline::ctf::testing
