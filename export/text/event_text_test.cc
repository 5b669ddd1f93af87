// SPDX-License-Identifier: Apache-2.0
#include "export/text/event_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/field_place.h"

namespace syncline::text {
namespace {

using ::testing::HasSubstr;

// An event of every type of field, in two scopes.
class EventTextTest : public ::testing::Test {
 protected:
  FieldValue* Add(const char* name, FieldType type, FieldScope scope = FieldScope::kPayload) {
    FieldClass& field = fields_.emplace_back();
    field.name = name;
    field.type = type;
    field.scope = scope;
    FieldValue value;
    value.field = &field;
    value.type = type;
    values_.push_back(value);
    return &values_.back();
  }

  void SetUp() override {
    stream_.name = "chan_1";
    stream_.cpu = 1;
    class_.name = "app:all";
    record_.time_ns = 77;
    record_.event_class = &class_;
    Add("vtid", FieldType::kSigned, FieldScope::kStreamContext)->s = -5;
    Add("big", FieldType::kUnsigned)->u = std::numeric_limits<uint64_t>::max();
    Add("hex", FieldType::kUnsigned)->u = 255;
    fields_.back().display_base = 16;
    Add("real", FieldType::kReal)->d = 0.1;
    Add("text", FieldType::kString)->text = "a \"b\"\n\xff ü";
    FieldValue* label = Add("color", FieldType::kEnum);
    label->u = 2;
    label->text = "RED";
    Add("list", FieldType::kArray)->count = 2;
    Add("", FieldType::kSigned)->s = 1;
    Add("", FieldType::kSigned)->s = -2;
    Add("pair", FieldType::kStruct)->count = 1;
    Add("x", FieldType::kReal)->d = std::numeric_limits<double>::infinity();
    Add("empty", FieldType::kArray);
  }

