// SPDX-License-Identifier: Apache-2.0
// The text report over made-up fleets: one screen whatever the number of nodes, the worst first,
// every section by its name, and no number that the JSON does not have.
#include "export/report/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/duration_text.h"
#include "export/report/json_report.h"
#include "export/report/spread.h"
#include "export/report/testing/fleet.h"
#include "export/report/testing/screen.h"
#include "export/report/text_report.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using testing::Estimate;
using testing::Fleet;
using ::testing::HasSubstr;
using testing::ItemOf;
using testing::Job;
using testing::kScreenLines;
using testing::kWindowNs;
using testing::LinesOf;
using testing::NodeName;
using ::testing::Not;
using ::testing::StartsWith;

// The name that stands first in parentheses: of the worst node, or process.
std::string FirstNamed(const std::string& item) {
  const size_t begin = item.find("(node-");
  if (begin == std::string::npos) return "";
  return item.substr(begin + 1, item.find_first_of(" )", begin) - begin - 1);
}

class OneScreen : public ::testing::TestWithParam<std::tuple<uint32_t, Job>> {
 protected:
  uint32_t nodes() const { return std::get<0>(GetParam()); }
  Job job() const { return std::get<1>(GetParam()); }
};

TEST_P(OneScreen, HoldsAFleetOfAnySize) {
  const std::string text = TextReport(Fleet(nodes(), job()), {});
  EXPECT_LE(LinesOf(text), kScreenLines) << text;
  EXPECT_LT(text.find("proven to be true within: "), text.find("±")) << "what it means";
  std::vector<std::string> parts = {
      "Recording",    "Clocks",      "Start skew", "Stop skew",
      "Coverage",     "Losses",      "Steps",      "Largest operators",
      "Clock events", "Wall clocks", "Messages",   "Overhead",
      "More"};
  if (job() == Job::kTensorFlow) parts.push_back("Tensors");
  if (job() == Job::kPyTorch) {
    parts.push_back("Collectives");
    parts.push_back("Transfers");
  }
  for (const std::string& part : parts) {
    EXPECT_THAT(text, AnyOf(StartsWith(part), HasSubstr("\n" + part))) << part;
  }
  EXPECT_THAT(text, AllOf(HasSubstr("20261121-093012-7f3a"), HasSubstr("complete"),
                          HasSubstr("all >= 99.9 % of the window"), HasSubstr("Losses        none"),
                          HasSubstr("--full"), HasSubstr("--section")));
  if (std::getenv("SYNCLINE_SHOW") != nullptr) printf("%s\n", text.c_str());
}

