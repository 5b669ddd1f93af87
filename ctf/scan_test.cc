// SPDX-License-Identifier: Apache-2.0
// The fast ways through a trace against the ordinary one: the same events, fields and losses, on
// sound and on damaged bytes.
#include "ctf/scan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/field_place.h"
#include "common/files.h"
#include "ctf/event_header.h"
#include "ctf/generator.h"
#include "ctf/test_lanes.h"
#include "ctf/test_trace.h"

namespace syncline::ctf::testing {
namespace {

std::vector<uint8_t> SmallStream() {
  return Join({PacketBuilder(100, 900, 0)
                   .Number(110, 7)
                   .Text(200, "a", {1, 2})
                   .NumberExtended(300, 9)
                   .Id(400, 2)
                   .Text(500, "", {})
                   .Number(900, 1)
                   .Close(256),
               PacketBuilder(900, 1500, 1).Id(1000, 2).Number(1100, 3).Number(1500, 4).Close(256),
               PacketBuilder(1500, 1600, 2, 5).Number(1600, 1).Close(256)});
}

CtfCursor CursorOver(std::shared_ptr<const TraceLayout> layout, std::span<const uint8_t> bytes) {
  return CtfCursor(std::move(layout), std::make_unique<MemorySource>(bytes), {}, {});
}

// Two mappings of a file differ in them.
StreamContents WithoutAddresses(StreamContents contents) {
  for (SeenEvent& event : contents.events) event.bytes = nullptr;
  std::sort(contents.events.begin(), contents.events.end());
  return contents;
}

struct ScratchDirectory {
  std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("scan_test_" + std::to_string(::getpid()));
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

// kMetadata with the event header that LTTng's kernel tracer writes.
std::string CompactMetadata() {
  std::string metadata(kMetadata);
  const auto replace = [&metadata](std::string_view from, std::string_view to) {
    metadata.replace(metadata.find(from), from.size(), to);
  };
  replace("enum : uint16_t { compact = 0 ... 65534, extended = 65535 }",
          "enum : integer { size = 5; align = 1; signed = false; } "
          "{ compact = 0 ... 30, extended = 31 }");
  replace("struct { uint32_clock_t timestamp; } compact",
          "struct { integer { size = 27; align = 1; signed = false; "
          "map = clock.monotonic.value; } timestamp; } compact");
  return metadata;
}

std::vector<uint8_t> CompactStream() {
  std::vector<std::vector<uint8_t>> packets;
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t begin = 1000 * i + 100;
    std::vector<uint8_t> bytes = PacketBuilder(begin, begin + 900, i).Close();
    bytes.resize(PacketBuilder::kFirstEventAt);
    for (uint64_t k = 0; k < 12; ++k) {
      const uint32_t id = k % 5 == 0 ? 2 : 0;
      uint8_t header[kEventHeaderBytesMax];
      const size_t size =
          WriteEventHeader(FastHeader::kCompact, k % 4 != 0, id, begin + 10 * k, header);
      bytes.insert(bytes.end(), header, header + size);
      if (id == 0) bytes.insert(bytes.end(), {static_cast<uint8_t>(k), 1, 2, 3});
    }
    const uint64_t content = bytes.size() * 8;
    bytes.resize((bytes.size() + 63) / 64 * 64);
    StoreNumber(content, &bytes[PacketBuilder::kContentAt]);
    StoreNumber(uint64_t{bytes.size() * 8}, &bytes[PacketBuilder::kSizeAt]);
    packets.push_back(std::move(bytes));
  }
  return Join(packets);
}

void CheckEveryFlippedByte(const std::shared_ptr<const TraceLayout>& layout,
                           const std::vector<uint8_t>& sound) {
  size_t in_lanes = 0;
  for (size_t i = 0; i < sound.size(); ++i) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = sound;
      bytes[i] ^= flip;
      CtfCursor ordinary = CursorOver(layout, bytes);
      CtfCursor fast = CursorOver(layout, bytes);
      CtfCursor stretched = CursorOver(layout, bytes);
      const StreamContents expected = ReadInOrder(ordinary);
      const StreamContents found = ReadWithLane(fast, *layout, &in_lanes);
      ASSERT_EQ(found.events, expected.events) << "byte " << i << " flipped by " << int{flip};
      ASSERT_EQ(found.sums, expected.sums) << "byte " << i << " flipped by " << int{flip};
      ASSERT_EQ(found.losses, expected.losses) << "byte " << i << " flipped by " << int{flip};
      ASSERT_EQ(ReadInStretches(stretched, 90), expected) << "byte " << i;
    }
  }
  EXPECT_GT(in_lanes, sound.size());  // or nothing was compared
}

