// SPDX-License-Identifier: Apache-2.0
#include "kineto/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace syncline::kineto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kBase = 1'790'857'026'000'000'000;

// All events of a trace as "stream: name @time +duration key=value ...", times from kBase on.
std::vector<std::string> Dump(Trace* trace) {
  std::vector<std::string> lines;
  std::vector<FieldValue> values;
  for (const StreamInfo& stream : trace->streams()) {
    auto cursor = *trace->Open(stream.index);
    for (;;) {
      const auto batch = *cursor->NextBatch();
      if (batch.empty()) break;
      for (const EventRecord& record : batch) {
        EXPECT_TRUE(cursor->Decode(record, &values));
        std::string line = stream.name + ": " + record.event_class->name + " @" +
                           std::to_string(record.time_ns - kBase) + " +" +
                           std::to_string(values[0].u / 1000);
        for (size_t i = 1; i < values.size(); ++i) {
          line += " " + values[i].field->name + "=" + std::string(values[i].text);
        }
        lines.push_back(line);
      }
    }
  }
  return lines;
}

std::string File(const std::string& events) {
  return R"({"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [)" +
         events + "]}";
}

std::string Event(const std::string& name, const std::string& ts, const std::string& dur,
                  const std::string& more = "") {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 7, "tid": 8, "ts": )" +
         ts + R"(, "dur": )" + dur + more + "}";
}

TEST(NanosecondsOfTest, ReadsMicrosecondsToTheNanosecond) {
  EXPECT_EQ(NanosecondsOf("4469844002511.788"), 4469844002511788);
  EXPECT_EQ(NanosecondsOf("4469844002511.78"), 4469844002511780);
  EXPECT_EQ(NanosecondsOf("4469844002511"), 4469844002511000);
  EXPECT_EQ(NanosecondsOf("0.0019"), 1);
  EXPECT_EQ(NanosecondsOf("-2.5"), -2500);
  for (const char* const text : {"", "-", "x", "1e3", "1.2.3", "99999999999999999999"}) {
    EXPECT_EQ(NanosecondsOf(text), std::nullopt) << text;
  }
}

TEST(TraceTest, TimesNestingAndShapes) {
  const auto trace = Trace::Of(
      File(R"j({"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "ts": 1.0,
               "args": {"name": "thread 8 (python)"}},)j" +
           Event("aten::mm", "2.001", "0.5") + "," +
           Event("aten::linear", "2.001", "3.25",
                 R"(, "args": {"External id": 5, "Input Dims": [[256, 64], [], 3],)"
                 R"( "Input type": ["float", "Scalar"], "Sequence number": 12})") +
           R"j(,{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",)j"
           R"( "tid": "PyTorch Profiler", "ts": 1.5, "dur": 10.25})"),
      "here");
  EXPECT_THAT(
      Dump(trace.get()),
      ElementsAre("thread 8 (python): aten::linear @2001 +3250 Input Dims=[[256, 64], [], 3]"
                  " Input type=[float, Scalar] Sequence number=12",
                  "thread 8 (python): aten::mm @2001 +500"));
  EXPECT_EQ(trace->profile_begin_ns(), kBase + 1500);
  EXPECT_EQ(trace->profile_end_ns(), kBase + 11750);
  EXPECT_THAT(trace->losses(), IsEmpty());
}

// Built to the format; nobody has run it on a GPU.
TEST(TraceTest, QueuesOfDevices) {
  const auto trace = Trace::Of(
      File(Event("aten::copy_", "1", "9") +
           R"(,{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5,)"
           R"( "dur": 2, "args": {"device": 0, "stream": 7, "grid": [1, 2, 3]}})"
           R"(,{"ph": "X", "cat": "gpu_memcpy", "name": "HtoD", "pid": 0, "tid": 9, "ts": 6,)"
           R"( "dur": 1, "args": {"bytes": 4096}})"),
      "here");
  EXPECT_THAT(Dump(trace.get()),
              ElementsAre("thread 8: aten::copy_ @1000 +9000",
                          "GPU 0 stream 7: gemm @5000 +2000 device=0 stream=7 grid=[1, 2, 3]",
                          "GPU 0 stream 9: HtoD @6000 +1000 bytes=4096"));
}

// What belongs together must not be known by texts put one behind the other.
TEST(TraceTest, TextsWithZeroBytesAreTexts) {
  using std::string_literals::operator""s;
  const auto trace =
      Trace::Of(File(Event("a", "1", "1", R"(, "args": {"bytes": 1, "dtype": 2})") + "," +
                     Event("a\\u0000bytes", "2", "1", R"(, "args": {"dtype": 3})") + "," +
                     Event("a\\u0000bytes\\u0000dtype", "3", "1")),
                "here");
  EXPECT_THAT(Dump(trace.get()), ElementsAre("thread 8: a @1000 +1000 bytes=1 dtype=2",
                                             "thread 8: a\0bytes @2000 +1000 dtype=3"s,
                                             "thread 8: a\0bytes\0dtype @3000 +1000"s));
}

TEST(TraceTest, WhatEndsEarlyGivesWhatIsThere) {
  const std::string text = File(Event("a", "1", "1") + "," + Event("b", "2", "1"));
  const size_t second = text.find(R"("b")");
  const auto trace = Trace::Of(text.substr(0, second), "here");
  EXPECT_THAT(Dump(trace.get()), ElementsAre("thread 8: a @1000 +1000"));
  ASSERT_THAT(trace->losses(), SizeIs(1));
  EXPECT_EQ(trace->losses()[0].reason, LossReason::kTruncated);
}

