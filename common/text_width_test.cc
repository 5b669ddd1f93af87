// SPDX-License-Identifier: Apache-2.0
#include "common/text_width.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncline {
namespace {

using Words = std::vector<std::string>;

TEST(TextWidthTest, CharactersCountNotBytes) {
  EXPECT_EQ(DisplayWidth(""), 0u);
  EXPECT_EQ(DisplayWidth("\u00e9\u2603 \U0001f600"), 4u);
}

TEST(TextWidthTest, LinesBreakBetweenWords) {
  const Words words = {"one", "two", "\u00e9\u00e9\u00e9", "12 ms"};
  EXPECT_EQ(Wrap("LATE  ", words, {.width = 13, .hanging = 2}),
            "LATE  one two\n  \u00e9\u00e9\u00e9 12 ms\n");
  EXPECT_EQ(Wrap("LATE  ", words, {.width = 12, .hanging = 2}),
            "LATE  one\n  two \u00e9\u00e9\u00e9\n  12 ms\n");
  EXPECT_EQ(Wrap("LATE", {}, {.width = 12, .hanging = 2}), "LATE\n");
}

TEST(TextWidthTest, AWordThatIsTooWideSticksOutOrIsBroken) {
  const Words words = {"a", "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", "b"};
  EXPECT_EQ(Wrap("", words, {.width = 5, .hanging = 2}),
            "a\n  \u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\n  b\n");
  EXPECT_EQ(Wrap("", words, {.width = 5, .hanging = 2, .break_words = true}),
            "a\n  \u00e9\u00e9\u00e9\n  \u00e9\u00e9\u00e9\n  \u00e9\u00e9\n  b\n");
}

}  // namespace
}  // namespace syncline