TEST(ScanTest, AnEventsTimeIsRewrittenAndNothingElse) {
  for (const FastHeader kind : {FastHeader::kLarge, FastHeader::kCompact}) {
    for (const bool brief : {true, false}) {
      std::vector<uint8_t> bytes(kEventHeaderBytesMax + 4, 0xee);
      const size_t size = WriteEventHeader(kind, brief, 17, 1'000'000, bytes.data());
      ASSERT_EQ(IsBriefEventHeader(kind, bytes.data()), brief);
      RewriteEventTime(kind, 1'234'567, bytes.data());
      const uint8_t* at = bytes.data();
      uint64_t clock = 1'000'000;
      uint32_t id = 0;
      ASSERT_TRUE(ReadEventHeader(kind, at, bytes.data() + bytes.size(), clock, id));
      EXPECT_EQ(at, bytes.data() + size);
      EXPECT_EQ(clock, 1'234'567u);
      EXPECT_EQ(id, 17u);
      EXPECT_EQ(std::count(bytes.begin() + static_cast<ptrdiff_t>(size), bytes.end(), 0xee),
                static_cast<ptrdiff_t>(bytes.size() - size));
    }
  }
}

TEST(ScanTest, EveryFlippedByteIsReadAlikeByLanes) {
  CheckEveryFlippedByte(LayoutOf(kMetadata), SmallStream());
}

TEST(ScanTest, EveryFlippedByteBehindCompactHeadersIsReadAlikeByLanes) {
  const auto layout = LayoutOf(CompactMetadata());
  ASSERT_NE(layout, nullptr);
  ASSERT_EQ(layout->streams[0]->fast_header, FastHeader::kCompact);
  CheckEveryFlippedByte(layout, CompactStream());
}

TEST(ScanTest, EveryPrefixIsReadAlikeByLanes) {
  const auto layout = LayoutOf(kMetadata);
  const std::vector<uint8_t> whole = SmallStream();
  size_t in_lanes = 0;
  for (size_t length = 0; length <= whole.size(); ++length) {
    const std::vector<uint8_t> bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
    CtfCursor ordinary = CursorOver(layout, bytes);
    CtfCursor fast = CursorOver(layout, bytes);
    CtfCursor stretched = CursorOver(layout, bytes);
    const StreamContents expected = ReadInOrder(ordinary);
    ASSERT_EQ(ReadWithLane(fast, *layout, &in_lanes), expected) << "first " << length << " bytes";
    ASSERT_EQ(ReadInStretches(stretched, 90), expected) << "first " << length << " bytes";
  }
}