TEST_P(OneScreen, NamesTheWorstFirst) {
  analysis::Report report = Fleet(nodes(), job());
  const size_t worst = nodes() / 2;
  const std::string name = NodeName(worst);
  analysis::NodeReport& node = report.nodes[worst];
  node.bound_ns = 48'000'000;
  node.start_skew = Estimate(-91'000'000, 3'000);
  node.processes[0].covered_ns = kWindowNs / 4;
  node.processes[0].missing_ns = kWindowNs - kWindowNs / 4;
  report.steps[worst].median_ns = 654'000'000;
  report.receipt[worst].processes[0].cost = DurationEstimate{400'000'000, 390'000'000, 410'000'000};
  if (job() == Job::kTensorFlow) report.tensors.edges[worst].waiting_ns = 321'000'000;
  const std::string text = TextReport(report, {});
  EXPECT_LE(LinesOf(text), kScreenLines) << text;
  for (const auto& [label, value] :
       std::vector<std::pair<std::string, std::string>>{{"Clocks", "± 48.0 ms ("},
                                                        {"Start skew", "91.0 ms ± 3.00 µs early ("},
                                                        {"Coverage", " 25.0 % ("},
                                                        {"Overhead", "8.0 % [7.8, 8.2] ("}}) {
    const std::string item = ItemOf(text, label);
    EXPECT_EQ(FirstNamed(item), name) << item;
    EXPECT_THAT(item, HasSubstr(value + name));
  }
  EXPECT_THAT(ItemOf(text, "Steps"), HasSubstr(" max " + name + " ·"));
  if (job() != Job::kTensorFlow) return;
  EXPECT_THAT(ItemOf(text, "Tensors"), HasSubstr(absl::StrCat("receipt edge_", worst, " ")));
}

INSTANTIATE_TEST_SUITE_P(Fleets, OneScreen,
                         ::testing::Combine(::testing::Values(2, 64, 1000),
                                            ::testing::Values(Job::kTensorFlow, Job::kPyTorch)));

TEST(OneScreenText, SaysHowManyMoreThereAreLikeThese) {
  analysis::Report report = Fleet(1000, Job::kTensorFlow);
  report.nodes[7].state = "missing";
  const std::string text = TextReport(report, {});
  EXPECT_THAT(ItemOf(text, "Nodes"), HasSubstr("999 of 1 000 complete; missing: node-7"));
  EXPECT_THAT(ItemOf(text, "Clocks"), HasSubstr(", 997 others ± "));
  EXPECT_THAT(ItemOf(text, "Steps"), HasSubstr("and 997 more like these: medians "));
  EXPECT_THAT(text, HasSubstr("Tensors (4 of 1 000)"));
  EXPECT_THAT(text, HasSubstr("Largest operators (7 of 12)"));
}

TEST(OneScreenText, AnInstantIsEarlyOrLateAndSaysOfWhat) {
  analysis::Report report = Fleet(2);
  report.nodes[1].start_skew = Estimate(-22'700, 1'910);
  report.nodes[0].start_skew = Estimate(0, 0);
  EXPECT_EQ(ItemOf(TextReport(report, {}), "Start skew"),
            "Start skew compared with the requested instant T (clock of node-0): 22.7 µs ± 1.91 µs "
            "early (node-1), 0 ns ± 0 ns (node-0)");
  report.nodes[1].start_skew = {{-22'700, kUnknownLo, kUnknownHi}, std::nullopt};
  EXPECT_THAT(ItemOf(TextReport(report, {}), "Start skew"), HasSubstr(": 22.7 µs ± unknown early"));
}

TEST(OneScreenText, WhatIsLikelyIsOnlySaidWhereItIsMoreThanProven) {
  analysis::Report report = Fleet(3);
  report.assumption.asymmetry_percent = 50;
  for (analysis::NodeReport& node : report.nodes) node.likely_bound_ns = node.bound_ns;
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("likely")));
  EXPECT_THAT(TextReport(report, {.sections = {"nodes"}}), Not(HasSubstr("  likely\n")));
  report.nodes[2].likely_bound_ns = 321;
  report.nodes[1].likely_bound_ns = 123;
  EXPECT_THAT(ItemOf(TextReport(report, {}), "Clocks"),
              HasSubstr("; likely at most ± 1.00 µs (if "));
  EXPECT_THAT(TextReport(report, {.sections = {"nodes"}}),
              AllOf(HasSubstr("± 1.74 µs  ± 321 ns\n"), HasSubstr("± 1.00 µs         -\n"),
                    HasSubstr("likely -: not smaller than what is proven")));
}

// Rows that differ look different, whatever is cut.
TEST(OneScreenText, NoTwoOperatorsLookTheSame) {
  analysis::Report report = Fleet(2);
  const std::string stem =
      "gradient_tape/sequential/a_rather_long_name_of_a_layer_of_a_model/conv2d";
  for (const char* end : {"/Conv2D/Conv2DBackpropInput", "/Conv2D/Conv2DBackpropFilter"}) {
    report.tasks.push_back(
        {NodeName(0), "TensorFlow", stem + end, 100, 0, 90'000'000'000, 90'000'000'000});
  }
  const std::string text = TextReport(report, {});
  EXPECT_THAT(text, AllOf(HasSubstr("BackpropInput  "), HasSubstr("BackpropFilter  "),
                          HasSubstr("  gradient_tape/"), Not(HasSubstr(stem))));
}

// Each number of the line is one of the nodes' bounds as the JSON has them.
TEST(OneScreenText, BoundsAreThoseOfTheNodes) {
  const auto clocks_of = [](const analysis::Report& report) {
    const auto json = nlohmann::json::parse(ReportJson(report));
    std::vector<int64_t> bounds;
    for (const auto& node : json["nodes"]) bounds.push_back(node["clock_bound_ns"]);
    std::sort(bounds.rbegin(), bounds.rend());
    const std::string item = ItemOf(TextReport(report, {}), "Clocks");
    const auto text = [&](size_t at) { return "± " + DurationText(bounds[at]); };
    const size_t last = bounds.size() - 1;
    EXPECT_THAT(item, HasSubstr(absl::StrCat("median ", text(last - bounds.size() / 2), ", worst ",
                                             text(0), " (")));
    EXPECT_THAT(item, AllOf(HasSubstr(", " + text(1) + " ("), HasSubstr(", " + text(2) + " (")));
    EXPECT_THAT(item, HasSubstr(absl::StrCat(", ", bounds.size() - 3, " others ", text(last),
                                             " to ", text(3))));
    return item;
  };
  analysis::Report report = Fleet(64);
  const std::string before = clocks_of(report);
  report.nodes[17].bound_ns = 987'000;
  EXPECT_NE(clocks_of(report), before);
}

// "1 234", "12.3 µs", "99.9 %" in `text`, without their signs.
std::set<std::string> NumbersOf(const std::string& text) {
  static const std::regex kNumber("[0-9]+([ .][0-9]+)*( (ns|µs|ms|s|min|%)(?![a-z]))?");
  std::set<std::string> numbers;
  for (std::sregex_iterator at(text.begin(), text.end(), kNumber), end; at != end; ++at) {
    numbers.insert(at->str());
  }
  return numbers;
}

// Each way in which the report may write a number, or the size of a list, of `json`.
void AddNumbers(const nlohmann::json& json, std::set<std::string>* texts) {
  if (json.is_number_integer()) {
    const int64_t value = std::abs(json.get<int64_t>());
    texts->merge(NumbersOf(
        absl::StrCat(value, "; ", Count(static_cast<uint64_t>(value)), "; ", DurationText(value))));
  } else if (json.is_string()) {
    texts->merge(NumbersOf(json.get<std::string>()));
  } else if (json.is_structured()) {
    texts->merge(NumbersOf(Count(json.size())));
    for (const auto& child : json) AddNumbers(child, texts);
  }
}

std::vector<std::string> NotInJson(const std::string& text, const analysis::Report& report) {
  std::set<std::string> known;
  AddNumbers(nlohmann::json::parse(ReportJson(report)), &known);
  std::vector<std::string> unknown;
  for (const std::string& number : NumbersOf(text)) {
    if (known.count(number) == 0) unknown.push_back(number);
  }
  return unknown;
}

TEST(SectionNumbers, AreAllInTheJson) {
  analysis::Report report = Fleet(3);
  timeline::LossTotal loss;
  loss.count = 777;
  loss.intervals = 5;
  loss.source = "channel0_1";
  loss.end = {3'210'000};
  report.nodes[1].losses.push_back(loss);
  for (const char* name : {"nodes", "losses", "clock-events", "steps", "tensors", "messages"}) {
    const std::string text = TextReport(report, {.sections = {name}});
    EXPECT_GT(NumbersOf(text).size(), 1u) << text;
    EXPECT_THAT(NotInJson(text, report), ::testing::IsEmpty()) << text;
  }
  // And that is noticed: the text of another recording has numbers of its own.
  analysis::Report other = report;
  other.steps[2].median_ns = 31'415'926;
  EXPECT_THAT(NotInJson(TextReport(other, {.sections = {"steps"}}), report),
              ::testing::ElementsAre("31.4 ms"));
}

TEST(Steps, OfAProgramThatNumbersThemTheLongestIsNamed) {
  analysis::Report report = Fleet(2);
  EXPECT_THAT(TextReport(report, {.sections = {"steps"}}), Not(HasSubstr("longest")));
  analysis::StepSeries& series = report.steps[1];
  for (size_t i = 0; i < series.steps.size(); ++i) {
    series.steps[i].name = absl::StrCat(series.name, " ", i);
    series.steps[i].end.ns = series.steps[i].begin.ns + (i == 17 ? 170'000 : 80'000);
  }
  const std::string text = TextReport(report, {.sections = {"steps"}});
  EXPECT_THAT(text, AllOf(HasSubstr("longest"), HasSubstr("train_step 17\n")));
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("longest")));  // there is no room
}

