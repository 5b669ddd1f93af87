// SPDX-License-Identifier: Apache-2.0
#include "ctf/tsdl_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctf/metadata.h"
#include "ctf/test_trace.h"

namespace syncline::ctf {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kEveryType = R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char;
typealias integer { size = 5; align = 1; signed = true; base = 16; byte_order = be; } := s5;
trace { major = 1; minor = 8; byte_order = le; uuid = "00112233-4455-6677-8899-aabbccddeeff"; };
env { hostname = "a \"quoted\" \\ name"; vpid = 12; procname = "12"; };
clock { name = "c"; freq = 19200000; offset_s = -3; offset = 7; absolute = TRUE; };
stream {
  id = 3;
  event.header := struct { integer { size = 16; } id; integer { size = 64; map = clock.c.value; }
    timestamp; } align(32);
};
event { name = "e:all"; id = 1; stream_id = 3; loglevel = 13; model.emf.uri = "http://x";
  fields := struct {
    s5 _small; char _text[16]; char _letter; integer { size = 16; signed = true; } _n;
    integer { size = 8; } _matrix[2][3]; integer { size = 8; } _some[_letter];
    floating_point { exp_dig = 8; mant_dig = 24; align = 32; byte_order = be; } _f;
    enum : integer { size = 8; signed = true; } { A = -5 ... -1, "b c" = 3, A = 7 } _tag;
    variant <_tag> { string A; struct { s5 _x; } align(16) "b_c"; } _v;
  };
};
)";

std::string Again(std::string_view text) {
  const auto metadata = ParseMetadata(text);
  EXPECT_TRUE(metadata.ok()) << metadata.status();
  if (!metadata.ok()) return "";
  const auto written = WriteTsdl(**metadata);
  EXPECT_TRUE(written.ok()) << written.status();
  return written.value_or("");
}

// What is written is read as what it was written from: then it is written the same once more.
void ExpectStable(std::string_view text) {
  const std::string once = Again(text);
  EXPECT_EQ(Again(once), once);
}

TEST(TsdlWriterTest, LttngsLayoutSurvives) {
  ExpectStable(testing::kMetadata);
  const std::string written = Again(testing::kMetadata);
  const auto bytes = testing::PacketBuilder(100, 900).Number(200, 7).Text(300, "x", {1, 2}).Close();
  const auto before = testing::ReadAll(testing::LayoutOf(testing::kMetadata), bytes);
  const auto after = testing::ReadAll(testing::LayoutOf(written), bytes);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.events.size(), 2u);
  EXPECT_THAT(written, HasSubstr("loglevel = 13;"));
  EXPECT_THAT(written, HasSubstr("uuid = \"00112233-4455-6677-8899-aabbccddeeff\";"));
}

TEST(TsdlWriterTest, EveryTypeSurvives) {
  std::string text(kEveryType);
  text.replace(text.find("\"b_c\""), 5, "_b_c");
  ExpectStable(text);
  const std::string written = Again(text);
  EXPECT_THAT(written, HasSubstr("hostname = \"a \\\"quoted\\\" \\\\ name\";"));
  EXPECT_THAT(written, HasSubstr("vpid = 12;"));
  EXPECT_THAT(written, HasSubstr("procname = \"12\";"));
  EXPECT_THAT(written, HasSubstr("_matrix[2][3];"));
  EXPECT_THAT(written, HasSubstr("_some[_letter];"));
  EXPECT_THAT(written, HasSubstr("\"A\" = -5 ... -1, \"b c\" = 3 ... 3, \"A\" = 7 ... 7,"));
  EXPECT_THAT(written, HasSubstr("align(32)"));
  EXPECT_THAT(written, HasSubstr("offset_s = -3;"));
  EXPECT_THAT(written, HasSubstr("absolute = TRUE;"));
  EXPECT_THAT(written, HasSubstr("mant_dig = 24; align = 32; byte_order = be;"));
}

// babeltrace2 refuses a stream with an id whose packets do not say one.
TEST(TsdlWriterTest, AStreamHasAnIdOnlyWherePacketsSayIt) {
  std::string text(kEveryType);
  text.replace(text.find("\"b_c\""), 5, "_b_c");
  const std::string without = text;
  EXPECT_EQ(Again(text).find("stream {\n  id"), std::string::npos);
  EXPECT_EQ(Again(text).find("stream_id"), std::string::npos);
  text.replace(text.find("byte_order = le;"), 0,
               "packet.header := struct { integer { size = 8; } stream_id; }; ");
  EXPECT_THAT(Again(text), HasSubstr("stream {\n  id = 3;"));
  EXPECT_THAT(Again(text), HasSubstr("\n  stream_id = 3;"));
  EXPECT_THAT(Again(without + "stream { id = 4; };"), HasSubstr("stream {\n  id = 4;"));
}

TEST(TsdlWriterTest, WhatCtf18CannotSayIsRefused) {
  Metadata metadata;
  metadata.roles_by_name = false;
  EXPECT_EQ(WriteTsdl(metadata).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace syncline::ctf
