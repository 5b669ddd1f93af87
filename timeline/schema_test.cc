// SPDX-License-Identifier: Apache-2.0
// Fields read from their places against the same fields decoded.
#include "timeline/schema.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <string>

#include "ctf/test_trace.h"

namespace syncline::timeline {
namespace {

using ctf::testing::ByteWriter;

std::string MetadataOfOurEvents() {
  std::string text(ctf::testing::kMetadata);
  text.resize(text.find("event { name"));
  return text + R"(
event { name = "syncline_itt:task_begin"; id = 0; stream_id = 0; fields := struct {
  uint32_t _thread; uint32_t _domain; uint32_t _name; uint16_t _depth; }; };
event { name = "syncline_itt:counter_f64"; id = 1; stream_id = 0; fields := struct {
  uint32_t _thread; uint32_t _domain;
  floating_point { exp_dig = 11; mant_dig = 53; align = 8; } _value; }; };
event { name = "syncline_itt:task_begin_text"; id = 2; stream_id = 0; fields := struct {
  uint32_t _thread; string _name; }; };
event { name = "syncline_itt:counter_i64"; id = 3; stream_id = 0; fields := struct {
  string _text; integer { size = 64; align = 8; signed = true; } _value; }; };
event { name = "syncline_itt:metadata_u64"; id = 4; stream_id = 0; fields := struct {
  uint32_t _thread; uint16_t __values_length; uint64_t _values[ __values_length ]; }; };
)";
}

// One packet with one event of each kind.
std::vector<uint8_t> OneOfEach() {
  ByteWriter events;
  const auto header = [&events](uint16_t id) { events.Put(id).Put<uint32_t>(500); };
  header(0);
  events.Put<uint32_t>(7).Put<uint32_t>(8).Put<uint32_t>(9).Put<uint16_t>(3);
  header(1);
  events.Put<uint32_t>(7).Put<uint32_t>(8).Put<double>(-2.5);
  header(2);
  events.Put<uint32_t>(7).Text("a name");
  header(3);
  events.Text("moves what follows").Put<int64_t>(-11);
  header(4);
  events.Put<uint32_t>(7).Put<uint16_t>(2).Put<uint64_t>(1).Put<uint64_t>(2);
  std::vector<uint8_t> bytes = ctf::testing::PacketBuilder(100, 900).Close(1);
  bytes.insert(bytes.end(), events.bytes().begin(), events.bytes().end());
  const uint64_t bits = bytes.size() * 8;
  std::memcpy(bytes.data() + ctf::testing::PacketBuilder::kContentAt, &bits, sizeof bits);
  std::memcpy(bytes.data() + ctf::testing::PacketBuilder::kSizeAt, &bits, sizeof bits);
  return bytes;
}

void ForgetPlaces(std::vector<FieldClass>* fields) {
  for (FieldClass& field : *fields) {
    field.place = {};
    ForgetPlaces(&field.children);
  }
}

TEST(EventReaderTest, PlacesAndDecodingGiveTheSameFields) {
  const auto layout = ctf::testing::LayoutOf(MetadataOfOurEvents());
  ASSERT_NE(layout, nullptr);
  const std::vector<uint8_t> bytes = OneOfEach();
  auto cursor = ctf::MakeCursor(layout, std::make_unique<ctf::MemorySource>(bytes), {});
  const auto batch = cursor->NextBatch();
  ASSERT_TRUE(batch.ok());
  ASSERT_EQ(batch->size(), 5u);
  EventReader placed;
  for (const EventRecord& record : *batch) {
    SCOPED_TRACE(record.event_class->name);
    EventClass without = *record.event_class;
    ForgetPlaces(&without.fields);
    EventRecord same = record;
    same.event_class = &without;
    EventReader decoded;
    ASSERT_TRUE(placed.Decode(cursor.get(), record));
    ASSERT_TRUE(decoded.Decode(cursor.get(), same));
    for (size_t i = 0; i < static_cast<size_t>(Field::kFieldCount); ++i) {
      const auto field = static_cast<Field>(i);
      EXPECT_EQ(placed.U64(field), decoded.U64(field)) << i;
      EXPECT_EQ(placed.Real(field), decoded.Real(field)) << i;
      EXPECT_EQ(placed.Text(field), decoded.Text(field)) << i;
    }
    EXPECT_EQ(placed.Values(Field::kValues).size(), decoded.Values(Field::kValues).size());
  }
  ASSERT_TRUE(placed.Decode(cursor.get(), (*batch)[0]));
  EXPECT_EQ(placed.U32(Field::kName), 9u);
  EXPECT_EQ(placed.U64(Field::kDepth), 3u);
  ASSERT_TRUE(placed.Decode(cursor.get(), (*batch)[1]));
  EXPECT_EQ(placed.Real(Field::kValue), -2.5);
  ASSERT_TRUE(placed.Decode(cursor.get(), (*batch)[2]));
  EXPECT_EQ(placed.Text(Field::kName), "a name");
  ASSERT_TRUE(placed.Decode(cursor.get(), (*batch)[3]));
  EXPECT_EQ(placed.Real(Field::kValue), -11);
  ASSERT_TRUE(placed.Decode(cursor.get(), (*batch)[4]));
  EXPECT_EQ(placed.Values(Field::kValues).size(), 2u);
}

}  // namespace
}  // namespace syncline::timeline
