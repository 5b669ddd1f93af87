// SPDX-License-Identifier: Apache-2.0
// The analysis and its printed forms over a job whose truth is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/analyse.h"
#include "common/text_width.h"
#include "export/report/json_report.h"
#include "export/report/report_fixture.h"
#include "export/report/svg.h"
#include "export/report/table.h"
#include "export/report/text_report.h"
#include "export/report/units.h"
#include "timeline/cut_sink.h"
#include "timeline/profile_lanes.h"
#include "timeline/testing/scenario.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::report {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using timeline::testing::kJobDelayNs;
using timeline::testing::kJobOffsetNs;
using timeline::testing::kJobSteps;
using timeline::testing::kJobZeroNs;

TEST_F(ReportTest, SkewsContainTheTruthAndAreNotTrivial) {
  const analysis::Report report = Analyse();
  for (const analysis::NodeReport& node : report.nodes) {
    ASSERT_TRUE(node.start_skew.has_value() && node.stop_skew.has_value());
    EXPECT_LE(node.start_skew->lo_ns, 20'000);
    EXPECT_GE(node.start_skew->hi_ns, 20'000);
    EXPECT_LE(node.stop_skew->lo_ns, 5'000);
    EXPECT_GE(node.stop_skew->hi_ns, 5'000);
  }
  EXPECT_LT(report.nodes[1].start_skew->bound_ns(), 2 * kJobDelayNs);
  EXPECT_FALSE(report.incomplete);
}

TEST_F(ReportTest, FindsTheStepsAndEachGroupInsideItsOwn) {
  const analysis::Report report = Analyse();
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_EQ(report.steps[0].node, 0u);
  EXPECT_EQ(report.steps[0].name, "train_step");
  EXPECT_EQ(report.steps[0].steps.size(), static_cast<size_t>(kJobSteps));
  EXPECT_NEAR(report.steps[0].median_ns, 9'600'000, 5);
  ASSERT_EQ(report.groups.size(), 1u);
  const analysis::GroupSeries& groups = report.groups[0];
  EXPECT_EQ(groups.inside, static_cast<uint64_t>(kJobSteps));
  EXPECT_EQ(groups.outside + groups.undecided, 0u);
  EXPECT_THAT(groups.groups, Each(Field(&analysis::StepGroup::tasks, 3u)));
  EXPECT_EQ(groups.moved_by_wall_clock, 0u);  // here the wall clocks are right
}

// Groups lie 2.0 to 2.3 ms inside their steps: with a bound of 3 ms nothing of that is proven. That
// neither way takes less than a quarter of both would make it 1.5 ms, and is said to be assumed.
TEST_F(ReportTest, WhatOnlyAnAssumptionDecidesIsCalledLikely) {
  model_ = timeline::testing::TwoNodeModel(3'000'000);
  for (uint32_t i = 0; i < 2; ++i) {
    placements_[i] = timeline::ModelPlacement(model_, {i});
    scenario_.nodes[i].placement = placements_[i].get();
    facts_[i].placement = placements_[i].get();
  }
  const auto steps = static_cast<uint64_t>(kJobSteps);
  EXPECT_EQ(Analyse().groups[0].undecided, steps);  // nothing may be assumed
  asymmetry_percent_ = 50;
  const analysis::Report report = Analyse();
  EXPECT_EQ(report.groups[0].inside + report.groups[0].undecided, 0u);
  EXPECT_EQ(report.groups[0].likely_inside, steps);
  const std::string text = TextReport(report, {.width = 200});
  EXPECT_THAT(text,
              AllOf(HasSubstr(" during 20 steps of master-0. They lie within the step in 0 of "
                              "these (proven), "),
                    HasSubstr("; likely in 20, likely not in 0 (if ")));
  EXPECT_THAT(text, HasSubstr("if path asymmetry <= 50 %"));
  const auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["groups"][0]["groups"][3]["inside_step"], "likely");
  EXPECT_EQ(json["groups"][0]["likely_inside"], steps);
  EXPECT_EQ(json["likely_assumes"]["path_asymmetry_percent_max"], 50);
  // What is proven is the same whatever is assumed.
  const auto& skew = json["nodes"][1]["start_skew"];
  EXPECT_NEAR(skew["hi_ns"].get<double>() - skew["lo_ns"].get<double>(), 6e6, 1e5);
  EXPECT_NEAR(skew["likely_hi_ns"].get<double>() - skew["likely_lo_ns"].get<double>(), 3e6, 1e5);
  EXPECT_GT(json["nodes"][1]["clock_bound_ns"], json["nodes"][1]["likely_clock_bound_ns"]);
}

TEST_F(ReportTest, AWrongWallClockIsMeasuredAndItsDamageCounted) {
  facts_[1].wall_offset_ns = *facts_[1].wall_offset_ns - 6'000'000;  // 6 ms slow
  const analysis::Report report = Analyse();
  ASSERT_TRUE(report.nodes[1].wall_error.has_value());
  EXPECT_LE(report.nodes[1].wall_error->lo_ns, -6'000'000);
  EXPECT_GE(report.nodes[1].wall_error->hi_ns, -6'000'000);
  EXPECT_FALSE(report.nodes[0].wall_error.has_value());
  // Centres lie at 4.95 to 5.25 ms of steps of 10 ms that begin at 0.2 ms: all of them move.
  EXPECT_EQ(report.groups[0].moved_by_wall_clock, static_cast<uint64_t>(kJobSteps));
  EXPECT_EQ(report.groups[0].inside, static_cast<uint64_t>(kJobSteps));
}

TEST_F(ReportTest, NothingIsDecidedWithoutBounds) {
  model_ = clocksync::ClockModel::Identity({"master-0", "worker-0"});
  for (uint32_t i = 0; i < 2; ++i) {
    placements_[i] = timeline::ShiftPlacement({i}, -kJobZeroNs - (i == 0 ? 0 : kJobOffsetNs));
    scenario_.nodes[i].placement = placements_[i].get();
    facts_[i].placement = placements_[i].get();
  }
  const analysis::Report report = Analyse();
  ASSERT_EQ(report.groups.size(), 1u);
  EXPECT_EQ(report.groups[0].undecided, static_cast<uint64_t>(kJobSteps));
  EXPECT_FALSE(report.nodes[1].bound_ns.has_value());
  EXPECT_THAT(TextReport(report, {}), HasSubstr("unknown"));
}

TEST_F(ReportTest, TotalsSelfTimeAndCost) {
  const analysis::Report report = Analyse();
  const auto task = [&](const std::string& name) {
    for (const analysis::TaskTotal& total : report.tasks) {
      if (total.name == name) return total;
    }
    return analysis::TaskTotal{};
  };
  EXPECT_EQ(task("train_step").count, static_cast<uint64_t>(kJobSteps));
  EXPECT_NEAR(task("train_step").total_ns, kJobSteps * 9'600'000, 100);
  EXPECT_NEAR(task("train_step").self_ns, kJobSteps * 7'300'000, 100);
  EXPECT_EQ(task("convolution").node, "worker-0");
  ASSERT_TRUE(report.nodes[0].processes[0].cost.has_value());
  EXPECT_EQ(report.nodes[0].processes[0].cost->est_ns, 122 * 120);
  EXPECT_EQ(report.nodes[0].processes[0].counted_events, report.nodes[0].processes[0].events);
}

TEST_F(ReportTest, TheReceiptSaysWhatItCostAndHowSureThatIs) {
  const analysis::Report before = Analyse();
  ASSERT_EQ(before.receipt.size(), 2u);
  const analysis::ProcessReceipt& unmeasured = before.receipt[0].processes[0];
  EXPECT_EQ(unmeasured.events, 122u);
  EXPECT_FALSE(unmeasured.share()->bounded()) << "the event `off` has no interval";
  EXPECT_EQ(unmeasured.step_ns, before.steps[0].median_ns);
  EXPECT_THAT(TextReport(before, {}),
              AllOf(HasSubstr("\nOverhead"), HasSubstr("(interval unknown)")));

  facts_[0].trace_bytes = 12'345;
  facts_[0].discarded_events = 3;
  facts_[0].lost_packets = 0;
  analysis::Report report = Analyse();
  report.receipt[1].probes =
      analysis::ProbeCounts{{"packets_sent_count", 70}, {"dropped_forged_count", 5}};
  analysis::ProcessReceipt& process = report.receipt[0].processes[0];
  process.covered_ns = 2'000'000'000;
  process.cost = DurationEstimate{10'000'000, 9'000'001, 12'000'000};
  EXPECT_EQ(process.events_per_second(), 61u);
  EXPECT_EQ(process.share()->est_ppm, 5000);
  EXPECT_EQ(process.share()->lo_ppm, 4500);
  EXPECT_EQ(process.share()->hi_ppm, 6000);
  report.window_begin = {0};
  report.window_end = {5'000'000'000};
  const std::string text = TextReport(report, {.sections = {"overhead"}});
  // In the window, however short the processes were there.
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("0.50 % [0.45, 0.60]"), HasSubstr("12 345 bytes of trace, 2 469 per second"),
            HasSubstr("3 events discarded"),
            HasSubstr(report.receipt[1].name + ": clock probes since the agent began: "
                                               "packets with a wrong signature: 5\n")));
  const auto json = nlohmann::json::parse(ReportJson(report), nullptr, false);
  const auto& receipt = json["receipt"][0];
  EXPECT_EQ(receipt["trace_bytes"], 12'345);
  EXPECT_EQ(receipt["discarded_events"], 3);
  EXPECT_EQ(receipt["processes"][0]["share_of_time"]["hi_ppm"], 6000);
  EXPECT_EQ(receipt["processes"][0]["cost"]["lo_ns"], 9'000'001);
  EXPECT_TRUE(json["receipt"][1]["trace_bytes"].is_null());
  EXPECT_TRUE(receipt["clock_probes"].is_null());
  EXPECT_EQ(json["receipt"][1]["clock_probes"]["packets_sent_count"], 70);
  EXPECT_EQ(json["receipt"][1]["clock_probes"]["dropped_forged_count"], 5);
}

// LTTng was gone before it could be asked: nothing counted is not nothing lost.
TEST_F(ReportTest, TheReceiptSaysWhatNobodyCounted) {
  facts_[0].trace_bytes = facts_[1].trace_bytes = 12'345;
  facts_[1].discarded_events = facts_[1].lost_packets = 0;
  const analysis::Report report = Analyse();
  EXPECT_THAT(
      TextReport(report, {.sections = {"overhead"}}),
      AllOf(HasSubstr("what LTTng discarded is unknown"), HasSubstr("LTTng discarded no event")));
  EXPECT_THAT(TextReport(report, {}), HasSubstr("what LTTng discarded is unknown on"));
  const auto json = nlohmann::json::parse(ReportJson(report), nullptr, false);
  EXPECT_TRUE(json["receipt"][0]["lost_packets"].is_null());
  EXPECT_TRUE(json["receipt"][0]["discarded_events"].is_null());
  EXPECT_EQ(json["receipt"][1]["lost_packets"], 0);
}

TEST_F(ReportTest, TheReceiptNamesProfilersThatItDoesNotCount) {
  analysis::Report report = Analyse();
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("which ran too")));
  report.receipt[1].tensorflow_profiler = true;
  EXPECT_THAT(TextReport(report, {.width = 300}),
              HasSubstr("; without what TensorFlow's profiler took, which ran too\n"));
  EXPECT_THAT(TextReport(report, {.sections = {"overhead"}}),
              HasSubstr("not in it: what TensorFlow's profiler took, which ran too"));
  const auto json = nlohmann::json::parse(ReportJson(report), nullptr, false);
  EXPECT_TRUE(json["receipt"][0]["profilers_not_counted"].empty());
  EXPECT_EQ(json["receipt"][1]["profilers_not_counted"], nlohmann::json({"tensorflow"}));
}

// It handed over events, and it is not known in which time.
TEST_F(ReportTest, ARateOverNoTimeIsUnknown) {
  analysis::Report report = Analyse();
  report.receipt[0].processes[0].covered_ns = 0;
  report.receipt[0].processes[0].events = 77;
  EXPECT_THAT(TextReport(report, {.sections = {"overhead"}}), HasSubstr(" unknown "));
  const auto json = nlohmann::json::parse(ReportJson(report), nullptr, false);
  EXPECT_TRUE(json["receipt"][0]["processes"][0]["events_per_second"].is_null());
}

TEST_F(ReportTest, WhatOneProcessMissedIsNotCoveredByAll) {
  EXPECT_EQ(Analyse().common_coverage.size(), 1u);
  change_ = [](std::vector<timeline::ProcessResult>* processes) {
    (*processes)[0].coverage.clear();
  };
  const analysis::Report report = Analyse();
  EXPECT_TRUE(report.common_coverage.empty());
  EXPECT_THAT(
      TextReport(report, {.sections = {"coverage"}}),
      AllOf(HasSubstr("no interval is covered by all 2 ranks"), HasSubstr("idle, stopped, gone")));
  change_ = [](std::vector<timeline::ProcessResult>* processes) {
    (*processes)[0].coverage.clear();
    (*processes)[0].counted_lost = 9'016;
  };
  EXPECT_THAT(TextReport(Analyse(), {.sections = {"coverage"}}),
              AllOf(HasSubstr("in the whole window: it lost"), Not(HasSubstr("idle"))));
}

// A worker of a data loader has its rank's number, lives for a while, and is no rank; a pause of
// the rank is no coverage.
TEST_F(ReportTest, CoverageOfAllIsThatOfRanksWithoutTheirPauses) {
  const std::vector<timeline::Interval> before = Analyse().common_coverage;
  ASSERT_EQ(before.size(), 1u);
  change_ = [](std::vector<timeline::ProcessResult>* processes) {
    timeline::ProcessResult worker = (*processes)[0];
    worker.found_events = 3;
    worker.coverage[0].end_ns = worker.coverage[0].begin_ns + 1'000;
    processes->push_back(worker);
  };
  analysis::Report report = Analyse();
  ASSERT_EQ(report.common_coverage.size(), 1u);
  EXPECT_EQ(report.common_coverage[0].begin, before[0].begin);
  EXPECT_EQ(report.common_coverage[0].end, before[0].end);
  EXPECT_EQ(report.ranks, 2u);

  change_ = [](std::vector<timeline::ProcessResult>* processes) {
    std::vector<timeline::ClockInterval>& coverage = (*processes)[0].coverage;
    timeline::ClockInterval rest = coverage[0];
    coverage[0].end_ns = coverage[0].begin_ns + 50'000'000;
    rest.begin_ns = coverage[0].end_ns + 20'000'000;  // paused
    coverage.push_back(rest);
  };
  report = Analyse();
  ASSERT_EQ(report.common_coverage.size(), 2u);
  const std::string text = TextReport(report, {.sections = {"coverage"}});
  EXPECT_THAT(text, HasSubstr("covered by all 2 ranks: 180 ms in 2 intervals between "));
  const auto json = nlohmann::json::parse(ReportJson(report))["common_coverage"];
  EXPECT_EQ(json["intervals"].size(), 2u);
  EXPECT_EQ(json["end_ns"], report.common_coverage[1].end.ns);
  EXPECT_NEAR(json["covered_ns"].get<double>(), 180e6, 1e6);
}

TEST_F(ReportTest, StepsByDomainAndName) {
  const analysis::Report report = Analyse("oneDNN:matmul");
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_EQ(report.steps[0].node, 1u);
  EXPECT_EQ(report.steps[0].steps.size(), static_cast<size_t>(kJobSteps));
}

TEST_F(ReportTest, TextIsAlignedAndFitsTheTerminal) {
  const analysis::Report report = Analyse();
  for (const auto& [width, full] :
       {std::pair(72, false), std::pair(100, false), std::pair(100, true), std::pair(160, true)}) {
    const auto columns = static_cast<size_t>(width);
    const std::string text = TextReport(report, {.width = columns, .full = full});
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string line = text.substr(begin, end - begin);
      // Tables give way down to the width of their numbers.
      if (width >= 100) {
        EXPECT_LE(DisplayWidth(line), columns) << line;
      }
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    EXPECT_THAT(text,
                AllOf(HasSubstr("train_step"), HasSubstr("master-0"), Not(HasSubstr("\x1b"))));
  }
  EXPECT_THAT(TextReport(report, {.color = true}), HasSubstr("\x1b[1m"));
  if (std::getenv("SYNCLINE_SHOW") != nullptr) printf("%s", TextReport(report, {}).c_str());
}

TEST_F(ReportTest, JsonHoldsWhatTheReportHolds) {
  const std::string text = ReportJson(Analyse());
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["format_version"], kFormatVersion);
  EXPECT_EQ(json["nodes"].size(), 2u);
  EXPECT_EQ(json["steps"][0]["count"], kJobSteps);
  EXPECT_EQ(json["groups"][0]["groups"][3]["inside_step"], "yes");
  EXPECT_TRUE(json["nodes"][0]["wall_clock_error"].is_null());
  EXPECT_EQ(text, ReportJson(Analyse()));
}

