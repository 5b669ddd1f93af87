#include "export/text/event_text.h"

#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <nlohmann/json.hpp>

namespace syncline::text {
namespace {

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
    text.Append({{-1'500'000'000}, "n 1", &stream_, &record_, values_});
    return std::string(text.buffer()->text());
  }

  std::deque<FieldClass> fields_;
  std::vector<FieldValue> values_;
  StreamInfo stream_;
  EventClass class_;
  EventRecord record_;
};

TEST_F(EventTextTest, TextHasEveryField) {
  EXPECT_EQ(Line(EventText::Style::kText),
            "[-1.500000000] n 1 chan_1 app:all: { vtid = -5 }, { big = 18446744073709551615, "
            "hex = 0xff, real = 0.1, text = \"a \\\"b\\\"\\n\xef\xbf\xbd ü\", color = RED : 2, "
            "list = [ 1, -2 ], pair = { x = inf }, empty = [  ] }\n");
}

TEST_F(EventTextTest, JsonIsJsonAndLosesNoDigit) {
  const std::string out = Line(EventText::Style::kJson);
  const auto json = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded()) << out;
  EXPECT_EQ(json["time_ns"], -1'500'000'000);
  EXPECT_EQ(json["clock_ns"], 77);
  EXPECT_EQ(json["node"], "n 1");
  EXPECT_EQ(json["cpu"], 1);
  EXPECT_EQ(json["stream_context"]["vtid"], -5);
  EXPECT_EQ(json["fields"]["big"].get<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(json["fields"]["real"], 0.1);
  EXPECT_EQ(json["fields"]["text"], "a \"b\"\n\xef\xbf\xbd ü");
  EXPECT_EQ(json["fields"]["color"], "RED");
  EXPECT_EQ(json["fields"]["list"], (nlohmann::json::array({1, -2})));
  EXPECT_EQ(json["fields"]["pair"]["x"], "inf");
  EXPECT_TRUE(json["fields"]["empty"].empty());
}

// What lines have in common is kept; what they have not must not be.
TEST_F(EventTextTest, FieldsMayDifferFromEventToEvent) {
  EventText text(EventText::Style::kText);
  const auto line = [&](int64_t time_ns, std::span<const FieldValue> values) {
    text.buffer()->Clear();
    text.Append({{time_ns}, "n", &stream_, &record_, values});
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

TEST(TextBufferTest, NumbersOfEveryLength) {
  TextBuffer buffer;
  std::string expected;
  for (uint64_t power = 1;; power *= 10) {
    for (const uint64_t value : {power - 1, power, power + 1, power * 9 / 7}) {
      buffer.PutNumber(value);
      buffer.PutNumber(-static_cast<int64_t>(value >> 1));
      expected += std::to_string(value) + std::to_string(-static_cast<int64_t>(value >> 1));
    }
    if (power > std::numeric_limits<uint64_t>::max() / 10) break;
  }
  for (const uint32_t nine : {0u, 7u, 99'999'999u, 100'000'000u, 120'305'007u, 999'999'999u}) {
    buffer.PutNine(nine);
    expected += std::to_string(1'000'000'000 + nine).substr(1);
  }
  EXPECT_EQ(buffer.text(), expected);
}

}  // namespace
}  // namespace syncline::text
