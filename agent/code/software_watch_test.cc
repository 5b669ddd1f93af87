// SPDX-License-Identifier: Apache-2.0
#include "agent/code/software_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "agent/evidence/fake_node.h"
#include "evidence/code_samples.h"

namespace syncline::agent {
namespace {

using evidence::SoftwareKind;
using Kind = SoftwareRecord::Kind;

constexpr uint64_t kMinorId = 7;
constexpr uint64_t kMajorId = 8;

struct FakeRings {
  std::map<int32_t, SoftwareRecords> records;
  std::map<int32_t, bool> enabled;
  std::map<int32_t, uint64_t> periods;
  absl::Status refusal;

  OpenSoftwareRing Open() {
    return [this](int32_t tid, bool,
                  uint64_t period) -> absl::StatusOr<std::unique_ptr<SoftwareRing>> {
      if (!refusal.ok()) return refusal;
      periods[tid] = period;
      return std::make_unique<Ring>(this, tid);
    };
  }
  struct Ring : SoftwareRing {
    Ring(FakeRings* from, int32_t of) : rings(from), tid(of) {}
    void Enable() override { rings->enabled[tid] = true; }
    void Disable() override { rings->enabled[tid] = false; }
    void SetPeriod(uint64_t period) override { rings->periods[tid] = period; }
    SoftwareRecords Drain() override { return std::exchange(rings->records[tid], {}); }
    uint64_t minor_id() const override { return kMinorId; }
    FakeRings* rings;
    int32_t tid;
  };
};

class SoftwareWatchTest : public FakeNode {
 protected:
  SoftwareWatch Make() {
    return SoftwareWatch(rings_.Open(), {.proc = proc_, .time_shift_ns = 500});
  }
  evidence::SoftwareEvents Parsed() {
    std::string text;
    evidence::AppendCodeHead(1, true, &text);
    Append(evidence::CodeProcess{}, &text);
    Append(evidence::CodeThread{}, &text);
    auto parsed = evidence::ParseCodeSamples(text + text_);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->damaged_lines, 0U) << text_;
    return parsed->software;
  }
  FakeRings rings_;
  std::string text_;
};

TEST_F(SoftwareWatchTest, FaultsSwitchesAndMovesOfAThread) {
  SoftwareWatch watch = Make();
  ASSERT_TRUE(watch.Probe(true, &text_).ok());
  ASSERT_TRUE(watch.Add(0, 1234, 1234).ok());
  EXPECT_FALSE(rings_.enabled[1234]);
  watch.Enable(0);
  EXPECT_TRUE(rings_.enabled[1234]);
  rings_.records[1234].records = {
      {.kind = Kind::kSample, .time_ns = 100, .cpu = 1, .id = kMinorId, .count = 64},
      {.kind = Kind::kSample, .time_ns = 200, .cpu = 1, .id = kMinorId, .count = 128},
      {.kind = Kind::kSample, .time_ns = 210, .cpu = 1, .id = kMajorId, .count = 1},
      {.kind = Kind::kBlocked, .time_ns = 300, .cpu = 1},
      {.kind = Kind::kRuns, .time_ns = 350, .cpu = 1},
      {.kind = Kind::kPreempted, .time_ns = 400, .cpu = 1},
      {.kind = Kind::kRuns, .time_ns = 490, .cpu = 0},
      {.kind = Kind::kLost, .time_ns = 600, .count = 3},
      {.kind = Kind::kRuns, .time_ns = 700, .cpu = 1}};
  watch.Turn(100'000'000, 90'000'000, &text_);
  watch.Disable(200'000'000, &text_);
  const evidence::SoftwareEvents events = Parsed();
  EXPECT_TRUE(events.known && events.kernel);
  ASSERT_EQ(events.events.size(), 6U);
  EXPECT_EQ(events.events[0].at_ns, 600) << "shifted into the agent's time namespace";
  EXPECT_EQ(events.events[0].count, 64U);
  EXPECT_EQ(events.events[1].count, 64U) << "all since the note before";
  EXPECT_EQ(events.events[2].kind, SoftwareKind::kMajorFault);
  EXPECT_EQ(events.events[2].count, 1U);
  EXPECT_EQ(events.events[3].kind, SoftwareKind::kBlocked);
  EXPECT_EQ(events.events[3].away_ns, 50);
  EXPECT_EQ(events.events[4].kind, SoftwareKind::kPreempted);
  EXPECT_EQ(events.events[4].away_ns, 90);
  EXPECT_EQ(events.events[5].kind, SoftwareKind::kMoved)
      << "behind a loss it is not known where the thread was";
  EXPECT_EQ(events.losses.at(0).count, 3U);
  ASSERT_TRUE(events.watched.has_value());
  EXPECT_EQ(events.watched->watched_ns, events.watched->all_ns);
  EXPECT_EQ(events.watched->cost_ns, 128 * 55 + 3 * 500 + 4 * 1'200)
      << "three records that were lost are two switches";
}

TEST_F(SoftwareWatchTest, NotesAreRarerTheMoreFaultsThereAre) {
  SoftwareWatch watch = Make();
  ASSERT_TRUE(watch.Probe(true, &text_).ok());
  ASSERT_TRUE(watch.Add(0, 1234, 1234).ok());
  watch.Enable(0);
  const uint64_t first = rings_.periods[1234];
  uint64_t count = 0;
  for (int64_t turn = 1; turn <= 20; ++turn) {
    count += 1'000'000;
    rings_.records[1234].records = {
        {.kind = Kind::kSample, .time_ns = turn, .id = kMinorId, .count = count}};
    watch.Turn(turn * 100'000'000, int64_t{1} << 40, &text_);
  }
  EXPECT_GT(rings_.periods[1234], 10 * first);
  for (int64_t turn = 21; turn <= 60; ++turn) watch.Turn(turn * 100'000'000, 1 << 20, &text_);
  EXPECT_LT(rings_.periods[1234], first);
}

// Turns of a thread that is watched, each with so many records, until watching ends.
int TurnsUntilItEnds(SoftwareWatch* watch, FakeRings* rings, const SoftwareRecord& record,
                     std::string* text) {
  constexpr int64_t kTurnNs = 100'000'000;
  constexpr int kTurns = 200;
  int turns = 0;
  SoftwareRecord next = record;
  for (int turn = 1; turn <= kTurns; ++turn) {
    turns += rings->enabled[1234] ? 1 : 0;
    next.time_ns = turn;
    rings->records[1234].records = {next};
    if (record.kind == Kind::kSample) next.count += record.count;
    watch->Turn(turn * kTurnNs, kTurnNs, text);
  }
  watch->Disable(kTurns * kTurnNs, text);
  return turns;
}

TEST_F(SoftwareWatchTest, WhatCostsTooMuchIsWatchedNoLonger) {
  SoftwareWatch watch = Make();
  ASSERT_TRUE(watch.Probe(true, &text_).ok());
  ASSERT_TRUE(watch.Add(0, 1234, 1234).ok());
  watch.Enable(0);
  // 2 ms a turn, of 0.8 that are allowed: 10 ms are more after 9 turns.
  const int turns = TurnsUntilItEnds(
      &watch, &rings_, {.kind = Kind::kSample, .id = kMinorId, .count = 2'000'000 / 55}, &text_);
  EXPECT_EQ(turns, 9);
  const evidence::SoftwareEvents events = Parsed();
  ASSERT_TRUE(events.watched.has_value());
  EXPECT_EQ(events.watched->watched_ns, 900'000'000);
  EXPECT_EQ(events.watched->until_ns, 900'000'000) << "of the agent's own clock, as now_ns";
  EXPECT_EQ(events.watched->all_ns, 20'000'000'000);
  EXPECT_FALSE(rings_.enabled[1234]);
}

TEST_F(SoftwareWatchTest, WhatIsLostCostsAsMuch) {
  SoftwareWatch watch = Make();
  ASSERT_TRUE(watch.Probe(true, &text_).ok());
  ASSERT_TRUE(watch.Add(0, 1234, 1234).ok());
  watch.Enable(0);
  // 5,000 switches and as many ways back: 6 ms a turn.
  EXPECT_LE(TurnsUntilItEnds(&watch, &rings_, {.kind = Kind::kLost, .count = 10'000}, &text_), 2);
}

TEST_F(SoftwareWatchTest, ARefusalIsSaidAndNothingIsWatched) {
  rings_.refusal = absl::PermissionDeniedError("no");
  SoftwareWatch watch = Make();
  EXPECT_TRUE(absl::IsPermissionDenied(watch.Probe(true, &text_)));
  EXPECT_EQ(text_, "");
  EXPECT_TRUE(watch.Add(0, 1234, 1234).ok());
  watch.Enable(0);
  watch.Disable(1, &text_);
  EXPECT_FALSE(Parsed().known);
}

void AddRecord(uint32_t type, uint16_t misc, const std::vector<uint64_t>& words,
               std::vector<uint8_t>* bytes) {
  perf_event_header header{};
  header.type = type;
  header.misc = misc;
  header.size = static_cast<uint16_t>(sizeof header + words.size() * sizeof(uint64_t));
  const auto* const head = reinterpret_cast<const uint8_t*>(&header);
  bytes->insert(bytes->end(), head, head + sizeof header);
  const auto* const body = reinterpret_cast<const uint8_t*>(words.data());
  bytes->insert(bytes->end(), body, body + words.size() * sizeof(uint64_t));
}

TEST(SoftwareRecords, AsTheKernelWritesThem) {
  std::vector<uint8_t> bytes;
  AddRecord(PERF_RECORD_SAMPLE, 0, {kMinorId, 1000, 3, 16}, &bytes);
  AddRecord(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, {2000, 3, kMajorId}, &bytes);
  AddRecord(PERF_RECORD_SWITCH, 0, {3000, 1, kMajorId}, &bytes);
  AddRecord(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
            {4000, 1, kMajorId}, &bytes);
  AddRecord(PERF_RECORD_LOST, 0, {kMinorId, 12, 5000, 1, kMinorId}, &bytes);
  AddRecord(PERF_RECORD_THROTTLE, 0, {1, 2, 3}, &bytes);
  const SoftwareRecords parsed = ParseSoftwareRecords(bytes);
  EXPECT_FALSE(parsed.damaged);
  ASSERT_EQ(parsed.records.size(), 5U);
  EXPECT_EQ(parsed.records[0].count, 16U);
  EXPECT_EQ(parsed.records[0].cpu, 3);
  EXPECT_EQ(parsed.records[1].kind, Kind::kBlocked);
  EXPECT_EQ(parsed.records[2].kind, Kind::kRuns);
  EXPECT_EQ(parsed.records[2].cpu, 1);
  EXPECT_EQ(parsed.records[3].kind, Kind::kPreempted);
  EXPECT_EQ(parsed.records[4].kind, Kind::kLost);
  EXPECT_EQ(parsed.records[4].count, 12U);
  EXPECT_EQ(parsed.records[4].time_ns, 5000);
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    EXPECT_LE(ParseSoftwareRecords(std::span(bytes).first(cut)).records.size(), 5U);
  }
  bytes[6] = 4;  // shorter than a header
  EXPECT_TRUE(ParseSoftwareRecords(bytes).damaged);
}

}  // namespace
}  // namespace syncline::agent
