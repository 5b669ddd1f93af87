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

// From slices to what they are of.
constexpr char kOfThreads[] =
    "join track t on t.id = s.track_id "
    "join thread on thread.tid = extract_arg(t.source_arg_set_id, 'trace_id') "
    "join process p using (upid)";
constexpr char kZero[] = "(select min(ts) from slice where name = 'T' and category = 'timeline')";
constexpr char kErrors[] =
    "select name, value from stats where severity in ('error', 'data_loss') and value > 0";

std::string Spans(const std::string& node) {
  return absl::StrCat("select s.name as span, s.ts - ", kZero, ", s.dur, s.depth from slice s ",
                      kOfThreads, " where '· ' || p.name like '%· ", node,
                      " · %' order by s.ts, s.depth");
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
      {kErrors, "select count(*) as negative from slice where dur < 0", Spans("a"), Spans("b"),
       Spans("open_at_start_and_end"), Spans("loss_recovery"),
       "select name, count(distinct pid) from process where name like '%python%' "
       "group by name order by name",
       "select count(*) as described from track where "
       "'· ' || extract_arg(source_arg_set_id, 'description') || ' ·' like '%· pid: 10 ·%'",
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
      "rank 0 · a · python train.py\t1\nrank 1 · b · python train.py\t1\n",
      "described\n7\n",
      "debug.shape\t1x1\ndebug.shape\t2x3\n",
      "io · bytes\t-3\nio · bytes\t2.5\n",
      "discarded events\t2\nnot covered\t10\nsilent loss\t2\n"};
  ASSERT_GE(tables.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(tables[i], ::testing::EndsWith(expected[i]));
  }
}

// Calls a sink as a builder does, for jobs that no scenario has.
class Job {
 public:
  explicit Job(timeline::TimelineSink* sink) : sink_(sink) { sink_->OnText(1, "step"); }

  void Node(uint32_t node, const std::string& name) {
    nodes_.push_back(Add({.kind = timeline::TrackKind::kNode, .name = name, .node = node}));
  }
  // With a thread beside its main thread.
  void Rank(uint32_t node, int rank, int steps) {
    timeline::Track process{.parent = nodes_[node],
                            .kind = timeline::TrackKind::kProcess,
                            .name = absl::StrCat("n", node, " · rank ", rank, " · python"),
                            .node = node,
                            .facts = {{"pid", "7"}, {"rank", absl::StrCat(rank)}}};
    process.process.pid = 7;  // as containers have them
    const timeline::TrackId parent = Add(process);
    for (const int tid : {8, 7}) {
      timeline::Track thread{.parent = parent,
                             .kind = timeline::TrackKind::kThread,
                             .name = tid == 7 ? "python" : "loader",
                             .node = node,
                             .tid = tid};
      const timeline::TrackId track = Add(thread);
      for (int step = 0; step < steps; ++step) Step(track, 100 * step);
    }
  }
  void Step(timeline::TrackId track, int64_t begin_ns) {
    timeline::Span span;
    span.track = track;
    span.name = span.category = 1;
    span.begin = {begin_ns};
    span.end = {begin_ns + 50};
    sink_->OnSpanBegin(span);
    sink_->OnSpanEnd(span);
  }
  timeline::TrackId Add(timeline::Track track) {
    track.id = next_++;
    sink_->OnTrack(track);
    return track.id;
  }

 private:
  timeline::TimelineSink* sink_;
  std::vector<timeline::TrackId> nodes_;
  timeline::TrackId next_ = 0;
};

TEST_F(PerfettoQuery, ShowsRanksInTheirOrderWithTheirNodes) {
  std::ostringstream out;
  PerfettoSink sink(&out, {});
  Job job(&sink);
  job.Node(0, "n0");
  job.Node(1, "n1");
  job.Rank(1, 11, 5);  // the busiest first
  job.Rank(0, 2, 1);
  job.Rank(1, 10, 2);
  for (const uint32_t node : {1u, 0u}) {
    sink.OnClockBound({.node = node, .time = {10}, .bound_ns = 1000});
  }
  ASSERT_TRUE(sink.Finish().ok());
  // What is on top stands in the order of names; siblings in that of their ranks.
  const std::vector<std::string> tables = Query(
      out.str(), {kErrors,
                  "select name as tops from track where parent_id is null and name is not null "
                  "order by name",
                  "select p.name, t.name from track t join track p on t.parent_id = p.id "
                  "where p.name <> 'all nodes' order by p.name, "
                  "extract_arg(t.source_arg_set_id, 'sibling_order_rank')",
                  absl::StrCat("select p.name, thread.name, count(*) from slice s ", kOfThreads,
                               " group by 1, 2 order by 1, 2")});
  const std::vector<std::string> expected = {
      "name\tvalue\n",
      "tops\nall nodes\nrank 02 · n0 · python\nrank 10 · n1 · python\nrank 11 · n1 · python\n",
      "node n0\tclock bound\nnode n1\tclock bound\n"
      "rank 02 · n0 · python\tloader 8\nrank 02 · n0 · python\tnode n0\n"
      "rank 10 · n1 · python\tloader 8\nrank 10 · n1 · python\tnode n1\n"
      "rank 11 · n1 · python\tloader 8\n",
      "rank 02 · n0 · python\tloader\t1\nrank 02 · n0 · python\tpython\t1\n"
      "rank 10 · n1 · python\tloader\t2\nrank 10 · n1 · python\tpython\t2\n"
      "rank 11 · n1 · python\tloader\t5\nrank 11 · n1 · python\tpython\t5\n"};
  ASSERT_GE(tables.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(tables[i], ::testing::EndsWith(expected[i]));
  }
}

