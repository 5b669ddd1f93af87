#include "export/text/event_text.h"

#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <nlohmann/json.hpp>

namespace syncline::text {
namespace {

// An event of every type of field, in two scopes.
class EventText : public ::testing::Test {
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

  EventView View() const { return {{-1'500'000'000}, "n 1", &stream_, &record_, values_}; }

  std::deque<FieldClass> fields_;
  std::vector<FieldValue> values_;
  StreamInfo stream_;
  EventClass class_;
  EventRecord record_;
};

TEST_F(EventText, TextHasEveryField) {
  std::string out;
  AppendText(View(), &out);
  EXPECT_EQ(out,
            "[-1.500000000] n 1 chan_1 app:all: { vtid = -5 }, { big = 18446744073709551615, "
            "hex = 0xff, real = 0.1, text = \"a \\\"b\\\"\\n\xef\xbf\xbd ü\", color = RED : 2, "
            "list = [ 1, -2 ], pair = { x = inf }, empty = [  ] }\n");
}

TEST_F(EventText, JsonIsJsonAndLosesNoDigit) {
  std::string out;
  AppendJson(View(), &out);
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

TEST(Seconds, KeepsEveryNanosecond) {
  EXPECT_EQ(Seconds(0), "+0.000000000");
  EXPECT_EQ(Seconds(-1), "-0.000000001");
  EXPECT_EQ(Seconds(std::numeric_limits<int64_t>::min()), "-9223372036.854775808");
}

}  // namespace
}  // namespace syncline::text