TEST(TraceTest, WhatIsNoJsonInTheMiddle) {
  const auto trace = Trace::Of(File(Event("a", "1", "1") + ", oops, " + Event("b", "2", "1")), "h");
  EXPECT_THAT(Dump(trace.get()), ElementsAre("thread 8: a @1000 +1000"));
  ASSERT_THAT(trace->losses(), SizeIs(1));
  EXPECT_EQ(trace->losses()[0].reason, LossReason::kUnreadable);
  EXPECT_THAT(trace->losses()[0].detail, HasSubstr("no JSON from byte"));
}

TEST(TraceTest, QuotesInNamesAreNoDamage) {
  const auto event = [](const std::string& name, int ts) {
    return "  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\",\n    \"name\": \"" + name +
           "\",\n    \"pid\": 7, \"tid\": 8, \"ts\": " + std::to_string(ts) + ", \"dur\": 1\n  }";
  };
  const std::string events = event(R"(epoch "1")", 1) + ",\n" + event(R"(")", 2) + ",\n" +
                             event("", 3) + ",\n" + event(R"(\"escaped\")", 4);
  const auto trace = Trace::Of(File(events), "here");
  EXPECT_THAT(Dump(trace.get()),
              ElementsAre(R"(thread 8: epoch "1" @1000 +1000)", R"(thread 8: " @2000 +1000)",
                          "thread 8:  @3000 +1000", R"(thread 8: "escaped" @4000 +1000)"));
  EXPECT_THAT(trace->losses(), IsEmpty());
}

TEST(TraceTest, ForeignText) {
  for (const char* const text : {"{}", "[]", "7", R"({"traceEvents": 5})", R"(["traceEvents"])"}) {
    const auto trace = Trace::Of(text, "here");
    EXPECT_EQ(trace->events(), 0u) << text;
    ASSERT_THAT(trace->losses(), SizeIs(1)) << text;
    EXPECT_THAT(trace->losses()[0].detail, HasSubstr("no profile of Kineto's")) << text;
  }
  EXPECT_EQ(Trace::Of("", "here")->losses()[0].reason, LossReason::kTruncated);
}

TEST(TraceTest, HostileEventsAreCountedAndLoseNothingElse) {
  const std::string deep(100'000, '[');
  const std::string shallow(100'000, ']');
  const auto trace = Trace::Of(
      File(Event("no time", "\"1\"", "1") + "," + Event("negative", "1", "-1") + "," +
           Event("too long", "1", "9000000000000000000") + "," + Event("exponent", "1e9", "1") +
           ", 5, [], null, " +
           Event("deep", "1", "1", R"(, "args": {"Input Dims": )" + deep + shallow + "}") + "," +
           Event("good", "2", "1", R"(, "args": [1, 2], "id": {"args": {"bytes": 1}})")),
      "here");
  const std::vector<std::string> lines = Dump(trace.get());
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_LT(lines[0].size(), 1000u);
  EXPECT_EQ(lines[1], "thread 8: good @2000 +1000");
  ASSERT_THAT(trace->losses(), SizeIs(1));
  EXPECT_EQ(trace->losses()[0].count, 4u);
}

TEST(TraceTest, WithoutABaseNothingIsPlaced) {
  const std::string events =
      Event("a", "1", "1") + R"(,{"ph": "X", "cat": "Trace", "name": "t", "ts": 1, "dur": 1})";
  for (const std::string base :
       {"", R"("baseTimeNanoseconds": "7", )", R"("baseTimeNanoseconds": -7, )"}) {
    const auto trace = Trace::Of("{" + base + R"("traceEvents": [)" + events + "]}", "here");
    EXPECT_THAT(Dump(trace.get()), IsEmpty());
    EXPECT_EQ(trace->events(), 0u);
    EXPECT_EQ(trace->profile_begin_ns(), std::nullopt);
    ASSERT_THAT(trace->losses(), SizeIs(1));
    EXPECT_EQ(trace->losses()[0].count, 1u);
    EXPECT_THAT(trace->losses()[0].detail, HasSubstr("no \"baseTimeNanoseconds\""));
  }
  // Idle: there is nothing to place.
  EXPECT_THAT(Trace::Of(R"({"traceEvents": []})", "here")->losses(), IsEmpty());
}

TEST(TraceTest, AnArgumentCountsOnceHoweverOftenItComes) {
  std::string arguments = R"("bytes": 1)";
  for (int i = 0; i < 1000; ++i) arguments += R"(, "bytes": 2, "name": "")";
  const auto trace = Trace::Of(
      File(Event("a", "1", "1", R"(, "args": {)" + arguments + R"(}, "args": {"bytes": [3]})")),
      "here");
  EXPECT_THAT(Dump(trace.get()), ElementsAre("thread 8: a @1000 +1000 bytes=1 name="));
}

TEST(TraceTest, LongTextsAreCutBetweenCharacters) {
  const std::string name = std::string(511, 'n') + "\u00e4" + std::string(100'000, 'n');
  std::string keys = R"("": 1)";
  for (int i = 0; i < 100'000; ++i) keys += R"(, "": 1)";
  const auto trace =
      Trace::Of(File(Event(name, "1", "1", R"(, "args": {"Input Dims": {)" + keys + "}}")), "here");
  auto cursor = *trace->Open(0);
  const auto batch = *cursor->NextBatch();
  ASSERT_THAT(batch, SizeIs(1));
  EXPECT_EQ(batch[0].event_class->name, std::string(511, 'n'));
  std::vector<FieldValue> values;
  ASSERT_TRUE(cursor->Decode(batch[0], &values));
  EXPECT_LT(values.at(1).text.size(), 2000u);
}

}  // namespace
}  // namespace syncline::kineto
