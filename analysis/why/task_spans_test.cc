// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/task_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

namespace syncline::analysis::why {
namespace {

auto All(const TaskSpan& span) {
  return std::tuple(span.begin_ns, span.end_ns, span.name, span.category, span.shape, span.depth,
                    span.whole);
}

void ExpectSame(const std::vector<TaskSpan>& read, const std::vector<TaskSpan>& written) {
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(All(read[i]), All(written[i])) << i;
}

TEST(TaskSpans, GivesBackWhatWasAdded) {
  std::mt19937_64 random(11);
  const int64_t ends[] = {0, -1, 1, INT64_MIN, INT64_MAX, 1'000'000'000'000'000};
  std::vector<TaskSpan> written;
  TaskSpans spans;
  for (int i = 0; i < 3000; ++i) {
    TaskSpan span;
    const auto any = [&] {
      return i % 3 == 0 ? ends[random() % std::size(ends)]
                        : static_cast<int64_t>(random() >> (random() % 64));
    };
    span.begin_ns = any();
    span.end_ns = any();
    span.name = static_cast<NameId>(random() % (i % 7 == 0 ? UINT32_MAX : 3));
    span.category = static_cast<NameId>(random() % 3);
    span.shape = static_cast<NameId>(random() % 3);
    span.depth = static_cast<uint16_t>(random());
    span.whole = random() % 2 == 0;
    written.push_back(span);
    spans.push_back(span);
  }
  EXPECT_EQ(spans.size(), written.size());
  ExpectSame(spans.Unpack(), written);
  spans.Close();
  ExpectSame(spans.Unpack(), written);
  const TaskSpans copy = spans;
  spans = TaskSpans();
  ExpectSame(copy.Unpack(), written);
  EXPECT_TRUE(spans.empty());
  EXPECT_EQ(spans.begin(), spans.end());
}

TEST(TaskSpans, CanBeAddedToWhenTheyWereClosed) {
  std::vector<TaskSpan> written(3);
  for (size_t i = 0; i < written.size(); ++i) written[i].begin_ns = static_cast<int64_t>(10 * i);
  TaskSpans spans(written);
  spans.Close();
  spans.push_back(written[1]);
  written.push_back(written[1]);
  ExpectSame(spans.Unpack(), written);
}

TEST(TaskSpans, HaveTheirShapesMoved) {
  std::vector<TaskSpan> written(4);
  for (size_t i = 0; i < written.size(); ++i) written[i].shape = static_cast<NameId>(i % 3);
  TaskSpans spans(written);
  spans.MoveShapes(100);
  for (TaskSpan& span : written) span.shape += span.shape == 0 ? 0 : 100;
  spans.push_back(written[1]);
  written.push_back(written[1]);
  ExpectSame(spans.Unpack(), written);
}

TEST(TaskSpans, AreChangedAsAWhole) {
  std::vector<TaskSpan> written(5);
  for (size_t i = 0; i < written.size(); ++i) written[i].name = static_cast<NameId>(i);
  TaskSpans spans(written);
  spans.Edit([](std::vector<TaskSpan>* all) {
    std::erase_if(*all, [](const TaskSpan& span) { return span.name % 2 == 1; });
  });
  std::vector<NameId> names;
  for (const TaskSpan& span : spans) names.push_back(span.name);
  EXPECT_THAT(names, testing::ElementsAre(0, 2, 4));
}

}  // namespace
}  // namespace syncline::analysis::why
