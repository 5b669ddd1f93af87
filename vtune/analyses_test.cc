// SPDX-License-Identifier: Apache-2.0
#include "vtune/analyses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace syncline::vtune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Analyses, AreSeven) {
  EXPECT_THAT(AnalysisNames(),
              ElementsAre("hotspots", "threading", "memory-consumption", "memory-access",
                          "hpc-performance", "uarch-exploration", "io"));
  for (const std::string& name : AnalysisNames()) EXPECT_TRUE(CheckRequest({name}).ok()) << name;
}

TEST(Analyses, AnotherOneIsRefusedWithTheList) {
  const absl::Status status = CheckRequest({.analysis = "hotspot\n"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\"hotspot?\" is not an analysis"));
  EXPECT_THAT(status.message(), HasSubstr("hotspots, threading, memory-consumption"));
}

TEST(Knobs, AreTheRecipesUnlessReplaced) {
  EXPECT_THAT(KnobsOf({.analysis = "hotspots"}),
              ElementsAre("sampling-mode=hw", "sampling-interval=0.1"));
  EXPECT_THAT(KnobsOf({.analysis = "threading"}),
              ElementsAre("sampling-and-waits=hw", "sampling-interval=0.1"));
  EXPECT_THAT(KnobsOf({.analysis = "io"}), ElementsAre());
  EXPECT_THAT(KnobsOf({.analysis = "hotspots", .knobs = {"stack-size=0", "sampling-interval=5"}}),
              ElementsAre("sampling-mode=hw", "stack-size=0", "sampling-interval=5"));
}

// VTune refuses what is below 1 ms there.
TEST(Knobs, TheRecipesIntervalIsForCounters) {
  EXPECT_THAT(KnobsOf({.analysis = "hotspots", .knobs = {"sampling-mode=sw"}}),
              ElementsAre("sampling-mode=sw"));
  EXPECT_THAT(KnobsOf({.analysis = "threading", .knobs = {"sampling-and-waits=sw"}}),
              ElementsAre("sampling-and-waits=sw"));
  EXPECT_THAT(
      KnobsOf({.analysis = "hotspots", .knobs = {"sampling-mode=sw", "sampling-interval=2"}}),
      ElementsAre("sampling-mode=sw", "sampling-interval=2"));
}

TEST(Knobs, AreNameAndValue) {
  for (const std::string good : {"sampling-interval=0.1", "dram-bandwidth-limits=false"}) {
    EXPECT_TRUE(CheckRequest({.analysis = "io", .knobs = {good}}).ok()) << good;
  }
  for (const std::string bad :
       {"", "=1", "x", "x=", "-x=1", "x=1 -result-dir=/", "x=$(id)", "a b=1", "x=1;id", "x='1'"}) {
    const absl::Status status = CheckRequest({.analysis = "io", .knobs = {bad}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(status.message(), HasSubstr("NAME=VALUE"));
  }
  EXPECT_FALSE(CheckRequest({.analysis = "io", .knobs = std::vector<std::string>(33, "a=1")}).ok());
}

}  // namespace
}  // namespace syncline::vtune
