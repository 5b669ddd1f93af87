// SPDX-License-Identifier: Apache-2.0
#include "xspace/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "xspace/testing/space_builder.h"

namespace syncline::xspace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kBegin = 1'795'247'214'126'097'847;  // odd, and beyond a double's 53 bits

std::span<const uint8_t> Span(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// All events of a space as "name @time +duration key=value ...", times from kBegin on.
std::vector<std::string> Dump(Space* space) {
  std::vector<std::string> lines;
  std::vector<FieldValue> values;
  for (const StreamInfo& stream : space->streams()) {
    auto cursor = *space->Open(stream.index);
    for (;;) {
      const auto batch = *cursor->NextBatch();
      if (batch.empty()) break;
      for (const EventRecord& record : batch) {
        EXPECT_TRUE(cursor->Decode(record, &values));
        std::string line = record.event_class->name + " @" +
                           std::to_string(record.time_ns - kBegin) + " +" +
                           std::to_string(values[0].u / 1000);
        for (size_t i = 1; i < values.size(); ++i) {
          const FieldValue& value = values[i];
          line += " " + value.field->name + "=";
          line +=
              value.type == FieldType::kString ? std::string(value.text) : std::to_string(value.s);
        }
        lines.push_back(line);
      }
    }
  }
  return lines;
}

// Two threads; the second's events are not in order.
std::string TwoLines() {
  PlaneBuilder plane("/host:CPU");
  LineBuilder first("tf_Compute/1", 100);
  first.Event(plane.EventId("ExecutorState::Process"), {10, 50}, {IntStat(plane.StatId("id"), -7)});
  first.Event(plane.EventId("conv:Conv2D"), {20, 30},
              {ReferenceStat(plane.StatId("shape"), plane.StatId("(float[2])"))});
  LineBuilder second("python", 0);
  second.Event(plane.EventId("b"), {9, 1});
  second.Event(plane.EventId("inner"), {5, 1});
  second.Event(plane.EventId("outer"), {5, 3}, {TextStat(plane.StatId("text"), "t")});
  plane.Add(first);
  plane.Add(second);
  return SpaceBytes({plane.Bytes(), EnvironmentPlane(kBegin, kBegin + 1000)}) +
         BytesField(4, "worker-0");
}

TEST(SpaceTest, GivesEventsWithExactTimesNamesAndStats) {
  const std::string bytes = TwoLines();
  const auto space = Space::Of(Span(bytes), "a.pb");
  EXPECT_THAT(Dump(space.get()), ElementsAre("ExecutorState::Process @110 +50 id=-7",
                                             "conv:Conv2D @120 +30 shape=(float[2])",
                                             "outer @5 +3 text=t", "inner @5 +1", "b @9 +1"));
  EXPECT_EQ(space->profile_begin_ns(), kBegin);
  EXPECT_EQ(space->profile_end_ns(), kBegin + 1000);
  EXPECT_THAT(space->losses(), IsEmpty());
  EXPECT_EQ(space->environment().at("hostname"), "worker-0");
  ASSERT_THAT(space->streams(), SizeIs(2));
  EXPECT_EQ(space->streams()[0].name, "tf_Compute/1");
  EXPECT_EQ(space->streams()[1].name, "python/1");
  EXPECT_EQ(space->streams()[0].clock.kind, ClockKind::kRealtime);
  EXPECT_EQ(space->streams()[0].end_ns - kBegin, 160);
}

TEST(SpaceTest, OpensAtATimeOnly) {
  const std::string bytes = TwoLines();
  const auto space = Space::Of(Span(bytes), "a.pb");
  auto cursor = *space->Open(0, kBegin + 111, kBegin + 121);
  EXPECT_THAT(*cursor->NextBatch(), SizeIs(1));
  EXPECT_THAT(*cursor->NextBatch(), IsEmpty());
}

// Whatever the length that is left, what is whole is given, and that something is lost is said.
TEST(SpaceTest, EveryPrefixGivesWhatIsWholeAndSaysThatTheRestIsLost) {
  PlaneBuilder plane("/host:CPU");
  LineBuilder line("t", 0);
  for (int i = 0; i < 10; ++i) line.Event(plane.EventId("op:Op"), {i * 10, 5});
  plane.Add(line);
  // Here the environment is in front: a file that is cut loses it first otherwise.
  const std::string environment = SpaceBytes({EnvironmentPlane(kBegin, kBegin + 1000)});
  const std::string bytes = environment + SpaceBytes({plane.Bytes()});
  size_t most = 0;
  for (size_t length = environment.size() + 1; length < bytes.size(); ++length) {
    const std::string prefix = bytes.substr(0, length);
    const auto space = Space::Of(Span(prefix), "a.pb");
    const size_t found = Dump(space.get()).size();
    EXPECT_GE(found, most) << length;
    most = std::max(most, found);
    EXPECT_FALSE(space->losses().empty()) << length;
    for (const Loss& loss : space->losses()) EXPECT_EQ(loss.reason, LossReason::kTruncated);
  }
  EXPECT_EQ(most, 10u);
}

TEST(SpaceTest, ACutFileWithoutItsBeginSaysThatNothingCanBePlaced) {
  const std::string bytes = TwoLines();
  const std::string prefix = bytes.substr(0, bytes.size() / 2);
  const auto space = Space::Of(Span(prefix), "a.pb");
  EXPECT_THAT(space->streams(), IsEmpty());
  ASSERT_FALSE(space->losses().empty());
  EXPECT_EQ(space->losses().back().reason, LossReason::kUnreadable);
  EXPECT_THAT(space->losses().back().detail, HasSubstr("profile_start_time"));
  EXPECT_GT(space->losses().back().count.value_or(0), 0u);
}

TEST(SpaceTest, AGarbledEventCostsThatEventAlone) {
  PlaneBuilder plane("/host:CPU");
  LineBuilder line("t", 0);
  const int64_t id = plane.EventId("op:Op");
  line.Event(id, {1, 1});
  std::string good = line.bytes();
  LineBuilder more("", 0);
  const std::string bad = BytesField(4, "\x07\x07\x07");
  const std::string after = BytesField(4, NumberField(1, id) + NumberField(2, 5000));
  const std::string whole =
      BytesField(2, "/host:CPU") + BytesField(3, good + bad + after) + plane.Bytes();
  const std::string bytes = SpaceBytes({whole, EnvironmentPlane(kBegin, kBegin + 9)});
  const auto space = Space::Of(Span(bytes), "a.pb");
  EXPECT_THAT(Dump(space.get()), ElementsAre("op:Op @1 +1", "op:Op @5 +0"));
  ASSERT_THAT(space->losses(), SizeIs(1));
  EXPECT_EQ(space->losses()[0].reason, LossReason::kCorruptPacket);
  EXPECT_EQ(space->losses()[0].count, 1u);
  EXPECT_EQ(space->losses()[0].begin_ns, kBegin);
}

TEST(SpaceTest, EveryByteFlippedIsSurvived) {
  const std::string good = TwoLines();
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      const auto space = Space::Of(Span(bytes), "a.pb");
      Dump(space.get());
    }
  }
}

}  // namespace
}  // namespace syncline::xspace
