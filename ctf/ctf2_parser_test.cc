// SPDX-License-Identifier: Apache-2.0
// What CTF 2 has that CTF 1.8 cannot say, and what LTTng writes; that both front ends agree on the
// rest is tests/ctf/compare_ctf2.py's to show.
#include "ctf/ctf2_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ctf/ctf18_words.h"
#include "ctf/packet_header.h"
#include "ctf/test_trace.h"
#include "ctf/tsdl_writer.h"

namespace syncline::ctf::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Fragments(const std::vector<std::string>& fragments) {
  std::string text;
  for (const std::string& fragment : fragments) text += '\x1e' + fragment + "\n";
  return text;
}

const char kPreamble[] = R"({"type": "preamble", "version": 2})";
const char kU8[] =
    R"({"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"})";

// A trace of one stream and one event without header, whose payload has these members. Packets
// have no header either: the file is one.
std::string PayloadOf(const std::string& members) {
  return Fragments({kPreamble, R"({"type": "trace-class"})", R"({"type": "data-stream-class"})",
                    R"({"type": "event-record-class", "name": "e", "payload-field-class":
                        {"type": "structure", "member-classes": [)" +
                        members + "]}}"});
}

std::string MemberOf(const std::string& name, const std::string& field_class) {
  return R"({"name": ")" + name + R"(", "field-class": )" + field_class + "}";
}

// The events in `bytes`, less their time, which is 0.
std::vector<std::string> EventsOf(const std::string& metadata, const std::vector<uint8_t>& bytes) {
  const auto parsed = ParseMetadata(metadata);
  if (!parsed.ok()) return {std::string(parsed.status().message())};
  const auto layout = BuildLayout(*parsed);
  if (!layout.ok()) return {std::string(layout.status().message())};
  ReadResult result = ReadAll(*layout, bytes);
  for (std::string& event : result.events) event = event.substr(2);
  for (const Loss& loss : result.losses) result.events.push_back("loss: " + loss.detail);
  return result.events;
}

// As LTTng's tracers write it, for the same bytes as kMetadata.
std::string LttngMetadata() {
  const auto number = [](int bits, const std::string& role) {
    return R"({"type": "fixed-length-unsigned-integer", "length": )" + std::to_string(bits) +
           R"(, "alignment": 8, "byte-order": "little-endian")" +
           (role.empty() ? "" : R"(, "roles": [")" + role + R"("])") + "}";
  };
  const auto member = MemberOf;
  return Fragments({
      R"({"type": "preamble", "version": 2, "uuid":
          [0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255]})",
      R"({"type": "field-class-alias", "name": "u64-ts", "field-class": )" +
          number(64, "default-clock-timestamp") + "}",
      R"({"type": "field-class-alias", "name": "pkt-ctx", "field-class":
          {"type": "structure", "member-classes": [)" +
          member("timestamp_begin", "\"u64-ts\"") + "," +
          member("timestamp_end", number(64, "packet-end-default-clock-timestamp")) + "," +
          member("content_size", number(64, "packet-content-length")) + "," +
          member("packet_size", number(64, "packet-total-length")) + "," +
          member("packet_seq_num", number(64, "packet-sequence-number")) + "," +
          member("events_discarded", number(64, "discarded-event-record-counter-snapshot")) + "," +
          member("cpu_id", number(32, "")) + "]}}",
      R"({"type": "field-class-alias", "name": "er-header-large", "field-class":
          {"type": "structure", "minimum-alignment": 8, "member-classes": [
           {"name": "id", "field-class": {"type": "fixed-length-unsigned-integer", "length": 16,
             "alignment": 8, "byte-order": "little-endian",
             "mappings": {"compact": [[0, 65534]], "extended": [[65535, 65535]]},
             "roles": ["event-record-class-id"]}},
           {"name": "v", "field-class": {"type": "variant",
             "selector-field-location": {"path": ["id"]}, "options": [
              {"name": "compact", "selector-field-ranges": [[0, 65534]], "field-class":
               {"type": "structure", "member-classes": [)" +
          member("timestamp", number(32, "default-clock-timestamp")) +
          R"(]}},
              {"name": "extended", "selector-field-ranges": [[65535, 65535]], "field-class":
               {"type": "structure", "member-classes": [)" +
          member("id", number(32, "event-record-class-id")) + "," +
          member("timestamp", "\"u64-ts\"") + "]}}]}}]}}",
      R"({"type": "trace-class", "namespace": "lttng.org,2009", "name": "",
          "environment": {"tracer_name": "lttng-ust", "vpid": 12, "hostname": "h"},
          "packet-header-field-class": {"type": "structure", "member-classes": [)" +
          member("magic", number(32, "packet-magic-number")) +
          R"(, {"name": "uuid", "field-class": {"type": "static-length-blob", "length": 16,
                "roles": ["metadata-stream-uuid"]}}, )" +
          member("stream_id", number(32, "data-stream-class-id")) + "," +
          member("stream_instance_id", number(64, "data-stream-id")) + "]}}",
      R"({"type": "clock-class", "id": "monotonic", "name": "monotonic", "uid": "boot",
          "frequency": 1000000000, "origin": "unix-epoch",
          "offset-from-origin": {"seconds": 1795198221, "cycles": 37990821}})",
      R"({"type": "data-stream-class", "id": 0, "default-clock-class-id": "monotonic",
          "packet-context-field-class": "pkt-ctx",
          "event-record-header-field-class": "er-header-large"})",
      R"({"type": "event-record-class", "data-stream-class-id": 0, "id": 0, "name": "t:number",
          "attributes": {"lttng.org,2009": {"log-level": 13}}, "payload-field-class":
          {"type": "structure", "member-classes": [)" +
          member("value", number(32, "")) + "]}}",
      R"({"type": "event-record-class", "data-stream-class-id": 0, "id": 1, "name": "t:text",
          "payload-field-class": {"type": "structure", "member-classes": [)" +
          member("text", R"({"type": "null-terminated-string"})") + "," +
          member("_items_length", number(16, "")) + "," +
          member("items", R"({"type": "dynamic-length-array", "length-field-location":
                              {"path": ["_items_length"]}, "element-field-class": )" +
                              number(16, "") + "}") +
          "]}}",
      R"({"type": "event-record-class", "data-stream-class-id": 0, "id": 2, "name": "t:empty",
          "payload-field-class": {"type": "structure"}})",
  });
}

TEST(Ctf2ParserTest, WhatLttngWritesIsReadAsItsCtf1AndAsFast) {
  const auto metadata = ParseMetadata(LttngMetadata());
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ((*metadata)->major, 2u);
  EXPECT_EQ((*metadata)->environment.at("vpid"), "12");
  EXPECT_EQ((*metadata)->clocks[0].offset_seconds, 1795198221);
  EXPECT_EQ((*metadata)->clocks[0].offset_cycles, 37990821);
  EXPECT_EQ((*metadata)->clocks[0].uuid, "boot");
  EXPECT_EQ((*metadata)->streams[0].events[0].attributes.at("loglevel"), "13");
  EXPECT_THAT((*metadata)->warnings, IsEmpty());
  const auto layout = BuildLayout(*metadata);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ((*layout)->streams[0]->fast_header, FastHeader::kLarge);
  EXPECT_EQ((*layout)->streams[0]->fast_events.size(), 3u);
  EXPECT_EQ(PacketSignature(**layout), PacketSignature(*LayoutOf(kMetadata)));
  const auto bytes =
      Join({PacketBuilder(100, 200, 0, 4).Number(110, 7).Text(200, "a", {1, 2}).Close(),
            PacketBuilder(300, 400, 2, 9).Id(350, 2).NumberExtended(400, 8).Close()});
  const ReadResult expected = ReadAll(LayoutOf(kMetadata), bytes);
  const ReadResult found = ReadAll(*layout, bytes);
  EXPECT_EQ(found.events, expected.events);
  EXPECT_THAT(found.events, SizeIs(4));
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (size_t i = 0; i < found.losses.size(); ++i) {
    EXPECT_EQ(found.losses[i].detail, expected.losses[i].detail);
    EXPECT_EQ(found.losses[i].count, expected.losses[i].count);
  }
}

TEST(Ctf2ParserTest, PacketizedAndCut) {
  const std::string text = LttngMetadata();
  const size_t last = text.rfind('\x1e');
  const auto cut = ParseMetadata(text.substr(0, last + 60));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT((*cut)->streams[0].events, SizeIs(2));
  EXPECT_THAT((*cut)->warnings, ElementsAre(HasSubstr("ends inside fragment")));
  ByteWriter packet;
  packet.Put<uint32_t>(0x75d11d57);
  for (int i = 0; i < 16; ++i) packet.Put<uint8_t>(0);
  const auto bits = static_cast<uint32_t>(8 * (37 + text.size()));
  packet.Put<uint32_t>(0).Put(bits).Put(bits);
  for (const uint8_t byte : {0, 0, 0, 2, 0}) packet.Put(byte);
  std::string file(packet.bytes().begin(), packet.bytes().end());
  const auto packetized = ParseMetadata(file + text);
  ASSERT_TRUE(packetized.ok()) << packetized.status();
  EXPECT_THAT((*packetized)->streams[0].events, SizeIs(3));
}

TEST(Ctf2ParserTest, EveryPrefixOfMetadataIsReadOrRefused) {
  const std::string text = LttngMetadata();
  size_t read = 0;
  for (size_t length = 0; length <= text.size(); ++length) {
    const auto metadata = ParseMetadata(text.substr(0, length));
    if (metadata.ok() && BuildLayout(*metadata).ok()) ++read;
  }
  EXPECT_GT(read, text.size() / 10);  // the events' part
}

TEST(Ctf2ParserTest, NumbersOfVariableLength) {
  const std::string metadata =
      PayloadOf(MemberOf("u", R"({"type": "variable-length-unsigned-integer"})") + "," +
                MemberOf("s", R"({"type": "variable-length-signed-integer"})") + "," +
                MemberOf("e", R"({"type": "variable-length-unsigned-integer",
                        "mappings": {"many": [[300, 400]]}})"));
  EXPECT_THAT(EventsOf(metadata, {0x05, 0x7f, 0x00, 0xe5, 0x8e, 0x26, 0x80, 0x7f, 0xac, 0x02}),
              ElementsAre("e u=5 s=-1 e=0()", "e u=624485 s=-128 e=300(many)"));
  // Ten bytes hold 64 bits; none may have more.
  EXPECT_THAT(
      EventsOf(metadata, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0, 0}),
      ElementsAre("e u=18446744073709551615 s=0 e=0()"));
  EXPECT_THAT(EventsOf(metadata, std::vector<uint8_t>(30, 0xff)), ElementsAre(HasSubstr("loss")));
}

TEST(Ctf2ParserTest, OptionalsAndVariantsBySelectorRanges) {
  const std::string metadata =
      PayloadOf(MemberOf("flag", R"({"type": "fixed-length-boolean", "length": 8,
                           "byte-order": "little-endian"})") +
                "," + MemberOf("kind", kU8) + "," +
                MemberOf("maybe", std::string(R"({"type": "optional", "selector-field-location":
          {"origin": "event-record-payload", "path": ["flag"]}, "field-class": )") +
                                      kU8 + "}") +
                "," +
                MemberOf("one", std::string(R"({"type": "variant", "selector-field-location":
          {"path": ["kind"]}, "options": [
           {"selector-field-ranges": [[1, 2], [9, 9]], "field-class": )") +
                                    kU8 + R"(},
           {"name": "text", "selector-field-ranges": [[3, 3]],
            "field-class": {"type": "null-terminated-string"}}]})"));
  EXPECT_THAT(EventsOf(metadata, {1, 2, 77, 5, 0, 3, 'h', 'i', 0, 1, 9, 78, 6}),
              ElementsAre(HasSubstr("maybe=77"), HasSubstr("text=hi"), HasSubstr("=78")));
  // No option for 4.
  EXPECT_THAT(EventsOf(metadata, {0, 4, 1, 1}), ElementsAre(HasSubstr("loss")));
}

TEST(Ctf2ParserTest, BlobsAndWideStrings) {
  const std::string metadata = PayloadOf(
      MemberOf("n", kU8) + "," +
      MemberOf("b", R"({"type": "dynamic-length-blob", "length-field-location":
                        {"path": ["n"]}})") +
      "," + MemberOf("w", R"({"type": "null-terminated-string", "encoding": "utf-16le"})") + "," +
      MemberOf("t", R"({"type": "dynamic-length-string", "length-field-location":
                        {"path": ["n"]}})") +
      "," + MemberOf("f", R"({"type": "static-length-string", "length": 3})"));
  const auto layout = LayoutOf(metadata);
  ASSERT_NE(layout, nullptr);
  const std::vector<uint8_t> bytes = {2, 0xfe, 0xff, 'a',  0,   0, 'b', 0, 0,   'x', 'y', 'z',
                                      0, 'q',  1,    0x00, 'c', 0, 0,   0, 'd', 'e', 0,   0};
  auto cursor = MakeCursor(layout, std::make_unique<MemorySource>(bytes), {});
  const auto batch = *cursor->NextBatch();
  ASSERT_EQ(batch.size(), 2u);
  std::vector<FieldValue> values;
  ASSERT_TRUE(cursor->Decode(batch[0], &values));
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[1].type, FieldType::kBlob);
  EXPECT_EQ(values[1].text, "\xfe\xff");
  EXPECT_EQ(values[2].type, FieldType::kBlob);
  EXPECT_EQ(values[2].text, std::string_view("a\0\0b", 4));  // "a", U+6200
  EXPECT_EQ(values[3].text, "xy");
  EXPECT_EQ(values[4].text, "z");
}

