// The fast ways through a trace against the ordinary one: the same events, fields and losses, on
// sound and on damaged bytes.
#include "ctf/scan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "common/field_place.h"
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

TEST(ScanTest, EveryFlippedByteIsReadAlikeByLanes) {
  const auto layout = LayoutOf(kMetadata);
  const std::vector<uint8_t> sound = SmallStream();
  size_t in_lanes = 0;
  for (size_t i = 0; i < sound.size(); ++i) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = sound;
      bytes[i] ^= flip;
      CtfCursor ordinary = CursorOver(layout, bytes);
      CtfCursor fast = CursorOver(layout, bytes);
      const StreamContents expected = ReadInOrder(ordinary);
      const StreamContents found = ReadWithLane(fast, layout->events.size(), &in_lanes);
      ASSERT_EQ(found.events, expected.events) << "byte " << i << " flipped by " << int{flip};
      ASSERT_EQ(found.sums, expected.sums) << "byte " << i << " flipped by " << int{flip};
      ASSERT_EQ(found.losses, expected.losses) << "byte " << i << " flipped by " << int{flip};
    }
  }
  EXPECT_GT(in_lanes, sound.size());  // or nothing was compared
}

TEST(ScanTest, EveryPrefixIsReadAlikeByLanes) {
  const auto layout = LayoutOf(kMetadata);
  const std::vector<uint8_t> whole = SmallStream();
  size_t in_lanes = 0;
  for (size_t length = 0; length <= whole.size(); ++length) {
    const std::vector<uint8_t> bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
    CtfCursor ordinary = CursorOver(layout, bytes);
    CtfCursor fast = CursorOver(layout, bytes);
    ASSERT_EQ(ReadWithLane(fast, layout->events.size(), &in_lanes), ReadInOrder(ordinary))
        << "the first " << length << " bytes";
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
  std::set<EventCursor*> cursors;
  const auto losses =
      (*reader)->Scan([&](EventCursor& cursor, std::span<const EventRecord> records) {
        cursors.insert(&cursor);
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
  EXPECT_GT(cursors.size(), 3u);  // or no stream was cut
}

}  // namespace
}  // namespace syncline::ctf::testing
