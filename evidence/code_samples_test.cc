// SPDX-License-Identifier: Apache-2.0
#include "evidence/code_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evidence/write.h"

namespace syncline::evidence {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Sample() {
  std::string text;
  AppendCodeHead(10'101'010, true, &text);
  Append(CodeProcess{40123, 99, 4026532281, 26, 1000, "train me"}, &text);
  Append(CodeThread{0, 40125, 28, 5'000, "pt_main"}, &text);
  AppendModule("/usr/lib/lib c.so.6", &text);
  AppendModule(kKernelModule, &text);
  Append(CodeFrame{0, 0x12ab}, &text);
  Append(CodeFrame{1, 0xffffffff81000000}, &text);
  AppendStack({1, 0}, &text);
  Append(CodeSample{0, 6'000, 0}, &text);
  Append(CodeLoss{0, 7'000, 3}, &text);
  Append(CodeThreadTime{0, 30'000'000}, &text);
  AppendSoftwareHead(true, &text);
  Append(SoftwareEvent{0, 6'100, SoftwareKind::kMinorFault, 64, 0}, &text);
  Append(SoftwareEvent{0, 6'200, SoftwareKind::kPreempted, 2, 50'000}, &text);
  Append(SoftwareLoss{0, 7'100, 5}, &text);
  Append(SoftwareTotals{0, 70, 1, 20, 3}, &text);
  Append(SoftwareWatched{900, 1000, 8, 1100}, &text);
  Append(CodeSymbol{0, "at::native::add(int, char)", "/src/a b.cc", 12}, &text);
  AppendCost(1234, &text);
  AppendNote("no kernel", &text);
  AppendEnd(&text);
  return text;
}

TEST(CodeSamples, WhatIsWrittenReadsBack) {
  const auto code = ParseCodeSamples(Sample());
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->damaged_lines, 0U);
  EXPECT_EQ(code->period_ns, 10'101'010);
  EXPECT_TRUE(code->kernel);
  EXPECT_EQ(code->processes.at(0).name, "train me");
  EXPECT_EQ(code->processes.at(0).pid_namespace_inode, 4026532281);
  EXPECT_EQ(code->threads.at(0).own_tid, 28);
  EXPECT_EQ(code->threads.at(0).from_ns, 5'000);
  EXPECT_THAT(code->modules, ElementsAre("/usr/lib/lib c.so.6", kKernelModule));
  EXPECT_EQ(code->frames.at(0).function, "at::native::add(int, char)");
  EXPECT_EQ(code->frames.at(0).file, "/src/a b.cc");
  EXPECT_EQ(code->frames.at(0).line, 12);
  EXPECT_EQ(code->frames.at(1).offset, 0xffffffff81000000);
  EXPECT_THAT(code->stacks.at(0), ElementsAre(1, 0));
  EXPECT_EQ(code->samples.at(0).at_ns, 6'000);
  EXPECT_EQ(code->losses.at(0).count, 3U);
  EXPECT_EQ(code->thread_times.at(0).on_cpu_ns, 30'000'000);
  const SoftwareEvents& software = code->software;
  EXPECT_TRUE(software.known && software.kernel);
  ASSERT_EQ(software.events.size(), 2U);
  EXPECT_EQ(software.events[0].count, 64U);
  EXPECT_EQ(software.events[1].kind, SoftwareKind::kPreempted);
  EXPECT_EQ(software.events[1].away_ns, 50'000);
  EXPECT_EQ(software.losses.at(0).count, 5U);
  EXPECT_EQ(software.totals.at(0).blocked, 20U);
  EXPECT_EQ(software.watched.value().cost_ns, 8);
  EXPECT_EQ(software.watched->until_ns, 1100);
  EXPECT_EQ(code->cost_ns, 1234);
  EXPECT_THAT(code->notes, ElementsAre("no kernel"));
  EXPECT_TRUE(code->ended);
}

TEST(CodeSamples, WhatIsCutIsReadUpToTheCut) {
  const std::string text = Sample();
  for (size_t length = text.find("\nP") + 1; length < text.size(); ++length) {
    const auto code = ParseCodeSamples(std::string_view(text).substr(0, length));
    ASSERT_TRUE(code.ok());
    EXPECT_EQ(code->damaged_lines, 0U) << length;
    EXPECT_FALSE(code->ended);
  }
}

TEST(CodeSamples, DamagedLinesAreCountedAndKeepTheirNumber) {
  std::string text;
  AppendCodeHead(1, false, &text);
  Append(CodeProcess{.pid = 1, .name = "a"}, &text);
  Append(CodeThread{.process = 0, .tid = 5}, &text);
  text += "M =a\nF 0 zz\nF 0 10\nK 7\nK 1\ns 0 1 0\ns 0 2 1\ns 9 1 0\ns 0 -1 0\nx what\n";
  const auto code = ParseCodeSamples(text);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->damaged_lines, 5U);
  EXPECT_EQ(code->samples.size(), 2U);
  EXPECT_EQ(code->modules.at(code->frames.at(code->stacks.at(0).at(0)).module), kUnknownModule);
  EXPECT_EQ(code->frames.at(code->stacks.at(1).at(0)).offset, 0x10U);
}

TEST(CodeSamples, AnotherVersionIsRefused) {
  const auto code = ParseCodeSamples("syncline-code 2\n");
  EXPECT_THAT(std::string(code.status().message()), HasSubstr("another version"));
}

}  // namespace
}  // namespace syncline::evidence