TEST(ScanTest, PlacesHoldWhatDecodeFinds) {
  const auto layout = BuildLayout(ParseMetadata(GeneratedMetadata()).value()).value();
  const GeneratedStream stream = GenerateStream(
      {.events_per_stream = 2000, .packet_bytes = 4096, .gap_ns_mean = 100'000'000}, 1);
  CtfCursor cursor = CursorOver(layout, stream.bytes);
  std::vector<FieldValue> values;
  size_t numbers = 0;
  size_t texts = 0;
  for (auto batch = cursor.NextBatch(); !batch->empty(); batch = cursor.NextBatch()) {
    for (const EventRecord& record : *batch) {
      ASSERT_TRUE(cursor.Decode(record, &values));
      for (const FieldValue& value : values) {
        const FieldPlace& place = value.field->place;
        if (!place) continue;
        if (place.kind == FieldPlace::Kind::kText) {
          ASSERT_EQ(LoadText(place, record.bytes), value.text);
          ++texts;
        } else {
          ASSERT_EQ(LoadNumber(place, record.bytes), value.u) << value.field->path;
          ++numbers;
        }
      }
    }
  }
  EXPECT_GT(numbers, 4 * stream.events);  // both contexts and the payload
  EXPECT_GT(texts, 0u);
}

TEST(ScanTest, PartsOfLargeStreamsMakeTheWhole) {
  const ScratchDirectory scratch;
  const std::filesystem::path& directory = scratch.path;
  const auto written =
      GenerateTrace(directory, {.streams = 3, .events_per_stream = 40'000, .packet_bytes = 65536});
  ASSERT_TRUE(written.ok());
  auto reader = OpenTrace(directory);
  ASSERT_TRUE(reader.ok());
  ContentsReader contents;
  std::set<EventCursor*> cursors_of_first;
  const auto losses =
      (*reader)->Scan([&](EventCursor& cursor, std::span<const EventRecord> records) {
        if (cursor.stream().index == 0) cursors_of_first.insert(&cursor);
        contents.Add(cursor, records, true);
        return absl::OkStatus();
      });
  ASSERT_TRUE(losses.ok());
  EXPECT_TRUE(losses->empty());
  EXPECT_EQ(contents.by_column(), written->events);
  ContentsReader ordered;
  for (const StreamInfo& stream : (*reader)->streams()) {
    auto cursor = (*reader)->Open(stream.index);
    for (auto batch = (*cursor)->NextBatch(); !batch->empty(); batch = (*cursor)->NextBatch()) {
      ordered.Add(**cursor, *batch, false);
    }
  }
  EXPECT_EQ(WithoutAddresses(contents.Take(*losses)), WithoutAddresses(ordered.Take({})));
  EXPECT_GT(cursors_of_first.size(), 1u);  // or the stream was not cut
}

// More streams than lanes, each broken in its own way.
void WriteBrokenStreams(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  ASSERT_TRUE(WriteFileAtomically(directory / "metadata", kMetadata).ok());
  uint8_t instance = 0;
  const auto write = [&](const std::string& name, std::vector<uint8_t> bytes) {
    constexpr size_t kInstanceAt = 24;  // in the first packet: they are no copies
    if (!bytes.empty()) bytes[kInstanceAt] = ++instance;
    const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ASSERT_TRUE(WriteFileAtomically(directory / name, view).ok());
  };
  std::vector<std::vector<uint8_t>> tiny;
  for (uint64_t i = 0; i < 60; ++i) {
    PacketBuilder packet(10 * i, 10 * i + 9, i);
    if (i % 3 != 0) packet.Number(10 * i + 5, 7);
    tiny.push_back(packet.Close());
  }
  write("tiny", Join(tiny));
  write("empty", {});
  write("sound", SmallStream());
  write("unknown", Join({PacketBuilder(0, 90).Number(5, 1).Id(6, 77).Number(7, 2).Close(),
                         PacketBuilder(100, 190, 1).Number(105, 3).Close()}));
  for (const size_t broken : {90, 130, 300, 380, 600}) {
    std::vector<uint8_t> bytes = SmallStream();
    bytes[broken] ^= 0xff;
    write("flipped_" + std::to_string(broken), bytes);
    bytes.resize(broken);
    write("cut_" + std::to_string(broken), bytes);
  }
}

// No lane may take another one along.
TEST(ScanTest, LanesOfBrokenStreamsStopOneByOne) {
  const ScratchDirectory scratch;
  WriteBrokenStreams(scratch.path);
  const auto reader = OpenTrace(scratch.path).value();
  ContentsReader scanned;
  const auto losses = reader->Scan([&](EventCursor& cursor, std::span<const EventRecord> records) {
    scanned.Add(cursor, records, true);
    return absl::OkStatus();
  });
  ASSERT_TRUE(losses.ok());
  ContentsReader ordered;
  std::vector<Loss> expected;
  for (const StreamInfo& stream : reader->streams()) {
    const auto cursor = reader->Open(stream.index).value();
    for (auto batch = cursor->NextBatch(); !batch->empty(); batch = cursor->NextBatch()) {
      ordered.Add(*cursor, *batch, false);
    }
    expected.insert(expected.end(), cursor->losses().begin(), cursor->losses().end());
  }
  EXPECT_GT(expected.size(), 5u);
  EXPECT_EQ(WithoutAddresses(scanned.Take(*losses)), WithoutAddresses(ordered.Take(expected)));
}

// What several threads find together, and what they say is lost, in their order.
struct SharedScan {
  std::vector<SeenEvent> events;  // sorted
  std::map<std::string, uint64_t> sums;
  std::vector<std::string> losses;
  bool operator==(const SharedScan&) const = default;
};

SharedScan ScanWith(TraceReader& reader, size_t threads) {
  using Function = std::function<absl::Status(EventCursor&, std::span<const EventRecord>)>;
  std::vector<ContentsReader> contents(threads);
  std::vector<Function> functions;
  for (ContentsReader& own : contents) {
    functions.emplace_back([&own](EventCursor& cursor, std::span<const EventRecord> records) {
      own.Add(cursor, records, true);
      return absl::OkStatus();
    });
  }
  const std::vector<TraceReader::Visit> visits(functions.begin(), functions.end());
  const auto losses = reader.ScanShared(visits);
  SharedScan found;
  for (ContentsReader& own : contents) {
    const StreamContents some = WithoutAddresses(own.Take({}));
    found.events.insert(found.events.end(), some.events.begin(), some.events.end());
    for (const auto& [field, sum] : some.sums) found.sums[field] += sum;
  }
  std::sort(found.events.begin(), found.events.end());
  for (const Loss& loss : losses.value()) {
    found.losses.push_back(loss.source + " " + std::to_string(loss.begin_ns) + " " + loss.detail);
  }
  return found;
}

TEST(ScanTest, ThreadsFindTheSameTogether) {
  const ScratchDirectory scratch;
  WriteBrokenStreams(scratch.path / "broken");
  const auto written = GenerateTrace(
      scratch.path / "large", {.streams = 3, .events_per_stream = 90'000, .packet_bytes = 65536});
  ASSERT_TRUE(written.ok());
  for (const char* const name : {"broken", "large"}) {
    const auto reader = OpenTrace(scratch.path / name).value();
    const SharedScan alone = ScanWith(*reader, 1);
    EXPECT_FALSE(alone.events.empty());
    EXPECT_EQ(alone.losses.empty(), std::string_view(name) == "large");
    for (const size_t threads : {2, 3, 40}) {
      EXPECT_TRUE(ScanWith(*reader, threads) == alone) << threads << " threads, " << name;
    }
  }
}

TEST(ScanTest, AnErrorOfOneThreadEndsTheOthers) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(GenerateTrace(scratch.path, {.streams = 64, .events_per_stream = 1000}).ok());
  const auto reader = OpenTrace(scratch.path).value();
  const auto fail = [](EventCursor&, std::span<const EventRecord>) {
    return absl::CancelledError("enough");
  };
  // Each fails at its first event, and one that is given none finds no part left.
  const std::vector<TraceReader::Visit> visits = {fail, fail};
  EXPECT_EQ(reader->ScanShared(visits).status(), absl::CancelledError("enough"));
}

}  // namespace
}  // namespace syncline::ctf::testing
