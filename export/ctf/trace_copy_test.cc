// SPDX-License-Identifier: Apache-2.0
#include "export/ctf/trace_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/files.h"
#include "ctf/reader.h"
#include "ctf/test_trace.h"

namespace syncline::ctf_export {
namespace {

using ctf::testing::Join;
using ctf::testing::PacketBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

// time * 2 + 1000: far more than any clock drifts, so that gaps outgrow what a short header holds.
class Stretch final : public timeline::Placement {
 public:
  TimelineTime At(int64_t clock_ns) override { return {clock_ns * 2 + 1000}; }
  std::optional<clocksync::ClockLine> LineAt(int64_t) override {
    constexpr int64_t kDouble = int64_t{2} << clocksync::ClockLine::kSlopeBits;
    return clocksync::ClockLine{0, int64_t{1} << 59, 0, 1000, kDouble};
  }
  std::optional<int64_t> BoundNs(int64_t) const override { return std::nullopt; }
  int64_t ClockNs(TimelineTime time) const override { return (time.ns - 1000) / 2; }
  ClockId clock() const override { return {}; }
};

class TraceCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ / "in");
    Write("metadata", ctf::testing::kMetadata);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, std::string_view bytes) {
    std::ofstream(directory_ / "in" / name, std::ios::binary) << bytes;
  }
  void Write(const std::string& name, const std::vector<uint8_t>& bytes) {
    Write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  std::string Read(const std::string& out, const std::string& name) {
    return ReadFile(directory_ / out / name).value_or("");
  }

  CopyResult Copy(timeline::Interval window = {{kUnknownLo}, {kUnknownHi}},
                  const std::string& out = "out") {
    CopyOptions options{"node-a", "node-a/x", kEpoch, window};
    auto result = CopyTrace(directory_ / "in", directory_ / out, placement_, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CopyResult{});
  }

  // The copy's events, with its losses behind them.
  Strings Events(const std::string& out = "out") {
    Strings found;
    auto reader = ctf::OpenTrace(directory_ / out);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return found;
    EXPECT_EQ((*reader)->wall_clock_offset_ns(), 0);
    EXPECT_EQ((*reader)->environment().at("hostname"), "node-a");
    std::vector<FieldValue> values;
    for (const StreamInfo& stream : (*reader)->streams()) {
      auto cursor = *(*reader)->Open(stream.index);
      for (;;) {
        const auto batch = *cursor->NextBatch();
        if (batch.empty()) break;
        for (const EventRecord& record : batch) {
          EXPECT_TRUE(cursor->Decode(record, &values));
          EventRecord shown = record;
          shown.time_ns -= kEpoch;
          found.push_back(ctf::testing::Render(shown, values));
        }
      }
      for (const Loss& loss : cursor->losses()) found.push_back("loss: " + loss.detail);
    }
    for (const Loss& loss : (*reader)->losses()) found.push_back("loss: " + loss.detail);
    return found;
  }

  static constexpr int64_t kEpoch = 1'700'000'000'000'000'000;
  std::filesystem::path directory_;
  Stretch placement_;
};

TEST_F(TraceCopyTest, EveryEventKeepsItsFieldsAndGetsItsTime) {
  Write("s_0", Join({PacketBuilder(100, 900, 0).Number(200, 7).Text(300, "x", {1, 2}).Close(),
                     PacketBuilder(1000, 1900, 1).Number(1200, 8).Close()}));
  Write("s_1", PacketBuilder(100, 900).NumberExtended(500, 9).Close());
  const CopyResult result = Copy();
  EXPECT_EQ(result.streams, 2u);
  EXPECT_EQ(result.events, 4u);
  EXPECT_THAT(Events(), ElementsAre("1400 t:number value=7",
                                    "1600 t:text text=x _items_length=2 items=#2 items=1 items=2",
                                    "3400 t:number value=8", "2000 t:number value=9"));
}

TEST_F(TraceCopyTest, AGapThatOutgrowsTheShortHeaderGetsALongOne) {
  const uint64_t later = 200 + (uint64_t{1} << 31) + 5;  // twice that is more than 32 bits
  Write(
      "s_0",
      PacketBuilder(100, later + 100).Number(200, 1).Number(later, 2).Number(later + 1, 3).Close());
  Copy();
  EXPECT_THAT(Events(), ElementsAre("1400 t:number value=1",
                                    std::to_string(later * 2 + 1000) + " t:number value=2",
                                    std::to_string(later * 2 + 1002) + " t:number value=3"));
}

