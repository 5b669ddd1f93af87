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

TEST(SpaceTest, ALineAtATimeOfNoClockIsALoss) {
  PlaneBuilder plane("/host:CPU");
  LineBuilder sound("main", 0), far("far", kUnknownHi - 5);
  sound.Event(plane.EventId("a"), {1, 1});
  far.Event(plane.EventId("b"), {1, 1});
  far.Event(plane.EventId("b"), {3, 1});
  plane.Add(far);
  plane.Add(sound);
  const std::string bytes = SpaceBytes({plane.Bytes(), EnvironmentPlane(kBegin, kBegin + 9)});
  const auto space = Space::Of(Span(bytes), "a.pb");
  EXPECT_THAT(Dump(space.get()), ElementsAre("a @1 +1"));
  EXPECT_EQ(space->events(), 1u);
  ASSERT_THAT(space->losses(), SizeIs(1));
  EXPECT_EQ(space->losses()[0].count, 2u);
  EXPECT_THAT(space->losses()[0].detail, HasSubstr("line \"far\" is at a time that no clock has"));
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

// A plane of a GPU whose one kernel has these stats.
std::string Gpu(int number, const std::string& kernel, int64_t at_ns,
                const std::vector<std::pair<std::string, std::string>>& texts,
                uint64_t correlation) {
  PlaneBuilder plane("/device:GPU:" + std::to_string(number));
  LineBuilder line("Stream #13(Compute,MemcpyH2D)", 0, 13);
  std::vector<std::string> stats;
  if (correlation != 0) stats.push_back(UintStat(plane.StatId("correlation_id"), correlation));
  for (const auto& [name, text] : texts) stats.push_back(TextStat(plane.StatId(name), text));
  line.Event(plane.EventId(kernel), {at_ns, 10}, stats);
  plane.Add(line);
  return plane.Bytes();
}

// A thread that launches 1 inside of two spans, 2 inside of a step alone, and 3 twice; the calls of
// a second thread have a plane of their own.
std::vector<std::string> Host() {
  PlaneBuilder plane("/host:CPU");
  LineBuilder line("python", 0, 7);
  line.Event(plane.EventId("train"), {0, 100}, {IntStat(plane.StatId("step_num"), 4)});
  line.Event(plane.EventId("outer"), {10, 30});
  line.Event(plane.EventId("model/MatMul:MatMul"), {12, 20});
  line.Event(plane.EventId("cuLaunchKernel"), {15, 2},
             {UintStat(plane.StatId("correlation_id"), 1)});
  line.Event(plane.EventId("cuLaunchKernel"), {50, 2},
             {UintStat(plane.StatId("correlation_id"), 2)});
  line.Event(plane.EventId("cuLaunchKernel"), {60, 2},
             {UintStat(plane.StatId("correlation_id"), 3)});
  line.Event(plane.EventId("cuLaunchKernel"), {70, 2},
             {UintStat(plane.StatId("correlation_id"), 3)});
  plane.Add(line);
  LineBuilder second("worker", 0, 8);
  second.Event(plane.EventId("copying"), {20, 20});
  plane.Add(second);
  PlaneBuilder cupti("/host:CUPTI");
  LineBuilder calls("worker", 0, 8);
  calls.Event(cupti.EventId("cuMemcpyAsync"), {25, 2},
              {UintStat(cupti.StatId("correlation_id"), 4)});
  cupti.Add(calls);
  return {plane.Bytes(), cupti.Bytes(), EnvironmentPlane(kBegin, kBegin + 1000)};
}

// The events of devices alone.
std::vector<std::string> Devices(std::vector<std::string> planes) {
  for (const std::string& plane : Host()) planes.push_back(plane);
  const std::string bytes = SpaceBytes(planes);
  const auto space = Space::Of(Span(bytes), "a.pb");
  std::vector<std::string> lines;
  std::vector<FieldValue> values;
  for (const StreamInfo& stream : space->streams()) {
    if (stream.device.empty()) continue;
    auto cursor = *space->Open(stream.index);
    const auto batch = *cursor->NextBatch();
    for (const EventRecord& record : batch) {
      EXPECT_TRUE(cursor->Decode(record, &values));
      std::string line = stream.name + ": " + record.event_class->name + " [" +
                         record.event_class->attributes.at("category") + "]";
      for (const FieldValue& value : values) {
        if (value.field->name == "operator") line += " in " + std::string(value.text);
        if (value.field->name == "_launched_ns") line += " at " + std::to_string(value.s - kBegin);
      }
      lines.push_back(line);
    }
  }
  return lines;
}

TEST(SpaceDevicesTest, KeepsTheStreamsOfTwoDevicesApart) {
  EXPECT_THAT(Devices({Gpu(0, "mm", 20, {}, 0), Gpu(1, "mm", 20, {}, 0)}),
              ElementsAre("GPU 0 Stream #13: mm [kernel]", "GPU 1 Stream #13: mm [kernel]"));
}

TEST(SpaceDevicesTest, FindsTheLaunchAndWhatItWasMadeInsideOf) {
  EXPECT_THAT(Devices({Gpu(0, "mm", 30, {}, 1)}),
              ElementsAre("GPU 0 Stream #13: mm [kernel] in model/MatMul at 15"));
  EXPECT_THAT(Devices({Gpu(0, "mm", 60, {}, 2)}),
              ElementsAre("GPU 0 Stream #13: mm [kernel] at 50"));
  EXPECT_THAT(Devices({Gpu(0, "MemcpyH2D", 60, {{"memcpy_details", "size:4"}}, 4)}),
              ElementsAre("GPU 0 Stream #13: MemcpyH2D [gpu_memcpy] in copying at 25"));
}

TEST(SpaceDevicesTest, GuessesNoLaunch) {
  EXPECT_THAT(Devices({Gpu(0, "mm", 80, {}, 3)}), ElementsAre("GPU 0 Stream #13: mm [kernel]"));
  EXPECT_THAT(Devices({Gpu(0, "mm", 80, {}, 5)}), ElementsAre("GPU 0 Stream #13: mm [kernel]"));
}

TEST(SpaceDevicesTest, TakesTheOperatorThatTheProfilerNames) {
  EXPECT_THAT(Devices({Gpu(0, "mm", 30, {{"tf_op", "XlaModule:"}, {"hlo_op", "dot.3"}}, 1)}),
              ElementsAre("GPU 0 Stream #13: mm [kernel] in dot.3 at 15"));
  EXPECT_THAT(Devices({Gpu(0, "mm", 30, {{"hlo_op", "dot.3"}, {"hlo_module", "jit_train"}}, 5)}),
              ElementsAre("GPU 0 Stream #13: mm [kernel] in jit_train/dot.3"));
  EXPECT_THAT(Devices({Gpu(0, "mm", 30, {{"tf_op", "dense/MatMul:MatMul"}}, 1)}),
              ElementsAre("GPU 0 Stream #13: mm [kernel] in dense/MatMul at 15"));
}

TEST(SpaceTest, SaysWhatTheProfilerSaysOfItself) {
  const std::string bytes = BytesField(2, "no CUPTI") + BytesField(3, "Dropped 7 events") +
                            BytesField(3, "slow clock") + TwoLines();
  const auto space = Space::Of(Span(bytes), "a.pb");
  ASSERT_THAT(space->losses(), SizeIs(2));
  EXPECT_EQ(space->losses()[0].reason, LossReason::kUnreadable);
  EXPECT_EQ(space->losses()[1].reason, LossReason::kDiscardedEvents);
  EXPECT_THAT(space->losses()[1].detail, HasSubstr("Dropped 7 events"));
  EXPECT_THAT(space->warnings(), ElementsAre("slow clock"));
}

TEST(SpaceTest, TellsAnXSpaceFromOtherBytes) {
  const std::string bytes = TwoLines();
  EXPECT_TRUE(IsXSpace(Span(bytes)));
  EXPECT_TRUE(IsXSpace(Span(bytes).first(20)));
  for (const std::string& other :
       {std::string("{\"traceEvents\": []}"), std::string("[1]"), std::string("rank,step\n"),
        std::string("\n\n{}"), std::string("PAR1"), std::string()}) {
    EXPECT_FALSE(IsXSpace(Span(other))) << other;
  }
}

}  // namespace
}  // namespace syncline::xspace