TEST_F(PerfettoQuery, ShowsSamplesOfCodeWithTheirStacks) {
  std::ostringstream out;
  PerfettoSink sink(&out, {});
  Job job(&sink);
  job.Node(0, "n0");
  timeline::CodeSample sample;
  sample.track = job.Add({.parent = 0, .kind = timeline::TrackKind::kLane, .name = "main 7"});
  const std::vector<std::string> texts = {"main", "/opt/job", "job.c",
                                          "work", "do_sys",   "[kernel]"};
  for (size_t i = 0; i < texts.size(); ++i) sink.OnText(static_cast<uint32_t>(i + 2), texts[i]);
  const timeline::CodeFrame main{2, 3, 4, 3}, work{5, 3, 4, 9}, kernel{6, 7, 0, 0};
  const auto push = [&](int64_t at_ns, std::vector<timeline::CodeFrame> stack, size_t self) {
    sample.time = {at_ns};
    sample.stack = std::move(stack);
    sample.self = self;
    sink.OnCodeSample(sample);
  };
  push(10, {main, work}, 1);
  push(20, {main, work, kernel}, 1);
  push(30, {main, work}, 1);
  ASSERT_TRUE(sink.Finish().ok());
  const std::vector<std::string> tables = Query(
      out.str(),
      {kErrors,
       "select s.ts, t.name, s.category, s.name, f.name, m.name, y.source_file, y.line_number, "
       "above.name from __intrinsic_track_event_callstacks c join slice s on s.id = c.slice_id "
       "join track t on t.id = s.track_id "
       "join stack_profile_callsite site on site.id = c.callsite_id "
       "join stack_profile_frame f on f.id = site.frame_id "
       "join stack_profile_mapping m on m.id = f.mapping "
       "left join stack_profile_symbol y on y.symbol_set_id = f.symbol_set_id "
       "join stack_profile_callsite higher on higher.id = site.parent_id "
       "join stack_profile_frame above on above.id = higher.frame_id order by s.ts",
       "select count(*) from stack_profile_callsite"});
  EXPECT_THAT(tables[0], ::testing::EndsWith("value\n"));
  EXPECT_THAT(tables[1],
              ::testing::EndsWith("10\tmain 7\tsample\twork\twork\t/opt/job\tjob.c\t9\tmain\n"
                                  "20\tmain 7\tsample\twork\tdo_sys\t/[kernel]\tnull\tnull\twork\n"
                                  "30\tmain 7\tsample\twork\twork\t/opt/job\tjob.c\t9\tmain\n"));
  EXPECT_THAT(tables[2], ::testing::EndsWith("\n3\n"));
}

TEST_F(PerfettoQuery, LeadsFromOneTaskToTheOneItIsRelatedTo) {
  const std::vector<std::string> tables =
      Query(Export(ReadCase("relations")),
            {kErrors,
             absl::StrCat("select sent.ts - ", kZero, ", a.name, sent.name, received.ts - ", kZero,
                          ", b.name from flow join slice sent on sent.id = slice_out "
                          "join slice a on a.id = sent.parent_id "
                          "join slice received on received.id = slice_in "
                          "join slice b on b.id = received.parent_id "
                          "order by sent.ts, received.ts, sent.id"),
             "select count(*) from slice where name like 'relation:%'"});
  EXPECT_THAT(tables[0], ::testing::EndsWith("value\n"));
  EXPECT_THAT(tables[1],
              ::testing::EndsWith("\n10\twork\trelation: is parent of\t20\twork\n"
                                  "11\twork\trelation: is needed by\t21\twork\n"
                                  "12\twork\trelation: is parent of\t70\twork\n"
                                  "13\twork\trelation: is parent of\t72\twork\n"
                                  "22\twork\trelation: is continued by\t50\tother\n"
                                  "51\tother\trelation: is predecessor to\t55\tasync\n"));
  EXPECT_THAT(tables[2], ::testing::EndsWith("\n27\n")) << "each relation, and arrows' two ends";
}

TEST_F(PerfettoQuery, ShowsUnitsOfCountersAndWhatIsSaidOfThem) {
  const std::vector<std::string> tables =
      Query(Export(ReadCase("counter_metadata")),
            {kErrors,
             "select name, unit, extract_arg(source_arg_set_id, 'description') from counter_track "
             "where name <> 'clock bound' order by name"});
  EXPECT_THAT(tables[0], ::testing::EndsWith("value\n"));
  EXPECT_THAT(tables[1],
              ::testing::EndsWith("\nbytes\tkB\tnull\n"
                                  "io · bytes\tB\tdevice: disk · maximum: 4096 · bandwidth: yes · "
                                  "absolute: no\n"
                                  "io · plain\tnull\tnull\n"));
}