TEST(Ctf2ParserTest, BitsInEitherOrder) {
  const auto bits = [](int length, const char* bytes, const char* order) {
    return R"({"type": "fixed-length-bit-array", "length": )" + std::to_string(length) +
           R"(, "byte-order": ")" + bytes + R"(", "bit-order": ")" + order + "\"}";
  };
  const std::string metadata =
      PayloadOf(MemberOf("a", bits(8, "little-endian", "first-to-last")) + "," +
                MemberOf("b", bits(8, "little-endian", "last-to-first")) + "," +
                MemberOf("c", bits(3, "big-endian", "last-to-first")) + "," +
                MemberOf("d", bits(5, "big-endian", "first-to-last")) + "," +
                MemberOf("e", bits(72, "little-endian", "first-to-last")));
  std::vector<uint8_t> bytes = {0x16, 0x16, 0b01110010};
  bytes.resize(12, 0xff);
  const auto events = EventsOf(metadata, bytes);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0], HasSubstr("a=22 b=104 c=3 d=9 e=#72 e=1 e=1"));
}

TEST(Ctf2ParserTest, WhatCannotBeReadIsNamed) {
  const auto message = [](const std::string& text) {
    return std::string(ParseMetadata(text).status().message());
  };
  EXPECT_THAT(message("\x1e{}"), HasSubstr("fragment 1"));
  EXPECT_THAT(message(Fragments({R"({"type": "preamble", "version": 3})"})),
              HasSubstr("version other than 2"));
  EXPECT_THAT(message(Fragments({kPreamble, "{nonsense", R"({"type": "trace-class"})"})),
              HasSubstr("fragment 2 is not JSON"));
  EXPECT_THAT(message(PayloadOf(MemberOf("x", "\"unheard-of\""))),
              AllOf(HasSubstr("event-record-class"), HasSubstr("\"e\""), HasSubstr("\"x\""),
                    HasSubstr("unheard-of")));
  EXPECT_THAT(message(PayloadOf(MemberOf("x", R"({"type": "quaternion"})"))),
              HasSubstr("quaternion"));
  EXPECT_THAT(message(Fragments({kPreamble, R"({"type": "event-record-class"})"})),
              HasSubstr("data stream class 0 is not declared"));
  EXPECT_THAT(message(Fragments({kPreamble, R"({"type": "data-stream-class",
                                               "default-clock-class-id": "c"})"})),
              HasSubstr("clock class \"c\""));
  // Aliases of aliases must not nest without end.
  std::vector<std::string> nested = {kPreamble,
                                     std::string(R"({"type": "field-class-alias", "name": "0",
                                                    "field-class": )") +
                                         kU8 + "}"};
  for (int i = 0; i < 100; ++i) {
    nested.push_back(R"({"type": "field-class-alias", "name": ")" + std::to_string(i + 1) +
                     R"(", "field-class": {"type": "static-length-array", "length": 1,
                         "element-field-class": ")" +
                     std::to_string(i) + "\"}}");
  }
  EXPECT_THAT(message(Fragments(nested)), HasSubstr("nested too deeply"));
}

// What `metadata` reads as when it is said in CTF 1.8's words; a refusal's text.
std::string InOldWords(const std::string& metadata) {
  const auto parsed = ParseMetadata(metadata);
  if (!parsed.ok()) return std::string(parsed.status().message());
  const auto in_words = InCtf18Words(*parsed);
  if (!in_words.ok()) return std::string(in_words.status().message());
  const auto text = WriteTsdl(**in_words);
  return text.ok() ? *text : std::string(text.status().message());
}

TEST(Ctf18WordsTest, WhatLttngWritesDecodesAsBefore) {
  const std::string text = InOldWords(LttngMetadata());
  const auto bytes = PacketBuilder(100, 900).Number(200, 7).Text(300, "x", {1, 2}).Close();
  EXPECT_EQ(ReadAll(LayoutOf(text), bytes).events, ReadAll(LayoutOf(kMetadata), bytes).events);
  EXPECT_EQ(LayoutOf(text)->streams[0]->fast_header, FastHeader::kLarge);
  EXPECT_THAT(text, HasSubstr("map = clock.monotonic.value"));
  EXPECT_THAT(text, HasSubstr("\"compact\" = 0 ... 65534, \"extended\" = 65535 ... 65535,"));
}

TEST(Ctf18WordsTest, TagsBecomeEnumsAndBlobsBytes) {
  const std::string members =
      MemberOf("int", kU8) + "," +
      MemberOf("v", R"({"type": "variant", "selector-field-location":
                        {"origin": "event-record-payload", "path": ["int"]}, "options": [
          {"name": "short", "selector-field-ranges": [[1, 1], [3, 3]], "field-class": )" +
                        std::string(kU8) +
                        R"(}, {"name": "text", "selector-field-ranges": [[2, 2]],
           "field-class": {"type": "null-terminated-string"}}]})") +
      "," + MemberOf("raw", R"({"type": "dynamic-length-blob", "length-field-location":
                          {"path": ["int"]}})");
  const std::string metadata = PayloadOf(members);
  const std::string text = InOldWords(metadata);
  // int = 2, v = "A" as text, raw of two bytes; int = 1, v = 9, raw of one byte.
  const std::vector<uint8_t> bytes = {2, 'A', 0, 7, 8, 1, 9, 5};
  EXPECT_THAT(EventsOf(metadata, bytes), SizeIs(2));
  EXPECT_THAT(EventsOf(text, bytes), SizeIs(2)) << text;
  EXPECT_THAT(text, HasSubstr("\"_short\" = 1 ... 1, \"_short\" = 3 ... 3, \"text\" = 2 ... 2,"));
  EXPECT_THAT(text, HasSubstr("variant <_int>"));
  EXPECT_THAT(text, HasSubstr("_raw[_int]"));
  EXPECT_THAT(EventsOf(text, bytes)[1], HasSubstr("9"));
}