TEST_F(ReportTest, PictureShowsBothNodesAndTheBound) {
  PictureOptions options;
  options.title = "Two steps on master-0 and worker-0";
  options.subtitle = "recording 20261121-093012-7f3a";
  options.range = {{89'000'000}, {111'000'000}};
  options.zero = {90'200'000};
  options.step_node = 0;
  options.boundaries = {{90'200'000}, {99'800'000}, {100'200'000}, {109'800'000}};
  options.bound_ns[1] = 85'000;
  PictureSink sink(options);
  timeline::CutSink cut(options.range, &sink);
  timeline::TimelineSink* const sinks[] = {&cut};
  ASSERT_TRUE(timeline::BuildTimeline(scenario_.nodes, scenario_.options, sinks).ok());
  const std::string svg = sink.Render();
  EXPECT_THAT(svg, AllOf(HasSubstr("master-0 · rank 0"), HasSubstr("worker-0 · rank 1"),
                         HasSubstr("± 85.0 µs"), HasSubstr(">convolution<"), HasSubstr("</svg>")));
  if (const char* path = std::getenv("SYNCLINE_SHOW")) std::ofstream(path) << svg;
}

// Two nodes, each with a thread of TensorFlow's executor.
class OperatorPicture : public testing::Test {
 protected:
  OperatorPicture() {
    using timeline::TrackKind;
    sink_.OnText(1, timeline::kOperatorCategory);
    sink_.OnText(2, "gradients/Conv2D_1_grad/Conv2DBackpropFilter");
    sink_.OnText(3, "ExecutorState::Process");
    for (uint32_t node = 0; node < 2; ++node) {
      const uint32_t base = node * 10;
      Add(base + 1, timeline::kNoTrack, TrackKind::kNode, node, "host");
      Add(base + 2, base + 1, TrackKind::kProcess, node, "host · python");
      Add(base + 3, base + 2, TrackKind::kGroup, node, "TensorFlow");
      Add(base + 4, base + 3, TrackKind::kLane, node, "tf_Compute");
      timeline::Span executor{{.track = base + 4, .name = 3, .begin = {0}, .end = {1'000'000}}, {}};
      timeline::Span convolution = executor;
      convolution.name = 2;
      convolution.category = 1;
      convolution.depth = 1;
      sink_.OnSpanEnd(convolution);
      sink_.OnSpanEnd(executor);
    }
  }
  void Add(timeline::TrackId id, timeline::TrackId parent, timeline::TrackKind kind, uint32_t node,
           const char* name) {
    timeline::Track track;
    track.id = id;
    track.parent = parent;
    track.kind = kind;
    track.node = node;
    track.name = name;
    sink_.OnTrack(track);
  }
  size_t Arrows() {
    const std::string svg = sink_.Render();
    size_t count = 0;
    for (size_t at = 0; (at = svg.find("<line", at)) != std::string::npos; ++at) {
      count += svg.substr(at, svg.find('>', at) - at).find("marker-end") != std::string::npos;
    }
    return count;
  }
  PictureSink sink_{{.range = {{0}, {1'000'000}}}};
};

