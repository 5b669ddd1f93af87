// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/other_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace syncline::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr char kNamed[] = "INTEL_LIBITTNOTIFY64";
constexpr char kAlso[] = "SYNCLINE_ALSO_COLLECTOR";
constexpr char kOwn[] = "/opt/syncline/lib/libsyncline_itt.so";
constexpr char kVtune[] = "/opt/vtune/lib64/runtime/libittnotify_collector.so";

TEST(PlanCollectorsTest, OursStandsBesideTheOneThatIsThere) {
  Environment set;
  EXPECT_EQ(PlanCollectors({{kNamed, kVtune}}, kOwn, "", &set), "");
  EXPECT_THAT(set, UnorderedElementsAre(Pair(kNamed, kOwn), Pair(kAlso, kVtune)));
}

TEST(PlanCollectorsTest, AloneWhereThereIsNone) {
  for (const Environment& current :
       {Environment{}, Environment{{kNamed, ""}}, Environment{{kNamed, kOwn}}}) {
    Environment set;
    EXPECT_EQ(PlanCollectors(current, kOwn, "", &set), "");
    EXPECT_THAT(set, UnorderedElementsAre(Pair(kNamed, kOwn)));
  }
}

TEST(PlanCollectorsTest, TheOptionNamesOne) {
  Environment set;
  EXPECT_EQ(PlanCollectors({}, kOwn, "/mine.so", &set), "");
  EXPECT_THAT(set, UnorderedElementsAre(Pair(kNamed, kOwn), Pair(kAlso, "/mine.so")));
  const std::string said = PlanCollectors({{kNamed, kVtune}}, kOwn, "/mine.so", &set);
  EXPECT_THAT(said, HasSubstr(std::string(kVtune) + ", which"));
  EXPECT_EQ(set[kAlso], "/mine.so");
}

TEST(PlanCollectorsTest, TwoOfOursWouldRecordEachTaskTwice) {
  Environment set;
  EXPECT_THAT(PlanCollectors({{kNamed, "/other/lib/libsyncline_itt.so"}}, kOwn, "", &set),
              HasSubstr("another installation"));
  EXPECT_THAT(set, IsEmpty());
}

// What a strict shell has after the lines, with `before` as what is exported first.
std::string After(const std::string& shell, const std::string& before, const std::string& also) {
  const std::string script = "unset " + std::string(kNamed) + " " + kAlso + "\nset -eu\n" + before +
                             "\n" + CollectorLines(kOwn, also) + "printf '%s|%s' \"$" + kNamed +
                             "\" \"${" + kAlso + ":-}\"";
  setenv("SCRIPT", script.c_str(), 1);
  FILE* const pipe = ::popen((shell + " -c \"$SCRIPT\"").c_str(), "r");
  char said[512] = "";
  const size_t bytes = std::fread(said, 1, sizeof said - 1, pipe);
  EXPECT_EQ(::pclose(pipe), 0) << script;
  return std::string(said, bytes);
}

TEST(CollectorLinesTest, DecideWhereTheyRun) {
  const std::string own = kOwn, vtune = kVtune;
  for (const std::string shell : {"dash", "bash"}) {
    const std::string named = std::string("export ") + kNamed + "=";
    EXPECT_EQ(After(shell, "", ""), own + "|");
    EXPECT_EQ(After(shell, "", "/it's mine"), own + "|/it's mine");
    EXPECT_EQ(After(shell, named + vtune, ""), own + "|" + vtune);
    EXPECT_EQ(After(shell, named + vtune, "/mine"), own + "|/mine");
    EXPECT_EQ(After(shell, named + own, ""), own + "|");
    EXPECT_EQ(After(shell, named + own, "/mine"), own + "|/mine");
    EXPECT_EQ(After(shell, named + "/other" + own, "/mine"), "/other" + own + "|");
  }
}

TEST(TryCollectorTest, NamesWhatIsWrong) {
  EXPECT_TRUE(TryCollector(RUN_TEST_ITT).ok());
  EXPECT_THAT(std::string(TryCollector("/nowhere/libcollector.so").message()),
              HasSubstr("/nowhere/libcollector.so"));
  EXPECT_THAT(std::string(TryCollector("libm.so.6").message()), HasSubstr("no ITT collector"));
  EXPECT_THAT(std::string(TryCollector(RUN_TEST_COLLECTOR).message()),
              HasSubstr("ends the program that loads it"));
}

TEST(DropUnusableOptionTest, LeavesThePlaceToTheOneOfTheEnvironment) {
  std::string also = "/nowhere.so";
  EXPECT_THAT(DropUnusableOption(&also), HasSubstr("/nowhere.so gets no ITT calls"));
  EXPECT_EQ(also, "");
  EXPECT_EQ(DropUnusableOption(&also), "");
  also = RUN_TEST_ITT;
  EXPECT_EQ(DropUnusableOption(&also), "");
  EXPECT_EQ(also, RUN_TEST_ITT);
}

TEST(DropUnusableCollectorTest, WhatWasThereStays) {
  Environment set = {{kNamed, kOwn}, {kAlso, "/nowhere.so"}, {"X", "y"}};
  EXPECT_THAT(DropUnusableCollector(&set), HasSubstr("and stays"));
  EXPECT_THAT(set, UnorderedElementsAre(Pair("X", "y")));
  set = {{kNamed, kOwn}, {kAlso, RUN_TEST_ITT}};
  EXPECT_EQ(DropUnusableCollector(&set), "");
  EXPECT_EQ(set.size(), 2u);
}

}  // namespace
}  // namespace syncline::cli
