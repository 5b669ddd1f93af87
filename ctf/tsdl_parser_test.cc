// SPDX-License-Identifier: Apache-2.0
#include "ctf/tsdl_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ctf/test_trace.h"

namespace syncline::ctf {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kTrace[] = "trace { major = 1; minor = 8; byte_order = be; };\n";

TEST(TsdlParserTest, ReadsWhatLttngWrites) {
  const auto metadata = ParseMetadata(testing::kMetadata);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ((*metadata)->byte_order, ByteOrder::kLittle);
  EXPECT_EQ((*metadata)->environment.at("tracer_name"), "lttng-ust");
  EXPECT_EQ((*metadata)->environment.at("vpid"), "12");
  ASSERT_THAT((*metadata)->clocks, SizeIs(1));
  EXPECT_EQ((*metadata)->clocks[0].offset_cycles, 1795198221037990821);
  ASSERT_THAT((*metadata)->streams, SizeIs(1));
  ASSERT_THAT((*metadata)->streams[0].events, SizeIs(3));
  EXPECT_EQ((*metadata)->streams[0].events[0].attributes.at("loglevel"), "13");
  EXPECT_EQ((*metadata)->streams[0].event_header->alignment, 8u);
}

TEST(TsdlParserTest, TypesOfEveryKind) {
  const auto metadata = ParseTsdl(std::string(kTrace) + R"(
    typealias integer { size = 7; signed = true; base = hex; } := signed short int;
    typedef signed short int pair_t[2];
    struct named { string s; } align(32);
    enum kind : integer { size = 8; } { A, B = 5, "C d" = 7 ... 9, E, };
    event { name = "x"; fields := struct {
      pair_t a[3];
      struct named n;
      enum kind tag;
      variant <tag> { struct named A; integer { size = 3; } B; } v;
      floating_point { exp_dig = 8; mant_dig = 24; byte_order = le; } f;
      integer { size = 8; encoding = UTF8; } text[tag];
    }; };)");
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  const Type& payload = *metadata->streams[0].events[0].payload;
  ASSERT_THAT(payload.members, SizeIs(6));
  const Type& a = *payload.members[0].type;
  EXPECT_EQ(a.length, 3u);
  EXPECT_EQ(a.element->length, 2u);
  EXPECT_EQ(a.element->element->base, 16);
  EXPECT_TRUE(a.element->element->is_signed);
  EXPECT_EQ(a.element->element->alignment, 1u);
  EXPECT_EQ(payload.members[1].type->alignment, 32u);
  EXPECT_EQ(payload.alignment, 32u);
  const auto& mappings = payload.members[2].type->mappings;
  ASSERT_THAT(mappings, SizeIs(4));
  EXPECT_EQ(mappings[2].label, "C d");
  EXPECT_EQ(mappings[2].high, 9u);
  EXPECT_EQ(mappings[3].low, 10u);
  EXPECT_EQ(payload.members[3].type->reference, "tag");
  EXPECT_EQ(payload.members[4].type->byte_order, ByteOrder::kLittle);
  EXPECT_EQ(payload.members[5].type->kind, TypeKind::kSequence);
}

TEST(TsdlParserTest, NamesDoNotHideHowDeepTypesNest) {
  for (const bool arrays : {false, true}) {
    std::string text = std::string(kTrace) + "struct s0 { string x; }; typealias string := t0;\n";
    for (int i = 1; i < 200; ++i) {
      const std::string n = std::to_string(i);
      const std::string before = std::to_string(i - 1);
      text += arrays ? "typedef t" + before + " t" + n + "[1];\n"
                     : "struct s" + n + " { struct s" + before + " x; };\n";
    }
    EXPECT_THAT(std::string(ParseTsdl(text).status().message()), HasSubstr("nested too deeply"));
  }
}

TEST(TsdlParserTest, InnerNamesHideOuterOnes) {
  const auto metadata = ParseTsdl(std::string(kTrace) + R"(
    typealias integer { size = 8; } := t;
    event { fields := struct { typealias integer { size = 16; } := t; t inner; }; };
    stream { typealias integer { size = 32; } := u; event.context := struct { t outer; u own; }; };
  )");
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ(metadata->streams[0].events[0].payload->members[0].type->size_bits, 16u);
  EXPECT_EQ(metadata->streams[0].event_context->members[0].type->size_bits, 8u);
}

// It may say how something is to be read: a damaged name of an attribute is not heeded silently.
TEST(TsdlParserTest, WhatNobodyKnowsIsToldOnce) {
  const auto metadata = ParseTsdl(std::string(kTrace) + R"(
    clock { name = c; frep = 1000; precision = 3; };
    typealias integer { size = 8; cigned = true; } := t;
    typealias integer { size = 9; cigned = true; } := u;
    typealias floating_point { exp_dig = 8; mant_dig = 24; byte_orfr = le; } := f;
    stream { gvent.header := struct { t id; }; };
    event { loglevel = 3; fields := struct { u x; f y; }; };
  )");
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_THAT(
      metadata->warnings,
      ElementsAre(HasSubstr("clock has \"frep\""), HasSubstr("number has \"byte_orfr\""),
                  HasSubstr("stream has \"gvent.header\""), HasSubstr("integer has \"cigned\"")));
}

TEST(TsdlParserTest, CutMetadataKeepsWhatWasWhole) {
  const std::string text(testing::kMetadata);
  const size_t last = text.rfind("event {");
  const auto metadata = ParseMetadata(text.substr(0, last + 30));
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_THAT((*metadata)->streams[0].events, SizeIs(2));
  EXPECT_THAT((*metadata)->warnings, ElementsAre(HasSubstr("metadata ends inside")));
}

TEST(TsdlParserTest, DeclarationsThatCannotBeReadAreLeftOut) {
  const auto metadata = ParseMetadata(
      std::string(testing::kMetadata) +
      "clock { name = \"monotonic\"; };\n"
      "event { name = \"t:odd\"; id = 9; stream_id = 0; fields := struct { nosuch x; }; };\n"
      "event { name = \"t:again\"; id = 0; stream_id = 0; };\n"
      "event { name = \"t:last\"; id = 3; stream_id = 0; fields := struct { uint32_t v; }; };\n");
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  std::vector<std::string> names;
  for (const EventType& event : (*metadata)->streams[0].events) names.push_back(event.name);
  EXPECT_THAT(names, ElementsAre("t:text", "t:empty", "t:last"));
  EXPECT_THAT((*metadata)->warnings,
              ElementsAre(HasSubstr("declared twice"), HasSubstr("unknown type \"nosuch\""),
                          HasSubstr("event id 0 of stream 0 is declared twice")));
}

TEST(TsdlParserTest, PacketizedInEitherByteOrder) {
  for (const bool big : {false, true}) {
    std::string file;
    const std::string_view text = testing::kMetadata;
    for (size_t at = 0; at < text.size(); at += 500) {
      const std::string_view part = text.substr(at, 500);
      std::string packet(37, '\0');
      const auto put = [&](size_t offset, uint32_t value) {
        for (size_t i = 0; i < 4; ++i) {
          packet[offset + i] = static_cast<char>(value >> (big ? 24 - 8 * i : 8 * i));
        }
      };
      put(0, 0x75d11d57);
      put(24, static_cast<uint32_t>(37 + part.size()) * 8);
      put(28, 1024 * 8);
      packet.append(part);
      packet.resize(1024, '\0');
      file += packet;
    }
    const auto metadata = ParseMetadata(file);
    ASSERT_TRUE(metadata.ok()) << metadata.status();
    EXPECT_THAT((*metadata)->streams[0].events, SizeIs(3));
    file.resize(file.size() - 900);
    EXPECT_TRUE(ParseMetadata(file).ok());
    const size_t last = file.size() / 1024 * 1024;
    file[last] ^= 1;
    const auto damaged = ParseMetadata(file);
    ASSERT_TRUE(damaged.ok()) << damaged.status();
    EXPECT_THAT((*damaged)->streams, SizeIs(1)) << "what is whole in front of it";
    EXPECT_THAT(
        (*damaged)->warnings,
        Contains(HasSubstr("no packet where one must begin, at byte " + std::to_string(last))));
    file[0] ^= 1;
    EXPECT_FALSE(ParseMetadata(file).ok());
  }
}

struct BadCase {
  const char* text;
  const char* message;
};

TEST(TsdlParserTest, ErrorsSayWhereAndWhat) {
  const BadCase kCases[] = {
      {"", "no trace block"},
      {"trace { byte_order = xx; };", "metadata:1:9: a trace's byte_order must be le or be"},
      {"event { fields := struct { foo x; }; };", "metadata:1:28: unknown type \"foo\""},
      {"event {\n  id = \"x\";\n};", "metadata:2:3: \"id\" must be a number"},
      {"typealias integer { size = 65; } := x;", "an integer's size must be 1 to 64 bits"},
      {"typealias integer { size = 8; align = 3; } := x;", "power of two"},
      {"typealias integer { signed = false; } := x;", "needs a size"},
      {"event { fields := struct { string a; string a; }; };", "declared twice"},
      {"nonsense { };", "unknown declaration \"nonsense\""},
      {"event { name = \"a\" };", "expected \";\""},
      {"/* never", "never ends"},
      {"event { name = \"a; };", "never ends"},
      {"env { x = 99999999999999999999; };", "does not fit 64 bits"},
      {"struct s { struct s x; };", "unknown type \"struct s\""},
      {"enum e : integer { size = 8; } { A = 5 ... 3 };", "must not end before it begins"},
  };
  for (const BadCase& one : kCases) {
    const auto metadata = ParseTsdl(one.text);
    EXPECT_THAT(std::string(metadata.status().message()), HasSubstr(one.message)) << one.text;
  }
}

TEST(TsdlParserTest, DepthIsBounded) {
  std::string text = kTrace;
  for (int i = 0; i < 5000; ++i) text += "struct { ";
  EXPECT_THAT(std::string(ParseTsdl(text).status().message()), HasSubstr("too deeply"));
}

TEST(LayoutTest, WhatCannotBeResolvedIsNamed) {
  const auto error = [](const std::string& fields) {
    auto metadata = ParseMetadata(std::string(kTrace) + "event { name = \"e\"; fields := struct {" +
                                  fields + "}; };");
    EXPECT_TRUE(metadata.ok()) << metadata.status();
    return std::string(BuildLayout(*metadata).status().message());
  };
  const std::string integer = "integer { size = 8; }";
  EXPECT_THAT(error(integer + " a[n]; " + integer + " n;"),
              HasSubstr("event \"e\": field \"a\" of the payload: cannot find \"n\""));
  EXPECT_THAT(error("string s; " + integer + " a[s];"), HasSubstr("not an integer"));
  EXPECT_THAT(error("variant { string a; } v;"), HasSubstr("has no tag"));
}

TEST(LayoutTest, TypesThatGrowExponentiallyAreRefused) {
  std::string text = std::string(kTrace) + "struct s0 { string a; };\n";
  for (int i = 1; i < 40; ++i) {
    const std::string below = "struct s" + std::to_string(i - 1);
    text += "struct s" + std::to_string(i) + " { " + below + " a; " + below + " b; };\n";
  }
  text += "event { fields := struct { struct s39 x; }; };";
  const auto metadata = ParseMetadata(text);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_THAT(std::string(BuildLayout(*metadata).status().message()), HasSubstr("too many parts"));
}

// Lengths and tags inside of array elements and variant options, and of an outer scope: what
// babeltrace2 2.0.4 cannot read is checked by hand.
TEST(LayoutTest, ReferencesInsideArraysAndAcrossScopes) {
  const auto layout = testing::LayoutOf(R"(
    trace { major = 1; minor = 8; byte_order = le; };
    typealias integer { size = 8; } := u8;
    stream { event.header := struct { u8 id; u8 extra; }; event.context := struct { u8 n; }; };
    event { name = "e"; id = 3; fields := struct {
      u8 count;
      struct { u8 length; u8 items[length]; } rows[count];
      u8 outer[stream.event.context.n];
      u8 header[stream.event.header.extra];
      enum : u8 { one = 1, two = 2 } tag;
      variant <tag> { u8 one; struct { u8 k; u8 more[k]; } two; } choice;
    }; };)");
  ASSERT_NE(layout, nullptr);
  const std::vector<uint8_t> bytes = {3,           1,  2,
                                      /*rows*/ 2,  1,  50,
                                      2,           60, 61,
                                      /*outer*/ 7, 8,  /*header*/ 9,
                                      /*tag*/ 2,   1,  99};
  const testing::ReadResult result = testing::ReadAll(layout, bytes);
  EXPECT_THAT(result.events,
              ElementsAre("0 e count=2 rows=#2 rows=#2 rows.length=1 rows.items=#1 rows.items=50 "
                          "rows=#2 rows.length=2 rows.items=#2 rows.items=60 rows.items=61 "
                          "outer=#2 outer=7 outer=8 header=#1 header=9 tag=2(two) choice=#1 "
                          "choice.two=#2 choice.two.k=1 choice.two.more=#1 choice.two.more=99"));
}

}  // namespace
}  // namespace syncline::ctf
