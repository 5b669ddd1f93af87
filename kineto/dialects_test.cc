// SPDX-License-Identifier: Apache-2.0
// Files as the versions of PyTorch wrote them, packed or not, and what is said of devices.
#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kineto/launches.h"
#include "kineto/trace.h"
#include "kineto/unpack.h"

namespace syncline::kineto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// "stream: name operator=... launched=...", of the work of devices; "stream: name" of the rest.
std::vector<std::string> Dump(Trace* trace) {
  std::vector<std::string> lines;
  std::vector<FieldValue> values;
  for (const StreamInfo& stream : trace->streams()) {
    auto cursor = *trace->Open(stream.index);
    for (auto batch = *cursor->NextBatch(); !batch.empty(); batch = *cursor->NextBatch()) {
      for (const EventRecord& record : batch) {
        EXPECT_TRUE(cursor->Decode(record, &values));
        std::string line = stream.name + ": " + record.event_class->name;
        for (const FieldValue& value : values) {
          if (value.field->name == "operator") line += " in " + std::string(value.text);
          if (value.field->name == "_launched_ns") line += " at " + std::to_string(value.s);
        }
        lines.push_back(line);
      }
    }
  }
  return lines;
}

std::string Event(const std::string& category, const std::string& name, const std::string& where,
                  const std::string& when, const std::string& arguments = "") {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + "\", " + where + ", " +
         when + R"(, "args": {)" + arguments + "}}";
}

constexpr char kThread[] = R"("pid": 7, "tid": 8)";
constexpr char kQueue[] = R"("pid": 0, "tid": 7)";

// One operator inside another, each with a launch, and a kernel of each; a launch outside of both.
std::string LaunchedWork() {
  return Event("cpu_op", "aten::linear", kThread, R"("ts": 10, "dur": 50)") + "," +
         Event("cpu_op", "aten::mm", kThread, R"("ts": 20, "dur": 10)") + "," +
         Event("cuda_runtime", "cudaLaunchKernel", kThread, R"("ts": 22, "dur": 2)",
               R"("correlation": 1)") +
         "," +
         Event("cuda_driver", "cuLaunchKernel", kThread, R"("ts": 40, "dur": 2)",
               R"("correlation": 2)") +
         "," +
         Event("cuda_runtime", "cudaMemcpyAsync", kThread, R"("ts": 70, "dur": 2)",
               R"("correlation": 3)") +
         "," + Event("kernel", "gemm", kQueue, R"("ts": 30, "dur": 20)", R"("correlation": 1)") +
         "," + Event("kernel", "add", kQueue, R"("ts": 50, "dur": 5)", R"("correlation": 2)") +
         "," +
         Event("gpu_memcpy", "Memcpy HtoD", kQueue, R"("ts": 80, "dur": 5)",
               R"("correlation": 3)") +
         "," + Event("kernel", "early", kQueue, R"("ts": 1, "dur": 5)", R"("correlation": 99)");
}

TEST(DialectsTest, WorkOfADeviceIsInsideTheOperatorThatLaunchedIt) {
  const auto trace = Trace::Of(
      R"({"baseTimeNanoseconds": 0, "distributedInfo": {"rank": 3, "world_size": 8,)"
      R"( "pg_config": [{"ranks": [0, 1], "rank": 77}]}, "traceEvents": [)"
      R"({"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python3"}},)"
      R"({"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},)"
      R"({"ph": "M", "name": "process_labels", "pid": 7, "tid": 0, "args": {"labels": "CPU"}},)" +
          LaunchedWork() + "," +
          Event("gpu_user_annotation", "step", kQueue, R"("ts": 30, "dur": 30)") + "," +
          Event("cuda_sync", "Stream Sync", kQueue, R"("ts": 31, "dur": 3)") + "]}",
      "here");
  EXPECT_THAT(trace->losses(), IsEmpty());
  EXPECT_THAT(
      Dump(trace.get()),
      ElementsAre("thread 8: aten::linear", "thread 8: aten::mm", "thread 8: cudaLaunchKernel",
                  "thread 8: cuLaunchKernel", "thread 8: cudaMemcpyAsync", "GPU 0 stream 7: early",
                  "GPU 0 stream 7: gemm in aten::mm at 22000",
                  "GPU 0 stream 7: add in aten::linear at 40000",
                  "GPU 0 stream 7: Memcpy HtoD at 70000", "GPU 0 stream 7 annotations: step",
                  "GPU 0 stream 7 synchronisation: Stream Sync"));
  EXPECT_EQ(trace->streams()[1].device, "GPU 0");
  EXPECT_EQ(trace->streams()[0].device, "");
  EXPECT_EQ(trace->rank(), 3);
  EXPECT_EQ(trace->world_size(), 8);
  EXPECT_EQ(trace->pid(), 7);
  EXPECT_EQ(trace->process_name(), "python3");
}

