// SPDX-License-Identifier: Apache-2.0
#include "spans/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace syncline::spans {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr char kHeader[] = "rank,step,name,start_ns,duration_ns,kind\n";

std::vector<Row> Rows(const std::string& text) {
  std::vector<Row> rows;
  const auto format = FormatOf(text);
  EXPECT_TRUE(format.has_value());
  if (!format.has_value()) return rows;
  const absl::Status status = ReadRows(text, *format, [&](const Row& row) { rows.push_back(row); });
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

std::string ErrorOf(const std::string& text, Format format = Format::kCsv) {
  const absl::Status status = ReadRows(text, format, [](const Row&) {});
  return std::string(status.message());
}

TEST(RowsTest, ReadsColumnsByNameInAnyOrder) {
  const auto rows = Rows(
      "kind,start_ns,name,rank,duration_ns,step,batch,sequence,stream,device,node\n"
      "kernel,1790857026000000001,mm,3,20,7,64,,9,GPU 1,host0\n");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].rank, 3);
  EXPECT_EQ(rows[0].step, 7);
  EXPECT_EQ(rows[0].sequence, std::nullopt);
  EXPECT_EQ(rows[0].name, "mm");
  EXPECT_EQ(rows[0].kind, "kernel");
  EXPECT_EQ(rows[0].start_ns, 1'790'857'026'000'000'001);
  EXPECT_EQ(rows[0].duration_ns, 20);
  EXPECT_EQ(rows[0].node, "host0");
  EXPECT_EQ(rows[0].device, "GPU 1");
  EXPECT_EQ(rows[0].stream, "9");
  EXPECT_THAT(rows[0].others, ElementsAre(testing::Pair("batch", "64")));
}

TEST(RowsTest, ReadsQuotesLineEndsAndAByteOrderMark) {
  const auto rows = Rows("\xef\xbb\xbf" + std::string(kHeader) +
                         "0,,\"a, \"\"b\"\"\nc\",1790857026000000000,0,operator\r\n\r\n"
                         "0,,d,1790857026000000000,0,operator");
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].name, "a, \"b\"\nc");
  EXPECT_EQ(rows[0].step, std::nullopt);
  EXPECT_EQ(rows[1].name, "d");
}

TEST(RowsTest, ReadsJsonLines) {
  const auto rows =
      Rows(R"({"rank": 1, "step": null, "name": "x", "start_ns": 1790857026000000001,)"
           R"( "duration_ns": "5", "kind": "copy", "shape": [2, 3]})"
           "\n\n");
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].start_ns, 1'790'857'026'000'000'001);
  EXPECT_EQ(rows[0].duration_ns, 5);
  EXPECT_EQ(rows[0].step, std::nullopt);
  EXPECT_THAT(rows[0].others, ElementsAre(testing::Pair("shape", "[2,3]")));
}

TEST(RowsTest, SaysWhereARowCannotBe) {
  const std::string header = kHeader;
  EXPECT_EQ(ErrorOf("rank,step,name,start_ns,duration_ns\n"),
            "line 1: no column \"kind\"; rank, step, name, start_ns, duration_ns and kind must be "
            "there");
  EXPECT_EQ(ErrorOf("rank,rank,step,name,start_ns,duration_ns,kind\n"),
            "line 1: two columns are called \"rank\"");
  EXPECT_EQ(ErrorOf(header + "0,1,a,1790857026000000000,-5,kernel\n"),
            "line 2, column duration_ns: -5 is negative");
  EXPECT_EQ(ErrorOf(header + "\n0,1,a,1790857026000000000,1.5,kernel\n"),
            "line 3, column duration_ns: \"1.5\" is no whole number");
  EXPECT_EQ(ErrorOf(header + "-1,1,a,1790857026000000000,1,kernel\n"),
            "line 2, column rank: -1 is no rank");
  EXPECT_EQ(ErrorOf(header + "0,1,a,1790857026,1,kernel\n"),
            "line 2, column start_ns: 1790857026 is no time in nanoseconds since 1970, between "
            "2000 and 2043");
  EXPECT_EQ(ErrorOf(header + "0,1,,1790857026000000000,1,kernel\n"),
            "line 2, column name: a value is missing");
  EXPECT_EQ(ErrorOf(header + "0,1,a,1790857026000000000,1\n"),
            "line 2: it has 5 fields, the header 6");
  EXPECT_EQ(ErrorOf(header + "0,1,\"a\nb\"c,1790857026000000000,1,kernel\n"),
            "line 3: text behind the quotes of a field");
  EXPECT_EQ(ErrorOf(header + "0,1,\"a"), "line 2: quotes that do not end");
}

TEST(RowsTest, SaysWhereALineOfJsonCannotBe) {
  const std::string good =
      R"({"rank":0,"step":1,"name":"a","start_ns":1790857026000000000,"duration_ns":1,"kind":"b"})";
  EXPECT_EQ(ErrorOf(good + "\n{\"rank\": 0", Format::kJsonLines), "line 2: it is no JSON object");
  EXPECT_EQ(ErrorOf(good + "\n\n{\"rank\": 0.5}", Format::kJsonLines),
            "line 3, column rank: \"0.5\" is no whole number");
  const size_t deep = 300'000;
  EXPECT_EQ(ErrorOf("{\"x\": " + std::string(deep, '[') + std::string(deep, ']') + "}",
                    Format::kJsonLines),
            "line 1: more than 64 brackets inside one another");
  EXPECT_EQ(ErrorOf("{\"rank\": 0}", Format::kJsonLines),
            "line 1, column name: a value is missing");
}

TEST(RowsTest, TellsATableFromOtherText) {
  EXPECT_EQ(FormatOf("rank,start_ns\n"), Format::kCsv);
  EXPECT_EQ(FormatOf("{\"start_ns\": 1}\n{"), Format::kJsonLines);
  EXPECT_EQ(FormatOf(""), std::nullopt);
  EXPECT_EQ(FormatOf("a,b\n1,2\n"), std::nullopt);
  EXPECT_EQ(FormatOf("{\"traceEvents\": []}"), std::nullopt);
  EXPECT_EQ(FormatOf("{\"schemaVersion\": 1,\n"), std::nullopt);
}

}  // namespace
}  // namespace syncline::spans