TEST_F(TraceCopyTest, WhatIsDamagedBecomesSound) {
  std::vector<uint8_t> cut = PacketBuilder(1000, 1900, 1).Number(1200, 8).Number(1300, 9).Close();
  cut.resize(PacketBuilder::kFirstEventAt + 10 + 4);  // in the middle of the second event
  Write("s_0", Join({PacketBuilder(100, 900, 0).Number(200, 7).Close(), cut}));
  Write("s_1", PacketBuilder(100, 0).Number(400, 5).LeaveOpen());
  Copy();
  EXPECT_THAT(Events(), ElementsAre("1400 t:number value=7", "3400 t:number value=8",
                                    "1800 t:number value=5"));
}

TEST_F(TraceCopyTest, APacketThatSaysToEndTooLateCostsNoEventsBehindIt) {
  Write("s_0", Join({PacketBuilder(100, uint64_t{1} << 40, 0).Number(200, 7).Close(),
                     PacketBuilder(1000, 1900, 1).Number(1200, 8).Close(),
                     PacketBuilder(2000, 2900, 2).Number(2200, 9).Close()}));
  const Strings all = {"1400 t:number value=7", "3400 t:number value=8", "5400 t:number value=9"};
  Copy();
  EXPECT_EQ(Events(), all);
  Copy({{3000}, {kUnknownHi}}, "later");
  EXPECT_THAT(Events("later"), ElementsAre(all[1], all[2]));
}

// Its events' shortened times continue those of the packets before it, however those were copied.
TEST_F(TraceCopyTest, APacketWhoseTimesAreDamagedCostsNoEvents) {
  constexpr uint64_t kLate = uint64_t{5} << 32;
  const auto late = [](uint64_t ns) { return std::to_string((kLate + ns) * 2 + 1000); };
  Write("s_0",
        Join({PacketBuilder(kLate + 100, kLate + 900, 0).Number(kLate + 200, 7).Close(),
              PacketBuilder(kLate + 1000, UINT64_MAX, 1).Number(kLate + 1200, 8).Close(),
              PacketBuilder(kLate + 2000, kLate + 2900, 2).Number(kLate + 2200, 9).Close()}));
  EXPECT_EQ(Copy().events, 3u);
  EXPECT_THAT(Events(),
              ElementsAre(late(200) + " t:number value=7", late(1200) + " t:number value=8",
                          late(2200) + " t:number value=9"));
}

TEST_F(TraceCopyTest, NoPacketBeginsWhereNoReaderTakesIt) {
  constexpr uint64_t kNever = 8'200'000'000'000'000'000;  // with the epoch more than 63 bits
  const auto sound = PacketBuilder(100, 900, 0).Number(200, 7).Close();
  const auto placement = timeline::ShiftPlacement({}, 5000);
  CopyOptions options{"node-a", "node-a/x", kEpoch};
  Write("s_0", sound);
  ASSERT_TRUE(CopyTrace(directory_ / "in", directory_ / "sound", *placement, options).ok());
  Write("s_0", Join({sound, PacketBuilder(kNever, kNever + 5, 1).Close()}));
  ASSERT_TRUE(CopyTrace(directory_ / "in", directory_ / "out", *placement, options).ok());
  EXPECT_FALSE(Read("out", "s_0").empty());
  EXPECT_EQ(Read("out", "s_0"), Read("sound", "s_0"));
}

TEST_F(TraceCopyTest, OfAWindowOnlyItsEvents) {
  Write("s_0", Join({PacketBuilder(100, 900, 0).Number(200, 1).Number(800, 2).Close(),
                     PacketBuilder(1000, 1900, 1).Number(1200, 3).Number(1800, 4).Close(),
                     PacketBuilder(2000, 2900, 2).Number(2200, 5).Close()}));
  const auto time = [](int64_t clock_ns) { return TimelineTime{clock_ns * 2 + 1000}; };
  EXPECT_EQ(Copy({time(800), time(1800)}).events, 2u);
  EXPECT_THAT(Events(), ElementsAre("2600 t:number value=2", "3400 t:number value=3"));
  EXPECT_EQ(Copy({time(5000), time(6000)}, "none").events, 0u);
  EXPECT_THAT(Events("none"), IsEmpty());
}

TEST_F(TraceCopyTest, OfAWindowTheSameWithAPacketIndex) {
  std::vector<std::vector<uint8_t>> packets;
  for (uint64_t i = 0; i < 12; ++i) {
    packets.push_back(PacketBuilder(100 * i, 100 * i + 90, i)
                          .Number(100 * i + 50, 7)
                          .Id(100 * i + 90, 2)
                          .Close());
  }
  Write("s_0", Join(packets));
  const auto time = [](int64_t clock_ns) { return TimelineTime{clock_ns * 2 + 1000}; };
  Copy({time(890), time(1080)}, "without");
  std::filesystem::create_directories(directory_ / "in" / "index");
  Write("index/s_0.idx", ctf::testing::IndexOf(packets));
  EXPECT_EQ(Copy({time(890), time(1080)}, "with").events, 4u);
  EXPECT_EQ(Read("with", "s_0"), Read("without", "s_0"));
  // What lies long before the window is not looked at: no packet is there any more.
  std::vector<uint8_t> hollow = Join(packets);
  std::fill(hollow.begin() + 200, hollow.begin() + 400, uint8_t{0});
  Write("s_0", hollow);
  Copy({time(890), time(1080)}, "hollow");
  EXPECT_EQ(Read("hollow", "s_0"), Read("without", "s_0"));
}

