// SPDX-License-Identifier: Apache-2.0
// What the report makes of processes that are no ranks, and of clocks that are contradicted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/report/json_report.h"
#include "export/report/report_fixture.h"
#include "export/report/text_report.h"

namespace syncline::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What a torchrun job with a DataLoader looks like: beside each rank its workers, and a launcher.
class ReportOfParts : public ReportTest {
 protected:
  ReportOfParts() {
    change_ = [](std::vector<timeline::ProcessResult>* processes) {
      timeline::ProcessResult& rank = processes->front();
      rank.part = "rank";
      std::vector<timeline::ProcessResult> others(4, rank);
      for (size_t i = 0; i < others.size(); ++i) {
        timeline::ProcessResult& one = others[i];
        one.part = i == 3 ? "launcher" : "loader worker";
        if (i == 3) one.rank = -1;
        one.name = i == 3 ? "worker-0 · launcher · torchrun"
                          : absl::StrCat("worker-0 · loader worker ", i, " of rank 1");
        one.key.pid = static_cast<int32_t>(900 + i);
        one.found_events = 1'000'000 + i;  // more than the rank has
        one.counted_events = 1'000 + i;
        one.threads = 3;
        one.cost = DurationEstimate{1'000'000, 900'000, 1'100'000};
        one.coverage[0].end_ns -= static_cast<int64_t>(i) * 20'000'000;
      }
      processes->insert(processes->end(), others.begin(), others.end());
    };
  }
};

TEST_F(ReportOfParts, WorkersAreOneRow) {
  const analysis::Report report = Analyse();
  const std::string coverage = TextReport(report, {.sections = {"coverage"}});
  EXPECT_THAT(coverage, HasSubstr("worker-0 · 3 loader workers of rank 1"));
  EXPECT_THAT(coverage, HasSubstr("3 000 003")) << "their events together\n" << coverage;
  EXPECT_THAT(coverage, HasSubstr("160 ms to 200 ms")) << coverage;
  EXPECT_THAT(coverage, HasSubstr("worker-0 · launcher · torchrun"));
  EXPECT_THAT(coverage, Not(HasSubstr("loader worker 1 of rank 1")));

  const std::string overhead = TextReport(report, {.width = 140, .sections = {"overhead"}});
  EXPECT_THAT(overhead, HasSubstr("worker-0 · 3 loader workers of rank 1"));
  EXPECT_THAT(overhead, HasSubstr("3.00 ms")) << overhead;
  EXPECT_THAT(overhead, HasSubstr("several in one row: time inside is their sum"));
  EXPECT_THAT(overhead, Not(HasSubstr("loader worker 1 of rank 1")));

  EXPECT_THAT(TextReport(report, {}),
              HasSubstr("6 processes (1 rank, 1 launcher, 3 loader workers, 1 other); "));
}

TEST_F(ReportOfParts, OnlyRanksCoverAndMakeSteps) {
  const analysis::Report with = Analyse();
  change_ = nullptr;
  const analysis::Report without = Analyse();
  EXPECT_EQ(with.ranks, 2u);
  ASSERT_EQ(with.common_coverage.size(), 1u);
  EXPECT_EQ(with.common_coverage[0].end, without.common_coverage[0].end);
  const auto& receipt = with.receipt[1].processes;
  ASSERT_EQ(receipt.size(), 5u);
  EXPECT_TRUE(receipt[0].step_ns.has_value());
  for (size_t i = 1; i < receipt.size(); ++i) EXPECT_EQ(receipt[i].step_ns, std::nullopt) << i;
}

TEST_F(ReportOfParts, WorkersThatComeAndGoAreCounted) {
  const auto parts = change_;
  change_ = [&](std::vector<timeline::ProcessResult>* processes) {
    parts(processes);
    (*processes)[2].end_known = false;
    (*processes)[3].end_known = false;
    (*processes)[1].coverage.clear();
  };
  const std::string text = TextReport(Analyse(), {.sections = {"coverage"}});
  EXPECT_THAT(text,
              HasSubstr("3 loader workers of rank 1: 1 without a recorded call in the whole"));
  EXPECT_THAT(text, HasSubstr("3 loader workers of rank 1: 2 without a recorded call at the"));
}

// 6 events within a microsecond, and then it waits in a collective.
TEST_F(ReportOfParts, WhoStandsStillIsOnUntilTheWindowsEnd) {
  const auto change = [&](bool ended) {
    change_ = [ended](std::vector<timeline::ProcessResult>* processes) {
      timeline::ProcessResult& one = processes->front();
      one.end_known = false;
      one.cost = DurationEstimate{1'000'000, 900'000, 1'100'000};
      one.coverage.resize(1);
      one.coverage[0].end_ns = one.coverage[0].begin_ns + 1'000;
      if (ended) one.ended_ns = one.coverage[0].end_ns + 1'000'000;
    };
    return Analyse().receipt[1].processes[0];
  };
  EXPECT_NEAR(static_cast<double>(change(false).covered_ns), 200e6, 2e6);
  EXPECT_NEAR(static_cast<double>(change(false).share()->est_ppm), 5'000, 100);
  EXPECT_NEAR(static_cast<double>(change(true).covered_ns), 1'000, 10);
}

TEST_F(ReportOfParts, WhoEndedInTheWindowIsNamedWithWhen) {
  const auto parts = change_;
  change_ = [&](std::vector<timeline::ProcessResult>* processes) {
    parts(processes);
    for (timeline::ProcessResult& one : *processes) {
      one.coverage.back().end_ns -= 100'000'000;
      one.ended_ns = one.coverage.back().end_ns + 50'000'000;
    }
  };
  const analysis::Report report = Analyse();
  const std::string text = TextReport(report, {.width = 200, .sections = {"coverage"}});
  EXPECT_THAT(text, HasSubstr("python worker.py (pid 10): ended between +100 ms and +150 ms\n"));
  EXPECT_THAT(text, HasSubstr("torchrun (pid 903): ended between +40.0 ms and +90.0 ms\n"));
  const std::string screen = TextReport(report, {.width = 300});
  EXPECT_THAT(screen, HasSubstr("(pid 903) ended between +40.0 ms and +90.0 ms"));
  EXPECT_THAT(screen, Not(HasSubstr("pid 901"))) << "loader workers come and go";
  const auto json = nlohmann::json::parse(ReportJson(report));
  const auto& end = json["nodes"][1]["processes"][0]["ended"];
  EXPECT_NEAR(end["after_ns"].get<double>(), 100e6, 1e6);
  EXPECT_NEAR(end["before_ns"].get<double>(), 150e6, 1e6);
  EXPECT_TRUE(json["nodes"][0]["processes"][0]["ended"].is_null());
}

// A child that was gone before anybody saw what it is.
TEST_F(ReportOfParts, ChildrenOfOneNameAreOneRow) {
  const auto parts = change_;
  change_ = [&](std::vector<timeline::ProcessResult>* processes) {
    parts(processes);
    for (size_t i = 1; i <= 3; ++i) {
      (*processes)[i].part = "child";
      (*processes)[i].name =
          i == 3 ? "worker-0 · child of rank 1 · ffmpeg" : "worker-0 · child of rank 1 · python";
      (*processes)[i].coverage.clear();
    }
  };
  const analysis::Report report = Analyse();
  const std::string text = TextReport(report, {.sections = {"coverage"}});
  EXPECT_THAT(text, HasSubstr("worker-0 · 2 children of rank 1 · python  "));
  EXPECT_THAT(text, HasSubstr("worker-0 · child of rank 1 · ffmpeg  "));
  EXPECT_THAT(text, HasSubstr("2 children of rank 1 · python: 2 without a recorded call"));
  const std::string screen = TextReport(report, {.width = 300});
  EXPECT_THAT(screen, HasSubstr("6 processes (1 rank, 1 launcher, 3 children, 1 other); but for "));
  EXPECT_THAT(screen, HasSubstr("inside one call): worker-0 · 2 children of rank 1, "
                                "worker-0 · child of rank 1\n"));
}

TEST_F(ReportOfParts, JsonHasAllProcesses) {
  const auto json = nlohmann::json::parse(ReportJson(Analyse()));
  std::vector<std::string> parts;
  for (const auto& process : json["nodes"][1]["processes"]) parts.push_back(process["part"]);
  EXPECT_THAT(parts, ::testing::ElementsAre("rank", "loader worker", "loader worker",
                                            "loader worker", "launcher"));
  EXPECT_EQ(json["receipt"][1]["processes"].size(), 5u);
}

// Taken so long after it was sent, when the master's window begins.
timeline::MessageStream MessageAfter(int64_t flight_ns) {
  using timeline::testing::kJobZeroNs;
  timeline::MessageStream stream;
  stream.receive_node = 1;
  stream.sender_clock = {0};
  stream.receiver_clock = {1};
  timeline::Message message{.bytes = 10};
  message.sent_ns = kJobZeroNs + 1'000'000;
  message.first_ns = message.last_ns =
      message.sent_ns + timeline::testing::kJobOffsetNs + flight_ns;
  message.sent = {1'000'000};
  message.first = message.last = {1'000'000 + flight_ns};
  stream.messages = {message};
  return stream;
}

TEST_F(ReportTest, NothingIsProvenByBoundsThatAMessageContradicts) {
  streams_ = {MessageAfter(500'000)};
  const analysis::Report sound = Analyse();
  EXPECT_EQ(sound.messages.contradictions, 0u);
  EXPECT_TRUE(sound.nodes[1].start_skew.has_value());
  EXPECT_THAT(TextReport(sound, {}), HasSubstr("proven to be true"));
  EXPECT_TRUE(nlohmann::json::parse(ReportJson(sound))["clock_bounds_hold"].get<bool>());

  streams_ = {MessageAfter(-500'000)};
  const analysis::Report report = Analyse();
  EXPECT_EQ(report.messages.contradictions, 1u);
  EXPECT_FALSE(report.nodes[1].start_skew.has_value());
  EXPECT_TRUE(sound.nodes[1].bound_ns.has_value());
  EXPECT_FALSE(report.nodes[1].bound_ns.has_value());
  EXPECT_FALSE(report.messages.rows[0].flight->bounded());
  for (const analysis::GroupSeries& groups : report.groups) EXPECT_EQ(groups.inside, 0u);
  EXPECT_THAT(
      TextReport(report, {.width = 300}),
      AllOf(HasSubstr("Clocks        not known to any bound: what was recorded contradicts"),
            Not(HasSubstr("proven to be true"))));
  EXPECT_FALSE(nlohmann::json::parse(ReportJson(report))["clock_bounds_hold"].get<bool>());
}

}  // namespace
}  // namespace syncline::report