TEST_F(PerfettoQuery, ShowsWhatTheSchedulerDidWithAThread) {
  auto scenario = timeline::testing::ParseScenario(ReadCase("two_nodes_nested"));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  timeline::NodeInput& node = scenario->nodes[0];
  const int64_t at_ns = node.placement->ClockNs({0});
  timeline::SchedulingSeries& series = node.scheduling;
  series.names = {"no one", "stress (pid 90)"};
  series.takers = {{1, 4}, {0, 1}};
  series.threads = {{node.processes.at(0).key, 12, "pool", {}}};
  series.threads[0].turns = {{.until_ns = at_ns + 40,
                              .ran_ns = 15,
                              .ready_ns = 5,
                              .pause_ns = 10,
                              .cpu = 3,
                              .waker = 1,
                              .takers = 2},
                             {.until_ns = at_ns + 60,
                              .ran_ns = 10,
                              .pause_ns = 10,
                              .pause = timeline::ThreadState::State::kUninterruptible,
                              .cpu = 4}};
  series.losses = {{.begin_ns = at_ns + 60, .end_ns = at_ns + 70, .count = 9}};
  std::ostringstream out;
  PerfettoSink sink(&out, {});
  timeline::TimelineSink* const sinks[] = {&sink};
  ASSERT_TRUE(timeline::BuildTimeline(scenario->nodes, scenario->options, sinks).ok());
  const std::vector<std::string> tables = Query(
      out.str(),
      {kErrors,
       absl::StrCat("select s.ts - ", kZero,
                    ", s.dur, s.name, t.name, g.name from slice s "
                    "join track t on t.id = s.track_id join track g on g.id = t.parent_id "
                    "where s.category = 'scheduling' order by s.ts"),
       "select s.name, a.flat_key, a.display_value from slice s join args a using (arg_set_id) "
       "where s.category = 'scheduling' and a.flat_key like 'debug.%' order by s.ts, a.flat_key",
       absl::StrCat("select s.ts - ", kZero,
                    ", s.dur, s.name, t.name from slice s "
                    "join track t on t.id = s.track_id where t.name like '%scheduling%' and "
                    "s.category = 'hole'")});
  EXPECT_THAT(tables[0], ::testing::EndsWith("value\n"));
  EXPECT_THAT(tables[1], ::testing::EndsWith("20\t5\tready\tpool 12\tscheduling\n"
                                             "25\t15\tCPU 3\tpool 12\tscheduling\n"
                                             "40\t10\tuninterruptible\tpool 12\tscheduling\n"
                                             "50\t10\tCPU 4\tpool 12\tscheduling\n"))
      << "where it slept there is nothing";
  EXPECT_THAT(tables[2], ::testing::EndsWith("ready\tdebug.CPU\t3\n"
                                             "ready\tdebug.had the CPU: no one, ns\t1\n"
                                             "ready\tdebug.had the CPU: stress (pid 90), ns\t4\n"
                                             "CPU 3\tdebug.woken by\tstress (pid 90)\n"));
  EXPECT_THAT(tables[3],
              ::testing::EndsWith("60\t10\tdiscarded events\tnot recorded · scheduling\n"));
}

// One that cannot go back.
class Pipe : public std::stringbuf {
 protected:
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return pos_type(off_type(-1));
  }
};

TEST_F(PerfettoQuery, CountsTimesFromTOrFromWhatLiesBefore) {
  constexpr char kTimes[] = "select name, min(ts) from slice group by name order by name";
  const auto write = [](std::ostream* out, int64_t begin_ns, bool mark_zero) {
    PerfettoSink sink(out, {.mark_zero = mark_zero});
    Job job(&sink);
    job.Node(0, "n0");
    job.Step(job.Add({.parent = 0, .kind = timeline::TrackKind::kThread, .name = "t"}), begin_ns);
    EXPECT_TRUE(sink.Finish().ok());
  };
  std::ostringstream before, after, unmarked;
  write(&before, -700, true);
  write(&after, 300, true);
  write(&unmarked, 300, false);
  Pipe pipe;
  std::ostream to_pipe(&pipe);
  write(&to_pipe, -700, true);
  const auto times = [&](const std::string& trace) { return Query(trace, {kTimes})[0]; };
  EXPECT_THAT(times(before.str()), ::testing::EndsWith("T\t700\nstep\t0\n"));
  EXPECT_THAT(times(after.str()), ::testing::EndsWith("T\t0\nstep\t300\n"));
  EXPECT_THAT(times(unmarked.str()), ::testing::EndsWith("min(ts)\nstep\t300\n"));
  EXPECT_THAT(times(pipe.str()), ::testing::EndsWith("T\t3600000000000\nstep\t3599999999300\n"));
}

}  // namespace
}  // namespace syncline::perfetto
