// SPDX-License-Identifier: Apache-2.0
#include "agent/code/perf_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>

#include "agent/code/memory_map.h"
#include "evidence/code_samples.h"

namespace syncline::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void AddRecord(uint32_t type, const std::vector<uint64_t>& words, std::vector<uint8_t>* bytes) {
  perf_event_header header{};
  header.type = type;
  header.size = static_cast<uint16_t>(sizeof header + words.size() * sizeof(uint64_t));
  const auto* const head = reinterpret_cast<const uint8_t*>(&header);
  bytes->insert(bytes->end(), head, head + sizeof header);
  const auto* const body = reinterpret_cast<const uint8_t*>(words.data());
  bytes->insert(bytes->end(), body, body + words.size() * sizeof(uint64_t));
}

constexpr uint64_t kKernel = PERF_CONTEXT_KERNEL;
constexpr uint64_t kUser = PERF_CONTEXT_USER;

TEST(PerfRecords, SamplesOfBothKindsAndLosses) {
  std::vector<uint8_t> bytes;
  AddRecord(PERF_RECORD_SAMPLE,
            {0xffffffff81, 7, 1000, 5, kKernel, 0xffffffff81, kUser, 0x10, 0x20}, &bytes);
  AddRecord(PERF_RECORD_SAMPLE, {0x30, 7, 2000, 2, kUser, 0x30}, &bytes);
  AddRecord(PERF_RECORD_LOST, {1, 12, 7, 3000}, &bytes);
  AddRecord(PERF_RECORD_EXIT, {1, 2}, &bytes);
  AddRecord(PERF_RECORD_SAMPLE, {0x40, 7, 4000, 0}, &bytes);
  const PerfRecords records = ParsePerfRecords(bytes);
  EXPECT_FALSE(records.damaged);
  ASSERT_THAT(records.samples, SizeIs(3));
  EXPECT_EQ(records.samples[0].time_ns, 1000);
  EXPECT_THAT(records.samples[0].kernel, ElementsAre(0xffffffff81));
  EXPECT_THAT(records.samples[0].user, ElementsAre(0x10, 0x20));
  EXPECT_THAT(records.samples[1].kernel, IsEmpty());
  EXPECT_THAT(records.samples[2].user, ElementsAre(0x40)) << "without a chain: where it was";
  ASSERT_THAT(records.losses, SizeIs(1));
  EXPECT_EQ(records.losses[0].count, 12U);
  EXPECT_EQ(records.losses[0].time_ns, 3000);
}

TEST(PerfRecords, WhatCannotBeIsReadNoFarther) {
  std::vector<uint8_t> whole;
  AddRecord(PERF_RECORD_SAMPLE, {0x30, 7, 2000, 2, kUser, 0x30}, &whole);
  const size_t one = whole.size();
  AddRecord(PERF_RECORD_SAMPLE, {0x30, 7, 2000, 2, kUser, 0x30}, &whole);
  for (size_t length = one + 1; length < whole.size(); ++length) {
    const PerfRecords records = ParsePerfRecords(std::span(whole).first(length));
    EXPECT_TRUE(records.damaged) << length;
    EXPECT_THAT(records.samples, SizeIs(1));
  }
  std::vector<uint8_t> too_many;
  AddRecord(PERF_RECORD_SAMPLE, {0x30, 7, 2000, uint64_t{1} << 60, kUser, 0x30}, &too_many);
  EXPECT_TRUE(ParsePerfRecords(too_many).damaged);
  std::vector<uint8_t> empty;
  AddRecord(PERF_RECORD_EXIT, {}, &empty);
  empty[offsetof(perf_event_header, size)] = 0;
  EXPECT_TRUE(ParsePerfRecords(empty).damaged);
}

TEST(MemoryMap, OnlyCodeAndWhatItIs) {
  const auto code = ParseMaps(
      "555500000000-555500010000 r--p 00000000 08:01 77     /opt/a program\n"
      "555500010000-555500020000 r-xp 00010000 08:01 77     /opt/a program\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
      "7f0000002000-7f0000003000 r-xs 00000000 00:01 5      /memfd:doublemapper (deleted)\n"
      "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0      [vdso]\n"
      "damaged\n"
      "7ffd-\n");
  ASSERT_THAT(code, SizeIs(4));
  EXPECT_EQ(code[0].module, "/opt/a program");
  EXPECT_EQ(code[0].file_offset, 0x10000U);
  EXPECT_EQ(code[1].module, evidence::kGeneratedModule);
  EXPECT_EQ(code[2].module, evidence::kGeneratedModule);
  EXPECT_EQ(code[3].module, "[vdso]");
  EXPECT_EQ(FindCode(code, 0x555500010000), &code[0]);
  EXPECT_EQ(FindCode(code, 0x555500020000), nullptr);
  EXPECT_EQ(FindCode(code, 1), nullptr);
  EXPECT_EQ(FindCode({}, 1), nullptr);
}

}  // namespace
}  // namespace syncline::agent
