// SPDX-License-Identifier: Apache-2.0
#include "common/event_filter.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace syncline {
namespace {

TEST(EventPatternsTest, StarsStandForAnyCharacters) {
  // Every pattern and name of up to five of these characters, against a matcher of somebody else's.
  std::vector<std::string> words = {""};
  for (size_t i = 0; words[i].size() < 5; ++i) {
    for (const char c : {'a', 'b', '*'}) words.push_back(words[i] + c);
  }
  size_t matches = 0;
  for (const std::string& pattern : words) {
    const std::regex same(std::regex_replace(pattern, std::regex("\\*"), "[^]*"));
    for (const std::string& name : words) {
      if (name.find('*') != std::string::npos) continue;
      ASSERT_EQ(MatchesPattern(pattern, name), std::regex_match(name, same))
          << pattern << " " << name;
      matches += MatchesPattern(pattern, name) ? 1 : 0;
    }
  }
  EXPECT_GT(matches, words.size());
}

TEST(EventPatternsTest, AnyOfThemAndNoneIsAll) {
  const EventPatterns some({"syncline_itt:*", "*:malloc"});
  EXPECT_TRUE(some.Matches("syncline_itt:task_end"));
  EXPECT_TRUE(some.Matches("lttng_ust_libc:malloc"));
  EXPECT_FALSE(some.Matches("lttng_ust_libc:mallocs"));
  EXPECT_FALSE(some.MatchesAll());
  EXPECT_TRUE(EventPatterns().Matches("whatever"));
}

TEST(EventPatternsTest, ManyStarsTakeNoLonger) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(100'000, 'a')));
}

}  // namespace
}  // namespace syncline