// Before 2.4 times counted from 1970, and nothing was said of a base.
TEST(DialectsTest, TimesFrom1970) {
  const std::string file =
      R"({"schemaVersion": 1, "traceEvents": [)" +
      Event("cpu_op", "aten::mm", kThread, R"("ts": 1622000000000123.5, "dur": 10)");
  const auto trace = Trace::Of(file + "]}", "here");
  EXPECT_THAT(trace->losses(), IsEmpty());
  ASSERT_THAT(trace->streams(), SizeIs(1));
  EXPECT_EQ(trace->streams()[0].begin_ns, 1'622'000'000'000'123'500);
  EXPECT_EQ(trace->rank(), std::nullopt);

  // Of events that count from elsewhere nothing says when they were: a few are lost, but where most
  // do so, it is all of them.
  const std::string other = "," + Event("kernel", "gemm", kQueue, R"("ts": 0, "dur": 0)");
  const auto one = Trace::Of(
      file + other + "," +
          Event("cpu_op", "aten::add", kThread, R"("ts": 1622000000000456, "dur": 1)") + "]}",
      "here");
  EXPECT_THAT(Dump(one.get()), ElementsAre("thread 8: aten::mm", "thread 8: aten::add"));
  ASSERT_THAT(one->losses(), SizeIs(1));
  EXPECT_EQ(one->losses()[0].count, 1);
  const auto half = Trace::Of(file + other + "]}", "here");
  EXPECT_EQ(half->events(), 0);
  ASSERT_THAT(half->losses(), SizeIs(1));
  EXPECT_EQ(half->losses()[0].count, 2);
}

// CUPTI gives some records of a profile's head times that are a day off.
TEST(DialectsTest, KernelsFarFromTheProgramAreLost) {
  const std::string far_away = R"("ts": -100000000000, "dur": 20)";
  const auto trace = Trace::Of(
      R"({"baseTimeNanoseconds": 1622000000000000000, "traceEvents": [)" + LaunchedWork() + "," +
          Event("kernel", "wrong", kQueue, far_away, R"("correlation": 1)") + "," +
          Event("kernel", "wrong", R"("pid": 0, "tid": 9)", far_away) + "," +
          Event("kernel", "long", kQueue, R"("ts": 90, "dur": 50000000)") + "]}",
      "here");
  EXPECT_THAT(Dump(trace.get()), testing::Not(testing::Contains(HasSubstr("wrong"))));
  EXPECT_THAT(Dump(trace.get()), testing::Contains("GPU 0 stream 7: long"));
  ASSERT_THAT(trace->losses(), SizeIs(1));
  EXPECT_EQ(trace->losses()[0].count, 2);
  EXPECT_THAT(trace->losses()[0].detail, HasSubstr("2 events of devices are more than 60 s"));
}

TEST(DialectsTest, CategoriesOf2021) {
  const auto trace = Trace::Of(
      R"({"baseTimeNanoseconds": 0, "traceEvents": [)" +
          Event("Operator", "aten::mm", kThread, R"("ts": 20, "dur": 10)") + "," +
          Event("Runtime", "cudaLaunchKernel", R"("pid": "7", "tid": "8")", R"("ts": 22, "dur": 2)",
                R"("correlation": 1)") +
          "," +
          Event("Kernel", "gemm", R"("pid": 1, "tid": "stream 7")", R"("ts": 30, "dur": 2)",
                R"("correlation": 1)") +
          "," + Event("Memset", "fill", R"("pid": 1, "tid": "stream 7")", R"("ts": 40, "dur": 2)") +
          "]}",
      "here");
  EXPECT_THAT(Dump(trace.get()),
              ElementsAre("thread 8: aten::mm", "thread 8: cudaLaunchKernel",
                          "GPU 1 stream 7: gemm in aten::mm at 22000", "GPU 1 stream 7: fill"));
}

TEST(DialectsTest, WhatElseADeviceDoesIsUnderItsCategory) {
  const auto trace = Trace::Of(
      R"({"baseTimeNanoseconds": 0, "traceEvents": [)"
      R"({"ph": "M", "name": "process_labels", "pid": 1, "tid": 0, "args": {"labels": "HPU 0"}},)" +
          Event("hpu_op", "gemm", R"("pid": 1, "tid": 3)", R"("ts": 30, "dur": 2)") + "]}",
      "here");
  EXPECT_THAT(Dump(trace.get()), ElementsAre("HPU 0 stream 3 hpu_op: gemm"));
}