TEST_F(OperatorPicture, ShowsOperatorsWithoutTheirExecutor) {
  const std::string svg = sink_.Render();
  EXPECT_THAT(svg, AllOf(HasSubstr("operators · tf_Compute"), HasSubstr("/Conv2DBackpropFilter<"),
                         testing::Not(HasSubstr("ExecutorState"))));
}

TEST_F(OperatorPicture, DrawsWhatOneNodeSentToAnother) {
  EXPECT_EQ(Arrows(), 0u);
  sink_.OnFlow({.id = 1, .from = 4, .to = 4, .sent = {1}, .received = {2}});
  EXPECT_EQ(Arrows(), 0u) << "within a node";
  sink_.OnFlow({.id = 2, .from = 4, .to = 14, .sent = {100'000}, .received = {200'000}});
  EXPECT_EQ(Arrows(), 2u) << "the arrow and its legend";
  EXPECT_THAT(sink_.Render(), testing::Not(HasSubstr("message over TCP")));
  sink_.OnFlow({.id = 3, .from = 2, .to = 12, .sent = {100'000}, .received = {200'000}});
  EXPECT_EQ(Arrows(), 4u);
  EXPECT_THAT(sink_.Render(), HasSubstr("message over TCP"));
}

TEST(Picture, SaysThatItIsEmpty) {
  PictureSink sink({.range = {{0}, {1000}}});
  EXPECT_THAT(sink.Render(), HasSubstr("No task"));
}

