// SPDX-License-Identifier: Apache-2.0
// The analysis of a job of two nodes whose truth is known.
#ifndef SYNCLINE_EXPORT_REPORT_REPORT_FIXTURE_H_
#define SYNCLINE_EXPORT_REPORT_REPORT_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analyse.h"
#include "timeline/testing/scenario.h"
#include "timeline/testing/two_node_job.h"

namespace syncline::report {

inline constexpr int64_t kUnixNs = 1'700'000'000'000'000'000;

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() : model_(timeline::testing::TwoNodeModel()) {
    auto scenario = timeline::testing::ParseScenario(timeline::testing::TwoNodeJob());
    EXPECT_TRUE(scenario.ok()) << scenario.status();
    scenario_ = *std::move(scenario);
    for (uint32_t i = 0; i < 2; ++i) {
      placements_.push_back(timeline::ModelPlacement(model_, {i}));
      scenario_.nodes[i].placement = placements_.back().get();
      analysis::NodeFacts facts;
      facts.role = i == 0 ? "master" : "worker";
      facts.state = "complete";
      facts.placement = placements_.back().get();
      const int64_t zero_ns =
          timeline::testing::kJobZeroNs + (i == 0 ? 0 : timeline::testing::kJobOffsetNs);
      facts.gate_opened = NodeTime{{i, ClockKind::kRaw}, zero_ns + 20'000};
      facts.gate_closed = NodeTime{{i, ClockKind::kRaw}, zero_ns + 200'005'000};
      facts.wall_offset_ns = kUnixNs - zero_ns;
      facts_.push_back(facts);
    }
  }

  analysis::Report Analyse(std::optional<std::string> step = {}) {
    analysis::SummarySink summary(std::move(step));
    timeline::TimelineSink* const sinks[] = {&summary};
    auto results = timeline::BuildTimeline(scenario_.nodes, scenario_.options, sinks);
    EXPECT_TRUE(results.ok()) << results.status();
    if (change_) change_(&results->nodes[1].processes);
    if (!streams_.empty()) results->nodes[1].message_streams = streams_;
    analysis::AnalyseInput input;
    input.nodes = results->nodes;
    input.collectives = &results->collectives;
    input.facts = facts_;
    input.model = &model_;
    std::optional<clocksync::ClockModel> likely = model_.AssumingAsymmetry(asymmetry_percent_);
    EXPECT_TRUE(likely.has_value());
    if (asymmetry_percent_ < clocksync::kAsymmetryPercentAny) input.likely = &*likely;
    input.assumption.asymmetry_percent = asymmetry_percent_;
    input.reference = 0;
    input.window = scenario_.options.window;
    input.start_requested = NodeTime{{0, ClockKind::kRaw}, timeline::testing::kJobZeroNs};
    input.stop_requested =
        NodeTime{{0, ClockKind::kRaw}, timeline::testing::kJobZeroNs + 200'000'000};
    analysis::Report report = analysis::Analyse(input, summary);
    report.from_recording = true;
    report.recording_id = "20261121-093012-7f3a";
    return report;
  }

  clocksync::ClockModel model_;
  timeline::testing::Scenario scenario_;
  std::vector<std::unique_ptr<timeline::Placement>> placements_;
  std::vector<analysis::NodeFacts> facts_;
  std::function<void(std::vector<timeline::ProcessResult>* of_worker)> change_;
  std::vector<timeline::MessageStream> streams_;  // that the worker received
  int64_t asymmetry_percent_ = clocksync::kAsymmetryPercentAny;
};

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_REPORT_FIXTURE_H_