TEST_F(TraceCopyTest, TheSameAgainAndAnotherTraceDiffers) {
  Write("s_0", PacketBuilder(100, 900).Number(200, 7).Close());
  Copy();
  Copy({{kUnknownLo}, {kUnknownHi}}, "again");
  EXPECT_EQ(Read("out", "metadata"), Read("again", "metadata"));
  EXPECT_EQ(Read("out", "s_0"), Read("again", "s_0"));
  CopyOptions other{"node-a", "node-a/y", kEpoch};
  ASSERT_TRUE(CopyTrace(directory_ / "in", directory_ / "other", placement_, other).ok());
  EXPECT_NE(Read("out", "metadata"), Read("other", "metadata")) << "two traces of one uuid";
}

TEST_F(TraceCopyTest, TheSameBytesForAnyNumberOfThreads) {
  for (uint64_t i = 0; i < 12; ++i) {
    Write("s_" + std::to_string(i),
          Join({PacketBuilder(100, 900, 0).Number(200 + i, 7).Text(300, "x", {1, 2}).Close(),
                PacketBuilder(1000, 1900, 1).Number(1200 + i, 8).Close()}));
  }
  const auto placement = timeline::ShiftPlacement({}, 5000);  // one that has others of its kind
  CopyOptions options{"node-a", "node-a/x", kEpoch};
  ASSERT_EQ(CopyTrace(directory_ / "in", directory_ / "one", *placement, options)->events, 36u);
  for (const unsigned threads : {2, 5, 64}) {
    options.threads = threads;
    const std::string out = std::to_string(threads);
    ASSERT_EQ(CopyTrace(directory_ / "in", directory_ / out, *placement, options)->events, 36u);
    for (int i = 0; i < 12; ++i) {
      const std::string name = "s_" + std::to_string(i);
      EXPECT_FALSE(Read(out, name).empty());
      EXPECT_EQ(Read(out, name), Read("one", name)) << threads << " threads";
    }
  }
}

TEST_F(TraceCopyTest, AnotherLayoutIsRefused) {
  std::string metadata(ctf::testing::kMetadata);
  metadata.replace(metadata.find("uint32_t _value;"), 16,
                   "integer { size = 32; align = 32; } _value;");
  Write("metadata", metadata);
  const auto result =
      CopyTrace(directory_ / "in", directory_ / "out", placement_, {"node-a", "node-a/x", kEpoch});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(result.status().message()), ::testing::HasSubstr("t:number"));
}

TEST_F(TraceCopyTest, PacketsThatCannotSayTheirSizesAndTimesAreRefused) {
  const std::string metadata(ctf::testing::kMetadata);
  std::string without = metadata;
  without.erase(without.find("packet.context := "), 40);
  std::string narrow = metadata;
  narrow.replace(narrow.find("uint64_t content_size"), 8, "uint16_t");
  std::string untimed = metadata;
  untimed.erase(untimed.find("uint64_clock_t timestamp_end;"), 29);
  for (const std::string& text : {without, narrow, untimed}) {
    Write("metadata", text);
    const auto result = CopyTrace(directory_ / "in", directory_ / "out", placement_,
                                  {"node-a", "node-a/x", kEpoch});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnimplemented) << text;
    EXPECT_THAT(std::string(result.status().message()), ::testing::HasSubstr("in 64 bits and"));
  }
}

TEST_F(TraceCopyTest, WhatIsInAnotherFileTooIsCopiedOnce) {
  const auto first = PacketBuilder(0, 9, 0).Number(5, 1).Close();
  Write("a", first);
  Write("a.bak", Join({first, PacketBuilder(10, 19, 1).Number(15, 2).Close()}));
  CopyOptions options{"node-a", "node-a/x", kEpoch};
  options.before["a.bak"].elsewhere =
      std::make_shared<const std::vector<uint64_t>>(std::vector<uint64_t>{0});
  const auto copied = CopyTrace(directory_ / "in", directory_ / "out", placement_, options);
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->events, 2u);
}

}  // namespace
}  // namespace syncline::ctf_export