TEST(Ctf18WordsTest, WhatItHasNoWordsForIsRefused) {
  const auto refusal = [](const std::string& name, const std::string& field_class) {
    return InOldWords(PayloadOf(MemberOf("tag", kU8) + "," + MemberOf(name, field_class)));
  };
  EXPECT_THAT(refusal("x", R"({"type": "variable-length-unsigned-integer"})"),
              HasSubstr("no words for integers of variable length"));
  EXPECT_THAT(refusal("x", R"({"type": "null-terminated-string", "encoding": "utf-16le"})"),
              HasSubstr("UTF-16"));
  EXPECT_THAT(refusal("two words", kU8), HasSubstr("the name \"two words\""));
  const auto variant = [](const char* a, const char* b) {
    const auto option = [](const char* name, int tag) {
      return R"({"name": ")" + std::string(name) + R"(", "selector-field-ranges": [[)" +
             std::to_string(tag) + ", " + std::to_string(tag) + R"(]], "field-class": )" + kU8 +
             "}";
    };
    return R"({"type": "variant", "selector-field-location": {"path": ["tag"]}, "options": [)" +
           option(a, 0) + "," + option(b, 1) + "]}";
  };
  const auto two = [&](const std::string& second) {
    return refusal("v", variant("a", "b") + "}," + second.substr(0, second.size() - 1));
  };
  EXPECT_THAT(two(MemberOf("w", variant("b", "a"))), HasSubstr("one tag in different ways"));
  EXPECT_THAT(two(MemberOf("w", variant("a", "b"))), HasSubstr("variant <_tag>"));
  EXPECT_THAT(refusal("x", R"({"type": "optional", "selector-field-location": {"path": ["tag"]},
                               "selector-field-ranges": [[1, 1]], "field-class": )" +
                               std::string(kU8) + "}"),
              HasSubstr("optional"));
}

}  // namespace
}  // namespace syncline::ctf::testing