  std::string Line(EventText::Style style) {
    EventText text(style);
    text.Append({{-1'500'000'000}, "n 1", &stream_, &record_, 0, values_});
    return std::string(text.buffer()->text());
  }

  std::deque<FieldClass> fields_;
  std::vector<FieldValue> values_;
  StreamInfo stream_;
  EventClass class_;
  EventRecord record_;
};

TEST_F(EventTextTest, AnArrayThatIsGivenInPartSaysSo) {
  values_.clear();
  FieldValue* const list = Add("list", FieldType::kArray);
  list->u = 1000;
  EXPECT_THAT(Line(EventText::Style::kText), HasSubstr("list = [ 1000 more ]"));
  EXPECT_THAT(Line(EventText::Style::kJson), HasSubstr("\"list\":[\"1000 more\"]"));
  values_.back().count = 1;
  Add("", FieldType::kSigned)->s = 7;
  EXPECT_THAT(Line(EventText::Style::kText), HasSubstr("list = [ 7, 999 more ]"));
  EXPECT_THAT(Line(EventText::Style::kJson), HasSubstr("\"list\":[7,\"999 more\"]"));
}

TEST_F(EventTextTest, TextHasEveryField) {
  EXPECT_EQ(Line(EventText::Style::kText),
            "[-1.500000000] n 1 chan_1 app:all: { vtid = -5 }, { big = 18446744073709551615, "
            "hex = 0xff, real = 0.1, text = \"a \\\"b\\\"\\n\xef\xbf\xbd ü\", color = RED : 2, "
            "list = [ 1, -2 ], pair = { x = inf }, empty = [  ] }\n");
}

TEST_F(EventTextTest, NoNameEndsTheLine) {
  stream_.name = "chan\r1";
  class_.name = "app:\033all\n";
  fields_[1].name = "b\nig";
  fields_[2].name = "h\xc2\x9b\x7f";
  fields_.back().name = "emp\nty";
  values_[5].text = "R\nED";
  EXPECT_EQ(Line(EventText::Style::kText),
            "[-1.500000000] n 1 chan\\u000d1 app:\\u001ball\\n: { vtid = -5 }, { b\\nig = "
            "18446744073709551615, h\\u009b\\u007f = 0xff, real = 0.1, text = \"a "
            "\\\"b\\\"\\n\xef\xbf\xbd ü\", "
            "color = R\\nED : 2, list = [ 1, -2 ], pair = { x = inf }, emp\\nty = [  ] }\n");
}

TEST_F(EventTextTest, JsonIsJsonAndLosesNoDigit) {
  const std::string out = Line(EventText::Style::kJson);
  const auto json = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded()) << out;
  EXPECT_EQ(json["time_ns"], -1'500'000'000);
  EXPECT_EQ(json["clock"], "trace");
  EXPECT_EQ(json["clock_ns"], 77);
  EXPECT_EQ(json["node"], "n 1");
  EXPECT_EQ(json["cpu"], 1);
  EXPECT_EQ(json["stream_context"]["vtid"], -5);
  EXPECT_EQ(json["fields"]["big"].get<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(json["fields"]["real"], 0.1);
  EXPECT_EQ(json["fields"]["text"], "a \"b\"\n\xef\xbf\xbd ü");
  EXPECT_EQ(json["fields"]["color"], (nlohmann::json{{"label", "RED"}, {"value", 2}}));
  EXPECT_EQ(json["fields"]["list"], (nlohmann::json::array({1, -2})));
  EXPECT_EQ(json["fields"]["pair"]["x"], "inf");
  EXPECT_TRUE(json["fields"]["empty"].empty());
}

// What lines have in common is kept; what they have not must not be.
TEST_F(EventTextTest, FieldsMayDifferFromEventToEvent) {
  EventText text(EventText::Style::kText);
  const auto line = [&](int64_t time_ns, std::span<const FieldValue> values) {
    text.buffer()->Clear();
    text.Append({{time_ns}, "n", &stream_, &record_, 0, values});
    return std::string(text.buffer()->text());
  };
  const std::span<const FieldValue> all(values_);
  const std::string whole = line(0, all);
  EXPECT_EQ(line(0, all.first(1)), "[+0.000000000] n chan_1 app:all: { vtid = -5 }\n");
  EXPECT_EQ(line(0, all.first(2)),
            "[+0.000000000] n chan_1 app:all: { vtid = -5 }, { big = 18446744073709551615 }\n");
  EXPECT_EQ(line(-1, {}), "[-0.000000001] n chan_1 app:all:\n");
  EXPECT_EQ(line(std::numeric_limits<int64_t>::min(), all.subspan(1, 1)),
            "[-9223372036.854775808] n chan_1 app:all: { big = 18446744073709551615 }\n");
  EXPECT_EQ(line(0, all), whole);
}

// Events whose fields lie at known places, behind a context that changes now and then.
class PlacedEvents : public ::testing::Test {
 protected:
  using Kind = FieldPlace::Kind;

  void Add(const char* name, FieldType type, Kind kind, uint8_t width, uint32_t offset,
           FieldScope scope = FieldScope::kPayload) {
    FieldClass& field = class_.fields.emplace_back();
    field.name = name;
    field.type = type;
    field.scope = scope;
    field.place = {kind, width, false, offset};
  }

  void SetUp() override {
    stream_.name = "chan_1";
    class_.name = "app:placed";
    Add("cpu_id", FieldType::kUnsigned, Kind::kNone, 0, 0, FieldScope::kPacketContext);
    Add("vpid", FieldType::kSigned, Kind::kSigned, 4, 0, FieldScope::kStreamContext);
    Add("vtid", FieldType::kSigned, Kind::kSigned, 4, 4, FieldScope::kStreamContext);
    Add("big", FieldType::kUnsigned, Kind::kUnsigned, 8, 8);
    Add("mask", FieldType::kUnsigned, Kind::kUnsigned, 1, 16);
    Add("status", FieldType::kSigned, Kind::kSigned, 2, 17);
    Add("ratio", FieldType::kReal, Kind::kReal, 4, 19);
    Add("text", FieldType::kString, Kind::kText, 0, 23);
  }

  void Put(const void* bytes, size_t size, size_t offset) {
    std::memcpy(bytes_.data() + offset, bytes, size);
  }

  EventView View(uint64_t n, uint64_t packet) {
    const int32_t ids[] = {-7, static_cast<int32_t>(n / 3 % 2)};
    const uint64_t big = n << n % 64;
    const auto mask = static_cast<uint8_t>(n);
    const auto status = static_cast<int16_t>(n % 2 == 0 ? -300 : 5);
    const float ratio = static_cast<float>(n) / 8;
    const std::string text(n % 40, n % 5 == 0 ? '"' : 'a');
    Put(ids, sizeof ids, 0);
    Put(&big, sizeof big, 8);
    Put(&mask, sizeof mask, 16);
    Put(&status, sizeof status, 17);
    Put(&ratio, sizeof ratio, 19);
    Put(text.c_str(), text.size() + 1, 23);
    record_ = {static_cast<int64_t>(n), &class_, bytes_.data(), 0};
    values_.clear();
    for (const FieldClass& field : class_.fields) {
      FieldValue& value = values_.emplace_back();
      value.field = &field;
      value.type = field.type;
      if (field.type == FieldType::kString) {
        value.text = LoadText(field.place, bytes_.data());
      } else {
        value.u = field.place ? LoadNumber(field.place, bytes_.data()) : packet;
      }
    }
    const auto time_ns = static_cast<int64_t>(n) * 400'000'000 - 2'000'000'000;
    return {{time_ns}, "n", &stream_, &record_, packet, {}};
  }

  std::array<uint8_t, 64> bytes_{};
  std::vector<FieldValue> values_;
  StreamInfo stream_;
  EventClass class_;
  EventRecord record_;
};

TEST_F(PlacedEvents, UndecodedLinesAreTheSame) {
  for (const auto style : {EventText::Style::kText, EventText::Style::kJson}) {
    class_.fields[4].display_base = style == EventText::Style::kText ? 10 : 16;
    EventText text(style);
    size_t undecoded = 0;
    for (uint64_t n = 0; n < 200; ++n) {
      EventView event = View(n, 1 + n / 50);
      text.buffer()->Clear();
      const bool appended = text.AppendUndecoded(event);
      undecoded += appended ? 1 : 0;
      event.values = values_;
      if (!appended) text.Append(event);
      EventText anew(style);
      anew.Append(event);
      ASSERT_EQ(text.buffer()->text(), anew.buffer()->text()) << n;
    }
    EXPECT_GT(undecoded, 100u);
  }
}

TEST_F(PlacedEvents, WhatIsNotAsPlacesSayIsDecoded) {
  EventText text(EventText::Style::kText);
  EventView event = View(1, 0);  // of no packet
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(text.AppendUndecoded(event));
    event.values = values_;
    text.Append(event);
  }
  event = View(1, 1);
  event.values = std::span(values_).first(5);  // damaged: the rest did not decode
  text.Append(event);
  EXPECT_FALSE(text.AppendUndecoded(event));
  class_.fields[4].display_base = 16;
  EventText hex(EventText::Style::kText);
  event.values = values_;
  hex.Append(event);
  EXPECT_FALSE(hex.AppendUndecoded(event));
}

// With very many streams not all is kept, and what is made again is the same.
TEST_F(PlacedEvents, WhatIsKeptIsBounded) {
  constexpr size_t kFew = 100;
  for (const size_t lines_max : {EventText::kLinesMax, kFew}) {
    EventText text(EventText::Style::kText, EventText::Ids::kAsRecorded, lines_max);
    std::deque<StreamInfo> streams(lines_max * 5 / 2);
    size_t most = 0;
    size_t undecoded = 0;
    for (size_t i = 0; i < 2 * streams.size(); ++i) {
      StreamInfo& stream = streams[i % streams.size()];
      stream.name = "chan_" + std::to_string(i % streams.size());
      for (int again = 0; again < 2; ++again) {
        EventView event = View(i, 1);
        event.stream = &stream;
        text.buffer()->Clear();
        if (text.AppendUndecoded(event)) {
          ++undecoded;
        } else {
          event.values = values_;
          text.Append(event);
        }
        ASSERT_NE(text.buffer()->text().find(stream.name + " app:placed"), std::string_view::npos);
        ASSERT_NE(text.buffer()->text().find("mask = " + std::to_string(i % 256) + ","),
                  std::string_view::npos);
      }
      most = std::max(most, text.lines_kept());
    }
    EXPECT_EQ(most, lines_max);
    EXPECT_GT(undecoded, streams.size());
  }
}

TEST(DigitsTest, NumbersOfEveryLength) {
  TextBuffer buffer;
  std::string expected;
  const auto put = [&](uint64_t value) {
    buffer.PutNumber(value);
    buffer.PutNumber(-static_cast<int64_t>(value >> 1));
    expected += std::to_string(value) + std::to_string(-static_cast<int64_t>(value >> 1));
  };
  for (uint64_t power = 1;; power *= 10) {
    for (const uint64_t value : {power - 1, power, power + 1, power * 9 / 7}) put(value);
    if (power > std::numeric_limits<uint64_t>::max() / 10) break;
  }
  for (uint64_t value = 0; value < 20'000; ++value) {  // all that is divided side by side
    put(value);
    put(value * 10'000 + 19'999 - value);
  }
  EXPECT_EQ(buffer.text(), expected);
  buffer.PutNumber(std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(buffer.text().ends_with("-9223372036854775808"));
  for (const uint32_t nine : {0u, 7u, 99'999'999u, 100'000'000u, 120'305'007u, 999'999'999u}) {
    std::array<char, kNumberMax> room;
    const char* const end = WriteNine(nine, room.data());
    EXPECT_EQ(std::string_view(room.data(), static_cast<size_t>(end - room.data())),
              std::to_string(1'000'000'000 + nine).substr(1));
  }
}

}  // namespace
}  // namespace syncline::text
