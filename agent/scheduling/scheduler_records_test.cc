// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/scheduler_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>

namespace syncline::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = SchedulerEvent::Kind;

SchedulerTracepoints Points() {
  return {.switch_id = 372,
          .waking_id = 375,
          .migrate_id = 371,
          .flags = {2, 1},
          .current = {4, 4},
          .prev_tid = {24, 4},
          .prev_state = {32, 8},
          .prev_name = {8, 16},
          .next_tid = {56, 4},
          .next_name = {40, 16},
          .woken_tid = {24, 4},
          .woken_cpu = {32, 4},
          .moved_tid = {12, 4},
          .moved_to = {24, 4}};
}

template <class T>
void Put(T value, size_t at, std::vector<uint8_t>* bytes) {
  if (bytes->size() < at + sizeof value) bytes->resize(at + sizeof value);
  std::memcpy(bytes->data() + at, &value, sizeof value);
}

void AddRecord(uint32_t type, const std::vector<uint8_t>& body, std::vector<uint8_t>* bytes) {
  perf_event_header header{};
  header.type = type;
  header.size = static_cast<uint16_t>(sizeof header + body.size());
  Put(header, bytes->size(), bytes);
  bytes->insert(bytes->end(), body.begin(), body.end());
}

void AddSample(int64_t at_ns, const std::vector<uint8_t>& raw, std::vector<uint8_t>* bytes) {
  std::vector<uint8_t> body;
  Put<int32_t>(26, 0, &body);  // the agent's numbers
  Put<int32_t>(28, 4, &body);
  Put(at_ns, 8, &body);
  Put(static_cast<uint32_t>(raw.size()), 16, &body);
  body.insert(body.end(), raw.begin(), raw.end());
  body.resize((body.size() + 7) / 8 * 8);
  AddRecord(PERF_RECORD_SAMPLE, body, bytes);
}

std::vector<uint8_t> Switch() {
  std::vector<uint8_t> raw(64);
  Put<uint16_t>(372, 0, &raw);
  Put<int32_t>(40125, 4, &raw);
  Put<int32_t>(40125, 24, &raw);
  Put<int64_t>(1, 32, &raw);
  std::memcpy(raw.data() + 8, "trainer", 7);
  std::memcpy(raw.data() + 40, "thief", 5);
  Put<int32_t>(77, 56, &raw);
  return raw;
}

std::vector<uint8_t> Wake(uint8_t flags) {
  std::vector<uint8_t> raw(36);
  Put<uint16_t>(375, 0, &raw);
  Put<uint8_t>(flags, 2, &raw);
  Put<int32_t>(40125, 4, &raw);
  Put<int32_t>(99, 24, &raw);
  Put<int32_t>(3, 32, &raw);
  return raw;
}

void AddLoss(uint64_t count, int64_t until_ns, std::vector<uint8_t>* bytes) {
  std::vector<uint8_t> body;
  Put<uint64_t>(1, 0, &body);
  Put(count, 8, &body);
  Put<uint64_t>(0, 16, &body);
  Put(until_ns, 24, &body);
  AddRecord(PERF_RECORD_LOST, body, bytes);
}

TEST(SchedulerRecords, EventsAndLosses) {
  std::vector<uint8_t> bytes;
  AddSample(1000, Switch(), &bytes);
  AddSample(1500, Wake(0), &bytes);
  AddLoss(12, 3000, &bytes);
  AddSample(4000, Wake(0x08), &bytes);
  AddRecord(PERF_RECORD_THROTTLE, std::vector<uint8_t>(24), &bytes);
  const SchedulerRecords records = ParseSchedulerRecords(bytes, Points(), 2, 500);
  EXPECT_FALSE(records.damaged);
  ASSERT_THAT(records.events, SizeIs(4));
  EXPECT_EQ(records.events[0].kind, Kind::kSwitch);
  EXPECT_EQ(records.events[0].cpu, 2);
  EXPECT_EQ(records.events[0].at_ns, 1000);
  EXPECT_EQ(records.events[0].tid, 40125);
  EXPECT_EQ(records.events[0].next_tid, 77);
  EXPECT_EQ(records.events[0].state, 1);
  EXPECT_EQ(records.events[0].seen_pid, 26);
  EXPECT_EQ(records.events[0].seen_tid, 28);
  EXPECT_STREQ(records.events[0].name.data(), "trainer");
  EXPECT_STREQ(records.events[0].next_name.data(), "thief");
  EXPECT_EQ(records.events[1].kind, Kind::kWake);
  EXPECT_EQ(records.events[1].tid, 99);
  EXPECT_EQ(records.events[1].to_cpu, 3);
  EXPECT_FALSE(records.events[1].interrupt);
  EXPECT_EQ(records.events[2].kind, Kind::kLoss);
  EXPECT_EQ(records.events[2].at_ns, 1500) << "from the last event before";
  EXPECT_EQ(records.events[2].until_ns, 3000);
  EXPECT_EQ(records.events[2].count, 12U);
  EXPECT_TRUE(records.events[3].interrupt);
}

TEST(SchedulerRecords, NewThreads) {
  std::vector<uint8_t> body;
  Put<int32_t>(26, 0, &body);
  Put<int32_t>(25, 4, &body);
  Put<int32_t>(30, 8, &body);
  Put<int32_t>(25, 12, &body);
  Put<int64_t>(700, 16, &body);
  Put<uint64_t>(0, 24, &body);
  Put<uint64_t>(0, 32, &body);
  std::vector<uint8_t> bytes;
  AddRecord(PERF_RECORD_FORK, body, &bytes);
  AddRecord(PERF_RECORD_EXIT, body, &bytes);
  const SchedulerRecords records = ParseSchedulerRecords(bytes, Points(), 0, 0);
  EXPECT_FALSE(records.damaged);
  ASSERT_THAT(records.events, SizeIs(1));
  EXPECT_EQ(records.events[0].kind, Kind::kFork);
  EXPECT_EQ(records.events[0].tid, 30);
  EXPECT_EQ(records.events[0].seen_pid, 26);
  EXPECT_EQ(records.events[0].parent_pid, 25);
  EXPECT_EQ(records.events[0].at_ns, 700);
}

TEST(SchedulerRecords, ALossAtTheBeginningIsFromTheReadingBefore) {
  std::vector<uint8_t> bytes;
  AddLoss(12, 3000, &bytes);
  const SchedulerRecords records = ParseSchedulerRecords(bytes, Points(), 0, 500);
  ASSERT_THAT(records.events, SizeIs(1));
  EXPECT_EQ(records.events[0].at_ns, 500);
}

TEST(SchedulerRecords, WhatCannotBeIsReadNoFarther) {
  std::vector<uint8_t> whole;
  AddSample(1000, Switch(), &whole);
  const size_t one = whole.size();
  AddSample(2000, Switch(), &whole);
  for (size_t length = one + 1; length < whole.size(); ++length) {
    const auto records = ParseSchedulerRecords(std::span(whole).first(length), Points(), 0, 0);
    EXPECT_TRUE(records.damaged) << length;
    EXPECT_THAT(records.events, SizeIs(1)) << length;
  }
  std::vector<uint8_t> strange;
  AddSample(1, {0xff, 0xff, 0, 0}, &strange);  // no event of these
  EXPECT_TRUE(ParseSchedulerRecords(strange, Points(), 0, 0).damaged);
  EXPECT_THAT(ParseSchedulerRecords(strange, Points(), 0, 0).events, IsEmpty());
}

}  // namespace
}  // namespace syncline::agent
