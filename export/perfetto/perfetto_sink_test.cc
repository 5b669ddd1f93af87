// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/perfetto_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "export/testing/perfetto_query.h"
#include "timeline/testing/scenario.h"

namespace syncline::perfetto {
namespace {

using export_testing::ReadCase;

std::string Export(const std::string& scenario_text) {
  auto scenario = timeline::testing::ParseScenario(scenario_text);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  std::ostringstream out;
  PerfettoSink sink(&out, {.epoch_unix_ns = 1'700'000'000'000'000'000});
  timeline::TimelineSink* const sinks[] = {&sink};
  EXPECT_TRUE(timeline::BuildTimeline(scenario->nodes, scenario->options, sinks).ok());
  return out.str();
}

// Splits a message into field number -> number of occurrences; nullopt when it is malformed.
std::optional<std::map<uint64_t, int>> CountFields(std::string_view bytes) {
  std::map<uint64_t, int> counts;
  const auto varint = [&]() -> std::optional<uint64_t> {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  };
  while (!bytes.empty()) {
    const auto tag = varint();
    if (!tag.has_value() || (*tag & 7) != 2) return std::nullopt;  // a trace is packets only
    const auto length = varint();
    if (!length.has_value() || *length > bytes.size()) return std::nullopt;
    bytes.remove_prefix(*length);
    ++counts[*tag >> 3];
  }
  return counts;
}

using PerfettoQuery = export_testing::PerfettoQuery;

TEST(PerfettoSink, WritesPacketsOnlyAndAlwaysTheSame) {
  const std::string text = ReadCase("overlapped_frames_counters");
  const std::string first = Export(text);
  const auto fields = CountFields(first);
  ASSERT_TRUE(fields.has_value());
  EXPECT_EQ(fields->size(), 1u);
  EXPECT_GT(fields->at(1), 40);
  EXPECT_EQ(first, Export(text));
}

TEST(PerfettoSink, ReportsThatItCannotWrite) {
  std::ofstream full("/dev/full", std::ios::binary);
  PerfettoSink sink(&full, {.epoch_unix_ns = 1});
  EXPECT_FALSE(sink.Finish().ok());
}

std::string Spans(const std::string& node) {
  return absl::StrCat(
      "select s.name as span, s.ts - 3600000000000, s.dur, s.depth from slice s join thread_track "
      "t "
      "on s.track_id = t.id join thread using (utid) join process p using (upid) where "
      "coalesce(s.category, '') <> 'facts' and p.name like '",
      node, " %' order by s.ts, s.depth");
}

TEST_F(PerfettoQuery, ReadsWhatWasMeant) {
  // Every golden scenario as nodes of one trace; those of several files get names of their own.
  std::string all;
  for (const char* name : {"open_at_start_and_end", "loss_recovery", "overlapped_frames_counters",
                           "coverage", "late_names", "foreign_provider", "silent_loss"}) {
    all += absl::StrReplaceAll(ReadCase(name), {{"node a ", absl::StrCat("node ", name, " ")}});
  }
  all += ReadCase("two_nodes_nested");
  const std::vector<std::string> tables = Query(
      Export(all),
      {"select name, value from stats where severity in ('error', 'data_loss') and value > 0",
       "select count(*) as negative from slice where dur < 0", Spans("a"), Spans("b"),
       Spans("open_at_start_and_end"), Spans("loss_recovery"),
       "select name, pid > 0, count(distinct pid) from process where name like '%python%' "
       "group by name order by name",
       "select count(*) as facts from slice s join args a using (arg_set_id) where "
       "s.category = 'facts' and a.flat_key = 'debug.pid' and a.string_value = '10'",
       "select a.flat_key, a.display_value from slice s join args a using (arg_set_id) "
       "where s.name = 'parse' order by a.key",
       "select t.name, c.value from counter c join track t on c.track_id = t.id order by c.ts",
       "select s.name, count(*) from slice s where s.category = 'hole' group by s.name"});
  const std::vector<std::string> expected = {
      "name\tvalue\n",
      "negative\n0\n",
      "step 1\t10\t90\t0\nmatmul\t20\t30\t1\n",
      "step 1\t10\t90\t0\n",
      "epoch\t4\t76\t0\nstep\t5\t45\t1\nop\t30\t10\t2\nstep\t60\t10\t1\n"
      "epoch\t900\t90\t0\nstep\t910\t80\t1\n",
      "a\t1000\t4000\t0\nb\t2000\t3000\t1\na\t6000\t3000\t0\nd\t11000\t1000\t0\n"
      "c\t12984\t16\t0\na\t13984\t2016\t0\nd\t14000\t1000\t1\n",
      "a · rank 0 · python train.py\t1\t1\nb · rank 1 · python train.py\t1\t1\n",
      "facts\n7\n",
      "debug.shape\t1x1\ndebug.shape\t2x3\n",
      "io · bytes\t-3\nio · bytes\t2.5\n",
      "discarded events\t2\nnot covered\t10\nsilent loss\t2\n"};
  ASSERT_GE(tables.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(tables[i], ::testing::EndsWith(expected[i]));
  }
}

}  // namespace
}  // namespace syncline::perfetto
