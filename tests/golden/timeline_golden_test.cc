// SPDX-License-Identifier: Apache-2.0
// Golden timelines: tests/golden/timeline/*.txt hold a scenario and, after "--- timeline", what the
// builder makes of it. SYNCLINE_UPDATE_GOLDEN=1 writes that part anew; read the difference before
// you commit it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/files.h"
#include "timeline/testing/dump_sink.h"
#include "timeline/testing/scenario.h"

namespace syncline::timeline {
namespace {

constexpr char kMark[] = "--- timeline\n";

std::vector<std::filesystem::path> Cases() {
  std::vector<std::filesystem::path> cases;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/timeline")) {
    if (entry.path().extension() == ".txt") cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

class TimelineGolden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(TimelineGolden, Matches) {
  const auto text = ReadFile(GetParam());
  ASSERT_TRUE(text.ok()) << text.status();
  const size_t mark = std::min(text->find(kMark), text->size());
  auto scenario = testing::ParseScenario(std::string_view(*text).substr(0, mark));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  testing::DumpSink sink;
  TimelineSink* const sinks[] = {&sink};
  const auto result = BuildTimeline(scenario->nodes, scenario->options, sinks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(sink.breaches(), ::testing::IsEmpty());
  std::string actual = sink.text();
  for (const NodeResult& node : result->nodes) {
    actual += "result " + node.name + " events=" + std::to_string(node.events) +
              " recovered=" + std::to_string(node.recovered);
    if (node.ambiguous_relations > 0) {
      actual += " ambiguous relations=" + std::to_string(node.ambiguous_relations);
    }
    if (node.crowded_relations > 0) {
      actual += " crowded relations=" + std::to_string(node.crowded_relations);
    }
    actual += "\n";
    for (const LossTotal& loss : node.losses) {
      actual += "loss [" + std::to_string(loss.begin.ns) + ", " + std::to_string(loss.end.ns) +
                "] " + LossReasonName(loss.reason) + " of " + loss.source +
                ", intervals=" + std::to_string(loss.intervals) +
                (loss.count.has_value() ? ", count=" + std::to_string(*loss.count) : "") + ": " +
                loss.detail + "\n";
    }
  }
  const std::string expected = mark < text->size() ? text->substr(mark + sizeof(kMark) - 1) : "";
  if (std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr && actual != expected) {
    ASSERT_TRUE(WriteFileAtomically(GetParam(), text->substr(0, mark) + kMark + actual).ok());
    FAIL() << "updated " << GetParam();
  }
  EXPECT_EQ(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, TimelineGolden, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace syncline::timeline
