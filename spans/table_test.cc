// SPDX-License-Identifier: Apache-2.0
#include "spans/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace syncline::spans {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int64_t kBegin = 1'790'857'026'000'000'000;
constexpr char kHeader[] = "rank,step,name,start_ns,duration_ns,kind,node,device,stream,extra\n";

// "device | lane: name [category] @begin +duration field=value", by stream.
std::vector<std::string> Dump(Process* process) {
  std::vector<std::string> lines;
  std::vector<FieldValue> values;
  for (const StreamInfo& stream : process->streams()) {
    auto cursor = *process->Open(stream.index);
    for (;;) {
      const auto batch = *cursor->NextBatch();
      if (batch.empty()) break;
      for (const EventRecord& record : batch) {
        EXPECT_TRUE(cursor->Decode(record, &values));
        const EventClass& of = *record.event_class;
        std::string line = stream.device + " | " + stream.name + ": " + of.name + " [";
        if (of.attributes.contains("category")) line += of.attributes.at("category");
        line += "] @" + std::to_string(record.time_ns - kBegin) + " +" +
                std::to_string(values[0].u / 1000);
        for (size_t i = 1; i < values.size(); ++i) {
          line += " " + values[i].field->name + "=";
          line += values[i].type == FieldType::kString ? std::string(values[i].text)
                                                       : std::to_string(values[i].s);
        }
        lines.push_back(line);
      }
    }
  }
  return lines;
}

std::string At(int64_t ns) { return std::to_string(kBegin + ns); }

TEST(TableTest, MakesAProcessOfEachRankAndNode) {
  auto table = ReadTable(std::string(kHeader) + "1,,a," + At(0) + ",1,x,h1,,,\n" + "0,,b," + At(5) +
                             ",1,x,h0,,,\n" + "0,,c," + At(2) + ",1,x,h0,,,\n",
                         Format::kCsv);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_THAT(*table, SizeIs(2));
  EXPECT_EQ((*table)[0]->rank(), 0);
  EXPECT_EQ((*table)[0]->node(), "h0");
  EXPECT_EQ((*table)[1]->rank(), 1);
  EXPECT_THAT(Dump((*table)[0].get()), ElementsAre(" | x: c [] @2 +1", " | x: b [] @5 +1"));
}

TEST(TableTest, TellsWhatADeviceDid) {
  auto table = ReadTable(std::string(kHeader) +                                  //
                             "0,3,mm," + At(0) + ",20,kernel,,GPU 1,7,\n" +      //
                             "0,3,h2d," + At(1) + ",2,copy,,,,big\n" +           //
                             "0,3,sync," + At(2) + ",2,collective,,,9,\n" +      //
                             "0,3,gloo," + At(3) + ",2,collective,,,,\n" +       //
                             "0,,aten::mm," + At(4) + ",2,operator,,,main,\n" +  //
                             "0,,wait," + At(5) + ",2,wait,,GPU 1,7,\n",
                         Format::kCsv);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(
      Dump((*table)[0].get()),
      ElementsAre("GPU 1 | GPU 1 stream 7: mm [kernel] @0 +20 step=3",
                  "GPU 1 | GPU 1 stream 7: wait [] @5 +2",
                  "device | device copy: h2d [gpu_memcpy] @1 +2 step=3 extra=big",
                  "device | device stream 9: sync [collective] @2 +2 step=3",
                  " | collective: gloo [] @3 +2 step=3", " | main: aten::mm [cpu_op] @4 +2"));
}

TEST(TableTest, RefusesATableWithoutRows) {
  EXPECT_THAT(ReadTable(kHeader, Format::kCsv).status().message(), HasSubstr("no row"));
}

}  // namespace
}  // namespace syncline::spans