TEST(Operators, WhatOverlapsHasNoSelf) {
  analysis::Report report = Fleet(1);
  report.tasks.push_back({NodeName(0), "reader", "read batch", 5, 0, 77'000'000'000, 0, true});
  report.tasks.push_back({NodeName(0), "reader", "read batch", 3, 0, 66'000'000'000, 4'000'000});
  const std::string text = TextReport(report, {.sections = {"operators"}});
  EXPECT_TRUE(std::regex_search(text, std::regex("read batch .* 5 .*77\\.000 s +- +15\\.400 s")))
      << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("read batch .* 3 .*66\\.000 s +4\\.00 ms")))
      << text;
}

TEST(SectionsByName, EachIsPrintedInFullUnderItsTitle) {
  const analysis::Report report = Fleet(64);
  const std::string full = TextReport(report, {.full = true});
  for (const Section& section : Sections()) {
    const std::string text = TextReport(report, {.sections = {section.name}});
    EXPECT_THAT(text, StartsWith(absl::StrCat(section.title, "\n"))) << section.name;
    EXPECT_GT(LinesOf(text), 1u) << section.name;
    EXPECT_THAT(full, HasSubstr(text)) << section.name;
    EXPECT_EQ(FindSection(section.name), &section);
  }
  for (const char* name : {"nodes", "coverage", "steps", "tensors", "messages", "transfers",
                           "operators", "partitions", "profiles", "overhead", "wall-clocks",
                           "machines", "network", "devices", "device-health", "nccl", "vtune"}) {
    const std::string text = TextReport(report, {.sections = {name}});
    EXPECT_GE(LinesOf(text), 64u) << name << ": every row of a fleet\n" << text;
  }
  EXPECT_EQ(FindSection("no-such-section"), nullptr);
}

// A profile knows nothing of other processes on the device, nor why it lacks a launch.
TEST(SectionsByName, OfDevicesClaimNoMoreThanTheProfileSays) {
  analysis::Report report = Fleet(1);
  report.nodes[0].devices[0].without_operators = 7;
  const std::string text =
      absl::StrReplaceAll(TextReport(report, {.sections = {"devices"}}), {{"\n  ", " "}});
  EXPECT_THAT(text, HasSubstr("idle: nothing of the process ran; others on the device are not in"));
  EXPECT_THAT(text, HasSubstr("3 of all 400 kernels, copies and fills have no launch in the "
                              "profile: operator, step and launch wait are unknown."));
  EXPECT_THAT(text, HasSubstr("7 of all 400 kernels, copies and fills were launched before the "
                              "first operator of the profile, or after its last"));
}

// A table of spans says the step itself, and knows of no launches.
TEST(SectionsByName, OfDevicesHaveNoLaunchWaitWithoutLaunches) {
  analysis::Report report = Fleet(1);
  report.nodes[0].devices.resize(1);
  analysis::DeviceReport& device = report.nodes[0].devices[0];
  device.steps_by = timeline::StepsBy::kTable;
  const auto text = [&] {
    const std::string lines =
        absl::StrReplaceAll(TextReport(report, {.sections = {"devices"}}), {{"\n  ", " "}});
    const std::vector<std::string> words = absl::StrSplit(lines, ' ', absl::SkipEmpty());
    return absl::StrJoin(words, " ");
  };
  EXPECT_THAT(text(), AllOf(HasSubstr("launch wait is unknown, and so are operator and step where "
                                      "the profile does not name them."),
                            Not(HasSubstr("% - Shares"))));
  device.without_launch = device.work;
  EXPECT_THAT(text(), HasSubstr("% - Shares"));
}

TEST(SectionsByName, OfDevicesHaveNoMedianStepWithoutSteps) {
  analysis::Report report = Fleet(1);
  const auto text = [&] { return TextReport(report, {.sections = {"devices"}}); };
  EXPECT_THAT(text(), HasSubstr(" 18.0 ms "));
  report.nodes[0].devices[0].has_steps = false;
  EXPECT_THAT(text(), AllOf(Not(HasSubstr(" 18.0 ms ")), HasSubstr("profile has no whole step")));
}

// Kineto's profiles have calls, kernels and marks among their events.
TEST(SectionsByName, OfKinetosProfilesCountEvents) {
  analysis::Report report = Fleet(1);
  const auto header = [&] {
    const std::string text = TextReport(report, {.sections = {"profiles"}});
    return text.substr(0, text.find('\n', text.find('\n') + 1));
  };
  for (timeline::ProfileResult& profile : report.nodes[0].profiles) {
    profile.profiler = timeline::Profiler::kTensorFlow;
  }
  EXPECT_THAT(header(), HasSubstr("operators"));
  for (timeline::ProfileResult& profile : report.nodes[0].profiles) {
    profile.profiler = timeline::Profiler::kKineto;
  }
  EXPECT_THAT(header(), AllOf(HasSubstr("events"), Not(HasSubstr("operators"))));
}

TEST(SectionsByName, ComeInTheOrderOfTheReportAndOnce) {
  const std::string text =
      TextReport(Fleet(2), {.sections = {"losses", "nodes", "losses", "nodes"}});
  EXPECT_THAT(text, StartsWith("Nodes\n"));
  EXPECT_EQ(text.find("\nLosses\n"), text.rfind("\nLosses\n"));
}

TEST(SectionsByName, WithoutContentSayThatThereIsNone) {
  const analysis::Report nothing;
  for (const Section& section : Sections()) {
    const std::string text = TextReport(nothing, {.sections = {section.name}});
    EXPECT_THAT(text, StartsWith(absl::StrCat(section.title, "\n"))) << section.name;
    EXPECT_GE(LinesOf(text), 2u) << section.name;
  }
  EXPECT_THAT(TextReport(nothing, {}), AllOf(HasSubstr("Losses"), Not(HasSubstr("tensors"))));
}

TEST(SectionsByName, FullTablesBeginWithTheCostliest) {
  analysis::Report report = Fleet(64);
  report.nodes[40].bound_ns = 48'000'000;
  report.nodes[50].state = "missing";
  report.messages.rows[40].sent_bytes = 999'999'999;
  const auto first_row = [&](const char* name) {
    const std::string text = TextReport(report, {.sections = {name}});
    const size_t title = text.find('\n');
    const size_t header = text.find('\n', title + 1);
    return text.substr(header + 1, text.find('\n', header + 1) - header - 1);
  };
  EXPECT_THAT(first_row("nodes"), StartsWith("  node-50 ")) << "what is not complete comes first";
  report.nodes[50].state = "complete";
  EXPECT_THAT(first_row("nodes"), StartsWith("  node-40 "));
  EXPECT_THAT(first_row("messages"), StartsWith("  node-40 "));
}

TEST(OneScreenText, HowManyMessagesHaveAnArrow) {
  analysis::Report report = Fleet(3);
  report.messages.drawable = report.messages.arrows = 12'345;
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("arrow")));
  report.messages.drawable = 102'714;
  report.messages.arrows = 20'000;
  const std::string says = "20 000 of 102 714 messages have an arrow on the timeline";
  EXPECT_THAT(TextReport(report, {}), HasSubstr(says));
  const std::string text = TextReport(report, {.sections = {"messages"}});
  EXPECT_THAT(text, HasSubstr(says));
  EXPECT_THAT(NotInJson(text, report), ::testing::IsEmpty());
}

