// SPDX-License-Identifier: Apache-2.0
// The order of events against the obvious one: all of them, stably sorted.
#include "timeline/stream_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "timeline/testing/fake_trace.h"

namespace syncline::timeline {
namespace {

using Place = std::tuple<int64_t, uint32_t, size_t>;  // time, stream, number in the stream

struct Case {
  size_t streams = 1;
  size_t events = 0;  // per stream, at most
  size_t batch = 1;
  int64_t gap_ns_max = 10;  // 0: all at one time
  int64_t start_ns_max = 0;
  size_t batch_growth = 0;  // with every event
  size_t events_min = 0;    // per stream
};

void Check(const Case& one, bool stops) {
  SCOPED_TRACE(::testing::Message()
               << one.streams << " streams, " << one.events << " events, batch " << one.batch
               << ", gap " << one.gap_ns_max << (stops ? ", asked up to an instant" : ""));
  std::mt19937_64 random(one.streams * 31 + one.events);
  const auto below = [&random](int64_t bound) {
    return bound <= 0 ? 0 : static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  testing::FakeTrace trace(one.batch);
  trace.set_stops(stops);
  std::vector<Place> expected;
  for (uint32_t s = 0; s < one.streams; ++s) {
    testing::FakeStream* stream = trace.AddStream(std::to_string(s));
    int64_t time_ns = below(one.start_ns_max) - one.start_ns_max / 2;
    const auto count =
        std::max(static_cast<size_t>(below(static_cast<int64_t>(one.events) + 1)), one.events_min);
    for (size_t i = 0; i < count; ++i) {
      time_ns += below(one.gap_ns_max + 1);
      stream->events.push_back({time_ns, "e", {}});
      expected.emplace_back(time_ns - 7, s, i);
    }
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const Place& a, const Place& b) { return std::get<0>(a) < std::get<0>(b); });
  const auto placement = ShiftPlacement({}, -7);
  StreamMerger merger;
  for (uint32_t s = 0; s < one.streams; ++s) {
    merger.Add(trace.Open(s, kUnknownLo, kUnknownHi).value(), placement.get());
  }
  std::vector<Place> found;
  std::vector<size_t> seen(one.streams);
  for (;;) {
    const auto head = merger.Next();
    ASSERT_TRUE(head.ok());
    if (*head == nullptr) break;
    ASSERT_EQ((*head)->cursor, merger.cursor((*head)->source));
    ASSERT_EQ((*head)->record->time_ns - 7, (*head)->time.ns);
    found.emplace_back((*head)->time.ns, (*head)->source, seen[(*head)->source]++);
    if (one.batch_growth > 0) trace.set_batch_size(one.batch + found.size() * one.batch_growth);
  }
  ASSERT_EQ(found, expected);
}

void Check(const Case& one) {
  Check(one, false);
  Check(one, true);
}

TEST(StreamMergerTest, OrdersByTimeThenStreamThenPlace) {
  for (const size_t streams : {1, 2, 3, 17, 100}) {
    for (const size_t batch : {1, 2, 7, 1000}) {
      for (const int64_t gap_ns : {0, 1, 10, 1'000'000}) {
        Check({.streams = streams, .events = 60, .batch = batch, .gap_ns_max = gap_ns});
      }
    }
  }
}

TEST(StreamMergerTest, OrdersStreamsThatBeginAtDifferentTimes) {
  Check({.streams = 40, .events = 100, .batch = 16, .gap_ns_max = 1000, .start_ns_max = 50'000});
  Check(
      {.streams = 5, .events = 50, .batch = 4, .gap_ns_max = 1, .start_ns_max = int64_t{1} << 60});
}

TEST(StreamMergerTest, OrdersMoreEventsThanASlabHolds) {
  Check({.streams = 8, .events = 40'000, .batch = 40'000, .gap_ns_max = 100});
  Check({.streams = 2, .events = 50'000, .batch = 50'000, .gap_ns_max = 0});
}

// Of so many streams some run dry inside a slab, and what they have then comes late.
TEST(StreamMergerTest, OrdersWhatComesLate) {
  for (const size_t streams : {16, 64, 300}) {
    for (const size_t batch : {1, 5, 64}) {
      for (const int64_t gap_ns : {0, 3, 1000}) {
        Check({.streams = streams, .events = 400, .batch = batch, .gap_ns_max = gap_ns});
      }
    }
  }
  Check({.streams = 64, .events = 900, .batch = 30, .gap_ns_max = 100, .start_ns_max = 20'000});
}

TEST(StreamMergerTest, OrdersBatchesThatGrow) {
  for (const size_t streams : {1, 3, 40, 100}) {
    for (const int64_t gap_ns : {0, 5}) {
      Check({.streams = streams, .events = 300, .gap_ns_max = gap_ns, .batch_growth = 1});
    }
  }
}

TEST(StreamMergerTest, OrdersManyEventsOfOneInstant) {
  for (const int64_t gap_ns : {0, 1}) {
    Check({.streams = 4,
           .events = 100'000,
           .batch = 100'000,
           .gap_ns_max = gap_ns,
           .events_min = 80'000});
  }
}

TEST(StreamMergerTest, NothingIsNothing) {
  StreamMerger merger;
  EXPECT_EQ(merger.Next().value(), nullptr);
  Check({.streams = 3, .events = 0});
}

}  // namespace
}  // namespace syncline::timeline
