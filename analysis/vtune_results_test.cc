// SPDX-License-Identifier: Apache-2.0
#include "analysis/vtune_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncline::analysis {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr timeline::TrackId kOurs = 1;
constexpr timeline::TrackId kOthers = 2;

std::vector<VtuneResult> TwoResults() {
  std::vector<VtuneResult> results(2);
  results[0].process = {0, 9, 17, 5};
  results[0].path = "nodes/a/vtune/17/result";
  results[1].process = {0, 9, 18, 5};  // nothing was kept of it
  return results;
}

class Spans : public ::testing::Test {
 protected:
  Spans() : sink_(TwoResults()) {
    sink_.OnText(1, "step 1");
    sink_.OnText(2, "step 2");
    sink_.OnText(3, "matmul");
    AddThread(kOurs, 17, 171);
    AddThread(kOthers, 18, 181);
  }
  void AddThread(timeline::TrackId id, int32_t pid, int32_t tid) {
    timeline::Track track;
    track.id = id;
    track.kind = timeline::TrackKind::kThread;
    track.process = {0, 9, pid, 5};
    track.tid = tid;
    sink_.OnTrack(track);
  }
  timeline::Span Span(timeline::TrackId track, timeline::TextId name, int64_t begin, int64_t end) {
    timeline::Span span;
    span.track = track;
    span.name = name;
    span.begin = {begin};
    span.end = {end};
    return span;
  }

  VtuneSpanSink sink_;
};

TEST_F(Spans, AreTheLongestOfEachName) {
  sink_.OnSpanEnd(Span(kOurs, 1, 0, 10));
  sink_.OnSpanEnd(Span(kOurs, 2, 20, 50));
  sink_.OnSpanEnd(Span(kOurs, 3, 21, 25));
  sink_.OnSpanEnd(Span(kOthers, 3, 0, 1000));
  const std::vector<VtuneResult> results = sink_.Take();
  ASSERT_THAT(results[0].spans, SizeIs(2));
  EXPECT_EQ(results[0].spans[0].name, "step 2");
  EXPECT_EQ(results[0].spans[0].tid, 171);
  EXPECT_EQ(results[0].spans[0].begin.ns, 20);
  EXPECT_EQ(results[0].spans[0].end.ns, 50);
  EXPECT_EQ(results[0].spans[1].name, "matmul");
  EXPECT_THAT(results[1].spans, IsEmpty());
}

TEST_F(Spans, AreWhole) {
  timeline::Span cut = Span(kOurs, 1, 0, 1000);
  cut.clipped_end = true;
  sink_.OnSpanEnd(cut);
  timeline::Span hit = Span(kOurs, 1, 0, 900);
  hit.suspect = true;
  sink_.OnSpanEnd(hit);
  EXPECT_THAT(sink_.Take()[0].spans, IsEmpty());
}

TEST_F(Spans, AreFew) {
  for (timeline::TextId id = 4; id < 24; ++id) {
    sink_.OnText(id, std::string(1, static_cast<char>('a' + id)));
    sink_.OnSpanEnd(Span(kOurs, id, 0, 100 - id));
  }
  const std::vector<VtuneResult> results = sink_.Take();
  ASSERT_THAT(results[0].spans, SizeIs(5));
  EXPECT_EQ(results[0].spans[4].end.ns, 92);
}

}  // namespace
}  // namespace syncline::analysis