TEST(DialectsTest, TheListAloneIsAFile) {
  const auto trace =
      Trace::Of("[" +
                    Event("cpu_op", "aten::mm", kThread, R"("ts": 1622000000000000, "dur": 10)",
                          R"("Input Dims": [[2, 3], []], "Sequence number": 4)") +
                    "]",
                "here");
  EXPECT_THAT(trace->losses(), IsEmpty());
  EXPECT_THAT(Dump(trace.get()), ElementsAre("thread 8: aten::mm"));
  const auto cut =
      Trace::Of("[" + Event("cpu_op", "a", kThread, R"("ts": 1622000000000000, "dur": 1)") +
                    R"(, {"ph": "X", )",
                "here");
  EXPECT_EQ(cut->events(), 1);
  ASSERT_THAT(cut->losses(), SizeIs(1));
  EXPECT_EQ(cut->losses()[0].reason, LossReason::kTruncated);
}

TEST(LaunchesTest, OfNestedCallsTheOuterAndNoneForZeroOrForTwo) {
  Launches launches;
  launches.OnThread();
  launches.OnOperator(1, 10, 20);
  launches.OnCall(2, 15, 18, "5");
  launches.OnCall(4, 16, 17, "5");  // the driver's inside the runtime's
  launches.OnCall(3, 20, 21, "6");  // as the operator ends: outside
  launches.OnCall(5, 22, 23, "0");
  launches.OnCall(8, 24, 25, "9");
  launches.OnCall(9, 25, 26, "9");
  launches.OnCall(10, 27, 30, "11");
  launches.OnThread();
  launches.OnCall(6, 12, 13, "7");  // of another thread
  launches.OnCall(11, 28, 29, "11");
  EXPECT_EQ(launches.Find("5").call, 2);
  EXPECT_EQ(launches.Find("5").operator_event, 1);
  EXPECT_EQ(launches.Find("6").call, 3);
  EXPECT_EQ(launches.Find("6").operator_event, kNoEvent);
  EXPECT_EQ(launches.Find("7").operator_event, kNoEvent);
  EXPECT_EQ(launches.Find("9").call, kNoEvent);
  EXPECT_EQ(launches.Find("11").call, kNoEvent);
  EXPECT_EQ(launches.Find("0").call, kNoEvent);
  EXPECT_EQ(launches.Find("8").call, kNoEvent);
}

std::string Packed(const std::string& text, bool zstd) {
  std::string bytes(text.size() + 4096, '\0');
  size_t used = 0;
  ::archive* const writer = ::archive_write_new();
  ::archive_write_set_format_raw(writer);
  (zstd ? ::archive_write_add_filter_zstd : ::archive_write_add_filter_gzip)(writer);
  ::archive_write_set_bytes_in_last_block(writer, 1);
  EXPECT_EQ(::archive_write_open_memory(writer, bytes.data(), bytes.size(), &used), ARCHIVE_OK);
  ::archive_entry* const entry = ::archive_entry_new();
  ::archive_entry_set_filetype(entry, AE_IFREG);
  ::archive_entry_set_pathname(entry, "x");
  ::archive_write_header(writer, entry);
  ::archive_write_data(writer, text.data(), text.size());
  ::archive_entry_free(entry);
  ::archive_write_close(writer);
  ::archive_write_free(writer);
  bytes.resize(used);
  return bytes;
}

TEST(UnpackTest, GzipAndZstd) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += std::to_string(i);
  for (const bool zstd : {false, true}) {
    const std::string packed = Packed(text, zstd);
    ASSERT_TRUE(IsPacked(packed));
    const auto unpacked = Unpack(packed);
    ASSERT_TRUE(unpacked.ok());
    EXPECT_EQ(unpacked->text, text);
    EXPECT_EQ(unpacked->damage, "");
    // What is there before the damage is kept, and the damage is said.
    const auto cut = Unpack(std::string_view(packed).substr(0, packed.size() / 2));
    ASSERT_TRUE(cut.ok());
    EXPECT_TRUE(text.starts_with(cut->text));
    EXPECT_NE(cut->damage, "");
    EXPECT_TRUE(absl::IsResourceExhausted(Unpack(packed, text.size() / 2).status()));
  }
  EXPECT_FALSE(IsPacked("{}"));
  EXPECT_FALSE(IsPacked(""));
}

}  // namespace
}  // namespace syncline::kineto