TEST(Units, ReadWell) {
  EXPECT_EQ(Percent(5'000, 5'000), "100.0 %");
  EXPECT_EQ(Percent(4'998, 5'000), "99.9 %") << "not rounded to what it is not";
  EXPECT_EQ(Percent(999'999'999, 1'000'000'000), "99.9 %");
  EXPECT_EQ(Percent(1, 2), "50.0 %");
  EXPECT_EQ(Percent(1, 1'000'000), "0.1 %");
  EXPECT_EQ(Percent(0, 5), "0.0 %");
  EXPECT_EQ(Percent(0, 0), "-");
  EXPECT_EQ(Count(1'234'567), "1 234 567");
  EXPECT_EQ(Plural(1, "task"), "1 task");
}

TEST(TableText, ShrinksCutsAndDefusesControlCharacters) {
  EXPECT_EQ(Fit("abcdef", 4), "abc…");
  EXPECT_EQ(Fit("äöü", 3), "äöü");
  EXPECT_EQ(Fit("a\x1b[31m", 10), "a?[31m");
  Table table({{"name", Table::Align::kLeft, true}, {"n", Table::Align::kRight}});
  table.Add({"a very long name that gives way", "1"});
  table.Add({"b", "22"});
  EXPECT_EQ(table.Format(24, 0),
            "name                   n\na very long name th…   1\nb                     22\n");
  EXPECT_EQ(FitMiddle("abcdefgh", 5), "ab…gh");
  EXPECT_EQ(FitMiddle("äöüäöüäö", 6), "äöü…äö");
  EXPECT_EQ(FitMiddle("abcde", 5), "abcde");
}

TEST(TableText, CellsThatDifferLookDifferent) {
  const auto rows_of = [](const std::vector<std::string>& names) {
    Table table({{"name", Table::Align::kLeft, true}, {"n", Table::Align::kRight}});
    for (const std::string& name : names) table.Add({name, "1"});
    return table.Format(20, 0);
  };
  EXPECT_EQ(rows_of({"convolution/backward/input", "convolution/backward/filter"}),
            "name               n\nconvolut…rd/input  1\nconvolut…d/filter  1\n");
  // Head and tail are the same: wider than the terminal, but by no more than it takes.
  EXPECT_EQ(
      rows_of({"convolution/forward_1/and_what_follows", "convolution/forward_2/and_what_follows"}),
      "name                                   n\n"
      "convolution/forwar…1/and_what_follows  1\n"
      "convolution/forwar…2/and_what_follows  1\n");
  EXPECT_EQ(rows_of({"a_name_that_is_longer_than_this", "a_name_that_is_longer_than_this"}),
            "name               n\na_name_that_is_l…  1\na_name_that_is_l…  1\n");
}

TEST(TextReport, OfASectionThatHasNothingSaysWhatRecordsIt) {
  const analysis::Report report;
  EXPECT_THAT(TextReport(report, {.sections = {"hot"}}),
              HasSubstr("none recorded: `syncline record --samples`"));
  EXPECT_THAT(TextReport(report, {.sections = {"devices"}}), HasSubstr("`syncline run --kineto`"));
  EXPECT_THAT(TextReport(report, {.sections = {"tensors"}}), HasSubstr("none recorded\n"));
}

}  // namespace
}  // namespace syncline::report