TEST(OneScreenText, HalvesOfOneGroupUnderTwoNamesOfJobsAreSaid) {
  analysis::Report report = Fleet(2, Job::kPyTorch);
  analysis::CollectiveReport& collectives = report.collectives;
  collectives.found.groups[0].ranks = "0-1";
  collectives.found.groups.push_back(collectives.found.groups[0]);
  collectives.found.groups[1].job = "night";
  collectives.kinds.push_back(collectives.kinds[0]);
  collectives.kinds.back().group = 1;
  EXPECT_THAT(TextReport(report, {}), Not(HasSubstr("--job"))) << "two jobs, recorded whole";
  for (analysis::CollectiveKindReport& kind : collectives.kinds) kind.whole = 0;
  EXPECT_THAT(TextReport(report, {.width = 1000}),
              HasSubstr("! group default_pg of ranks 0-1 was recorded of two jobs, \"\" and "
                        "\"night\", and of both no collective has all its ranks: if they are one "
                        "job, start all of its processes with the same --job\n"));
}

TEST(OneScreenText, LossesAreAddedUpByReason) {
  analysis::Report report = Fleet(64);
  report.incomplete = true;
  timeline::LossTotal loss;
  loss.count = 100;
  loss.intervals = 2;
  for (size_t i = 10; i < 20; ++i) report.nodes[i].losses.push_back(loss);
  report.nodes[33].losses.push_back(loss);
  report.nodes[33].losses[0].count = 5'000;
  const std::string text = TextReport(report, {});
  EXPECT_THAT(text, HasSubstr("INCOMPLETE"));
  EXPECT_THAT(ItemOf(text, "Losses"),
              HasSubstr("6 000 in 22 intervals on 11 nodes, most on node-33 (5 000)"));
}

TEST(OneScreenText, ManyComplaintsAreCounted) {
  analysis::Report report = Fleet(2);
  for (int i = 0; i < 100; ++i) report.complaints.push_back(absl::StrCat("complaint ", i));
  const std::string text = TextReport(report, {});
  EXPECT_THAT(text, AllOf(HasSubstr("! complaint 0\n"), Not(HasSubstr("complaint 4")),
                          HasSubstr("96 more")));
  EXPECT_THAT(TextReport(report, {.sections = {"recording"}}), HasSubstr("! complaint 99\n"));
}

}  // namespace
}  // namespace syncline::report
