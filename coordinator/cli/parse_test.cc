// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/parse.h"

#include <sstream>

#include "coordinator/cli/terminal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace syncline::cli {
namespace {

using testing::HasSubstr;

TEST(Parse, Durations) {
  EXPECT_EQ(*ParseDuration("500ms"), 500'000'000);
  EXPECT_EQ(*ParseDuration("10s"), 10'000'000'000);
  EXPECT_EQ(*ParseDuration("2m"), 120'000'000'000);
  EXPECT_EQ(*ParseDuration("1.5h"), 5'400'000'000'000);
  EXPECT_EQ(*ParseDuration("0s"), 0);
  EXPECT_EQ(*ParseDuration("200000000.000000005s"), 200'000'000'000'000'005);
  EXPECT_EQ(*ParseDuration("200us"), *ParseDuration("200µs"));
  for (const char* bad : {"", "s", "10", "-1s", "10x", "1e3s", "..s", "99999999999h", "10 s"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
  EXPECT_THAT(std::string(ParseDuration("10").status().message()), HasSubstr("10s"));
}

TEST(Parse, Sizes) {
  EXPECT_EQ(*ParseSize("4096"), 4096u);
  EXPECT_EQ(*ParseSize("4K"), 4096u);
  EXPECT_EQ(*ParseSize("4k"), 4096u);
  EXPECT_EQ(*ParseSize("1.5GiB"), 1610612736u);
  EXPECT_EQ(*ParseSize("2MB"), 2097152u);
  for (const char* bad : {"", "M", "1X", "-1", "1KiBs", "iB", "1iB"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

TEST(Format, SizesAndCounts) {
  EXPECT_EQ(FormatSize(1023), "1023 B");
  EXPECT_EQ(FormatSize(1536), "1.5 KiB");
  EXPECT_EQ(FormatSize(uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
}

TEST(Table, AlignsColumnsByWhatIsSeen) {
  Table table({"NODE", "STATE"});
  table.AddRow({"α", "ok"});
  table.AddRow({"master-0", "missing"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(),
            "NODE      STATE\n"
            "α         ok\n"
            "master-0  missing\n");
}

TEST(Terminal, ForeignTextCannotSteerTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[31mb\nc"), "a?[31mb?c");
  EXPECT_EQ(Printable("grün"), "grün");
}

}  // namespace
}  // namespace syncline::cli
