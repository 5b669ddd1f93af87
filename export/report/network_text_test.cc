// SPDX-License-Identifier: Apache-2.0
#include "export/report/network_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/report/text_report.h"

namespace syncline::report {
namespace {

using analysis::NetworkFinding;
using analysis::NetworkLink;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::ordered_json;

NetworkLink Link(int32_t from, int32_t to, int64_t retransmitted) {
  NetworkLink link;
  link.from = {"n" + std::to_string(from), "python", from};
  link.to = {"n" + std::to_string(to), "python", to};
  link.connections = 2;
  link.sums = {.sent_bytes = 12'345'678,
               .retransmitted_bytes = retransmitted * 1448,
               .sent_segments = 10'000,
               .retransmitted_segments = retransmitted,
               .duplicates = 3,
               .busy_us = 1'000'000,
               .window_full_us = 250'000,
               .buffer_short_us = -1};
  link.min_rtt_us = 41;
  link.median_rtt_us = 1234;
  return link;
}

analysis::Report ReportOf(std::vector<NetworkLink> links) {
  analysis::Report report;
  report.from_recording = true;
  report.network = std::move(links);
  return report;
}

TEST(NetworkText, TheTableSaysWhatEachSentAndWhatItWaitedFor) {
  NetworkLink stranger = Link(1, 0, 0);
  stranger.to.reset();
  stranger.remote = "192.168.0.9";
  const std::string text =
      TextReport(ReportOf({Link(0, 1, 412), stranger}), {.width = 120, .sections = {"network"}});
  EXPECT_THAT(text, HasSubstr("rank 0 (n0)"));
  EXPECT_THAT(text, HasSubstr("12 345 678"));
  EXPECT_THAT(text, HasSubstr("4.1 %"));
  EXPECT_THAT(text, HasSubstr("0.041 / 1.23"));
  EXPECT_THAT(text, HasSubstr("25.0 %"));
  EXPECT_THAT(text, HasSubstr("192.168.0.9"));
  EXPECT_THAT(text, HasSubstr("4.1 % of the segments from rank 0 (n0) to rank 1 (n1) were"));
  EXPECT_THAT(text, HasSubstr("(412 of 10 000), 3"));
}

TEST(NetworkText, TheShortReportHasFindingsAlone) {
  EXPECT_THAT(TextReport(ReportOf({Link(0, 1, 0)}), {.width = 100}), Not(HasSubstr("Network")));
  EXPECT_THAT(TextReport(ReportOf({Link(0, 1, 500)}), {.width = 100}),
              AllOf(HasSubstr("Network"), HasSubstr("5.0 % of the segments")));
}

TEST(NetworkText, OfManyFindingsTheFirstAreNamed) {
  std::vector<NetworkLink> links;
  for (int rank = 1; rank <= 5; ++rank) links.push_back(Link(0, rank, 100 * rank));
  const auto sentences = NetworkSentences(analysis::FindingsOf(links));
  ASSERT_THAT(sentences, SizeIs(3));
  EXPECT_THAT(sentences[0], HasSubstr("to rank 5"));
  EXPECT_THAT(sentences[2], HasSubstr("likewise 2 more, less so"));
}

TEST(NetworkText, ASmallShareIsNotRoundedAway) {
  NetworkLink link = Link(0, 1, 15);
  link.sums.sent_segments = 11'000;
  EXPECT_THAT(NetworkSentences(analysis::FindingsOf(std::vector{link}))[0],
              HasSubstr("0.14 % of the segments"));
}

TEST(NetworkText, AReceiverThatLackedRoomMayHaveDroppedThem) {
  NetworkLink link = Link(0, 1, 412);
  const auto sentence = [&] {
    return NetworkSentences(analysis::FindingsOf(std::vector{link}))[0];
  };
  EXPECT_THAT(sentence(),
              HasSubstr("3 of them in vain, as the receiver reported; the others were "
                        "probably lost on the way, or dropped by the receiver, which had no "
                        "room in 25.0 % of the time in which data was under way"));
  link.sums.window_full_us = 99'000;
  EXPECT_THAT(sentence(), HasSubstr("the others were probably lost on the way"));
  link.sums.duplicates = 0;
  EXPECT_THAT(sentence(), HasSubstr("10 000): they were probably lost on the way"));
}

TEST(NetworkText, JsonHasAllAndNullForWhatIsNotKnown) {
  Json json;
  NetworkInJson(ReportOf({Link(0, 1, 412)}), &json);
  const Json& link = json["network"]["links"][0];
  EXPECT_EQ(link["from"]["rank"], 0);
  EXPECT_EQ(link["to"]["node"], "n1");
  EXPECT_EQ(link["retransmitted_segments"], 412);
  EXPECT_EQ(link["window_full_us"], 250'000);
  EXPECT_EQ(link["buffer_short_us"], nullptr);
  EXPECT_EQ(json["network"]["findings"][0]["kind"], "retransmitted");
  NetworkInJson(ReportOf({}), &json);
  EXPECT_THAT(json["network"]["links"], IsEmpty());
}

}  // namespace
}  // namespace syncline::report
