// SPDX-License-Identifier: Apache-2.0
// Where ranks stood: counted by hand, and in made-up jobs in which it is known where they were.
#include "analysis/why/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/why/explain.h"
#include "analysis/why/task_names.h"
#include "analysis/why/testing/fake_job.h"
#include "analysis/why/testing/job_text.h"

namespace syncline::analysis::why {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;
constexpr int32_t kTid = 100;  // of FakeJob's drivers

TEST(StandsIn, TakesTheNameApart) {
  const auto own = StandsInOf("syncline", "python 7: CB.f (jobs/a.py:3)");
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->tid, 7);
  EXPECT_THAT(own->own, ElementsAre("CB.f (jobs/a.py:3)"));
  EXPECT_EQ(own->innermost, "CB.f (jobs/a.py:3)");
  const auto calls = StandsInOf("syncline", "python 7: <module> (a.py:3) > wait (threading.py:9)");
  ASSERT_TRUE(calls.has_value());
  EXPECT_THAT(calls->own, ElementsAre("<module> (a.py:3)"));
  EXPECT_EQ(calls->innermost, "wait (threading.py:9)");
  const auto none = StandsInOf("syncline", "python 7: - > wait (threading.py:9)");
  ASSERT_TRUE(none.has_value());
  EXPECT_THAT(none->own, IsEmpty());
  EXPECT_EQ(none->innermost, "wait (threading.py:9)");
  const auto callers = StandsInOf(
      "syncline", "python 7: <lambda> (a.py:3) < g (a.py:5) < main (b.py:7) > w (c.py:1)");
  ASSERT_TRUE(callers.has_value());
  EXPECT_THAT(callers->own, ElementsAre("<lambda> (a.py:3)", "g (a.py:5)", "main (b.py:7)"));
  EXPECT_EQ(callers->innermost, "w (c.py:1)");
  const auto kept = StandsInOf("syncline", "python 7: keeps the lock");
  ASSERT_TRUE(kept.has_value());
  EXPECT_TRUE(kept->keeps_lock);
  EXPECT_EQ(kept->tid, 7);
}

TEST(StandsIn, OtherTasksSayNothing) {
  for (const char* name : {"accelerator initialised: cuda", "python", "python 7",
                           "python x: f (a:1)", "python 99999999999: f (a:1)", ""}) {
    EXPECT_FALSE(StandsInOf("syncline", name).has_value()) << name;
  }
  EXPECT_FALSE(StandsInOf("mine", "python 7: f (a.py:3)").has_value());
}

Piece PieceOf(int64_t begin_ns, int64_t end_ns, Part part, int32_t step) {
  Piece piece;
  piece.begin_ns = begin_ns;
  piece.end_ns = end_ns;
  piece.part = part;
  piece.step = step;
  return piece;
}

TEST(CountPlaces, TakesTheDriverInHostCodeOfJudgedSteps) {
  const std::vector<Piece> pieces = {
      PieceOf(0, 10, Part::kHostCode, -1), PieceOf(10, 20, Part::kHostCode, 0),
      PieceOf(20, 30, Part::kCompute, 0), PieceOf(30, 40, Part::kHostCode, 1)};
  RankInput rank;
  rank.places = {{5, 1, 0}, {10, 1, 1}, {19, 2, 2}, {25, 1, 3}, {39, 1, 4}, {40, 1, 5}};
  const PlaceCounts counts = CountPlaces(rank, 1, pieces);
  EXPECT_EQ(counts.samples, 3);
  ASSERT_EQ(counts.host.size(), 2);
  EXPECT_EQ(counts.host[0].step, 0);
  EXPECT_EQ(counts.host[0].name, 1);
  EXPECT_EQ(counts.host[1].step, 1);
  EXPECT_EQ(counts.host[1].name, 4);
  EXPECT_THAT(counts.others, ElementsAre(3));
}

// Two ranks or more that were looked at 100 times each, unless it is said otherwise: samples in
// host code by what is said of them, one a step.
class Looks {
 public:
  using Counts = std::vector<std::pair<const char*, size_t>>;

  Looks& Rank(const Counts& counts, uint64_t samples = 100) {
    PlaceCounts& rank = ranks_.emplace_back();
    rank.samples = samples;
    for (const auto& [text, count] : counts) {
      names_.push_back(std::string("python 1: ") + text);
      for (size_t i = 0; i < count; ++i) {
        rank.host.push_back({rank.host.size(), static_cast<NameId>(names_.size() - 1)});
      }
    }
    return *this;
  }
  std::optional<StoodIn> Of(size_t rank, double least = 0) const {
    return StoodPlaces(ranks_, names_).Of(rank, least);
  }
  std::optional<StoodIn> OfAll() const { return MostStoodIn(ranks_, names_); }
  std::vector<PlaceCounts>& ranks() { return ranks_; }

 private:
  std::vector<std::string> names_ = {""};
  std::vector<PlaceCounts> ranks_;
};

std::string PlaceOf(const std::optional<StoodIn>& stood) {
  return stood.has_value() ? stood->place : "nowhere";
}

TEST(StoodPlaces, NamesTheFunctionAndWhatRunsInIt) {
  const Looks looks =
      Looks()
          .Rank({{"g (a.py:9)", 10}})
          .Rank({{"f (a.py:3)", 7}, {"f (a.py:4) > wait (b.py:5)", 13}, {"g (a.py:9)", 9}});
  const auto stood = looks.Of(1);
  ASSERT_TRUE(stood.has_value());
  EXPECT_EQ(stood->place, "f (a.py)");
  EXPECT_EQ(stood->within, "wait (b.py)");
  EXPECT_EQ(stood->samples, 20);
  EXPECT_EQ(stood->host_samples, 29);
  EXPECT_EQ(stood->others, 0);
  EXPECT_EQ(stood->others_host, 10);
  EXPECT_FALSE(looks.Of(0).has_value());
}

TEST(StoodPlaces, NamesTheLineThatMakesTheDifference) {
  const Looks looks = Looks()
                          .Rank({{"train (a.py:6) < <module> (a.py:20)", 50}})
                          .Rank({{"train (a.py:6) < <module> (a.py:20)", 46},
                                 {"train (a.py:9) < <module> (a.py:20)", 31}});
  const auto stood = looks.Of(1);
  ASSERT_TRUE(stood.has_value());
  EXPECT_EQ(stood->place, "train (a.py:9)");
  EXPECT_EQ(stood->samples, 31);
  EXPECT_EQ(stood->others, 0);
}

TEST(StoodPlaces, NamesTheCallerThatTheOthersDoNotHave) {
  const char kShared[] = "retry (a.py:8) < log (a.py:30) < main (a.py:40)";
  const char kOwn[] = "retry (a.py:8) < save (a.py:12) < main (a.py:42)";
  const Looks looks = Looks().Rank({{kShared, 20}}).Rank({{kShared, 20}, {kOwn, 52}});
  EXPECT_EQ(PlaceOf(looks.Of(1)), "save (a.py:12)");
  EXPECT_EQ(looks.Of(1)->within, "retry (a.py)");
}

TEST(StoodPlaces, TheTrainingItselfIsNoPlace) {
  Looks looks = Looks()
                    .Rank({{"train (a.py:9)", 5}, {"- > f (c.py:1)", 2}})
                    .Rank({{"step (a.py:5) < train (a.py:20)", 13}, {"train (a.py:9)", 15}});
  EXPECT_EQ(PlaceOf(looks.Of(1)), "train (a.py)");
  // All that ranks compute is called by it, in the same line.
  for (PlaceCounts& rank : looks.ranks()) rank.others.assign(80, 1);
  EXPECT_EQ(PlaceOf(looks.Of(1)), "step (a.py:5)");
}

// As in a real job: by chance what calls it has a little more.
TEST(StoodPlaces, NamesAFunctionOfTheRanksAloneBeforeWhatCallsIt) {
  const Looks looks =
      Looks()
          .Rank({{"train (a.py:9)", 3}, {"keeps the lock", 2}, {"- > f (c.py:1)", 1}})
          .Rank({{"step (a.py:5) < train (a.py:20)", 23},
                 {"train (a.py:9)", 11},
                 {"keeps the lock", 2}});
  EXPECT_EQ(PlaceOf(looks.Of(1)), "step (a.py:5)");
}

TEST(StoodPlaces, NamesTheCallerOfSeveral) {
  const Looks looks = Looks()
                          .Rank({{"main (a.py:40)", 5}})
                          .Rank({{"a (a.py:1) < many (a.py:5) < main (a.py:40)", 20},
                                 {"b (a.py:2) < many (a.py:6) < main (a.py:40)", 19},
                                 {"c (a.py:3) < many (a.py:7) < main (a.py:40)", 19}});
  const auto stood = looks.Of(1);
  EXPECT_EQ(PlaceOf(stood), "many (a.py)");
  EXPECT_EQ(stood->samples, 58);
  EXPECT_TRUE(stood->within.empty());
}

TEST(StoodPlaces, OfPlacesThatAreAsCertainTheInnermostIsNamed) {
  const char kText[] = "distance (a.py:1) < metric (a.py:5) < main (a.py:40)";
  const Looks looks = Looks().Rank({{"main (a.py:30)", 5}}).Rank({{kText, 40}});
  EXPECT_EQ(PlaceOf(looks.Of(1)), "distance (a.py:1)");
}

TEST(StoodPlaces, NamesNothingWhereAllOfHostCodeTakesLonger) {
  const Looks looks =
      Looks()
          .Rank({{"f (a.py:1) < main (a.py:9)", 15}, {"g (a.py:2) < main (a.py:10)", 15}})
          .Rank({{"f (a.py:1) < main (a.py:9)", 45}, {"g (a.py:2) < main (a.py:10)", 45}});
  EXPECT_EQ(PlaceOf(looks.Of(1)), "nowhere");
}

TEST(StoodPlaces, ComparesWithTheMedianOfTheOthers) {
  const Looks looks = Looks()
                          .Rank({{"f (a.py:1)", 10}, {"g (a.py:2)", 20}})
                          .Rank({{"f (a.py:1)", 12}, {"g (a.py:2)", 20}})
                          .Rank({{"f (a.py:1)", 60}, {"g (a.py:2)", 20}})
                          .Rank({{"f (a.py:1)", 11}, {"g (a.py:2)", 20}});
  EXPECT_EQ(PlaceOf(looks.Of(2)), "f (a.py:1)");
  EXPECT_EQ(looks.Of(2)->others, 11);
}

TEST(StoodPlaces, NamesNothingThatChanceMayMake) {
  EXPECT_EQ(PlaceOf(Looks().Rank({{"f (a.py:1)", 10}}).Rank({{"f (a.py:1)", 22}}).Of(1)),
            "nowhere");
  Looks once = Looks().Rank({}).Rank({{"f (a.py:1)", 50}});
  EXPECT_EQ(PlaceOf(once.Of(1)), "f (a.py:1)");
  for (HostSample& sample : once.ranks()[1].host) sample.step = 4;  // one long pause
  EXPECT_EQ(PlaceOf(once.Of(1)), "nowhere");
}

TEST(StoodPlaces, NamesNothingThatExplainsTooLittle) {
  const Looks looks = Looks().Rank({}).Rank({{"f (a.py:1)", 20}});
  EXPECT_TRUE(looks.Of(1, 0.19).has_value());
  EXPECT_FALSE(looks.Of(1, 0.21).has_value());
}

TEST(StoodPlaces, NamesNothingWhereOthersWereLookedAtTooRarely) {
  const Looks::Counts own = {{"f (a.py:1)", 50}};
  EXPECT_FALSE(Looks().Rank({}, 60).Rank(own).Of(1).has_value());
  EXPECT_TRUE(Looks().Rank({}).Rank(own).Rank({}, 0).Of(1).has_value());
  EXPECT_FALSE(Looks().Rank({}).Rank(own).Rank({}, 0).Rank({}, 0).Of(1).has_value());
}

TEST(StoodPlaces, CountsAsIfRanksHadAsManySamples) {
  const Looks looks = Looks().Rank({{"f (a.py:1)", 410}}, 456).Rank({{"f (a.py:1)", 540}}, 600);
  EXPECT_EQ(PlaceOf(looks.Of(1)), "nowhere");
}

TEST(StoodPlaces, WhatOthersDoNotTellCountsAsIfItWereThere) {
  for (const char* untold : {"keeps the lock", "other places"}) {
    const Looks looks =
        Looks().Rank({{"f (a.py:1)", 44}, {untold, 100}}).Rank({{"f (a.py:1)", 144}});
    EXPECT_EQ(PlaceOf(looks.Of(1)), "nowhere");
  }
}

TEST(StoodPlaces, LeavesOutWhatIsNoPlace) {
  EXPECT_EQ(PlaceOf(Looks().Rank({}).Rank({{"other places", 50}}).Of(1)), "nowhere");
  EXPECT_EQ(PlaceOf(Looks().Rank({}).Rank({{"- > h (c.py:1)", 50}}).Of(1)), "h (c.py:1)");
}

TEST(StoodPlaces, SaysThatTheLockIsKeptWhereNoPlaceIsKnown) {
  const Looks looks =
      Looks().Rank({{"keeps the lock", 3}}).Rank({{"f (a.py:1)", 4}, {"keeps the lock", 40}});
  const auto kept = looks.Of(1);
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->place, "");
  EXPECT_EQ(kept->samples, 40);
  EXPECT_EQ(kept->host_samples, 44);
  EXPECT_EQ(kept->others, 3);
  EXPECT_TRUE(kept->kept_more);
  const auto both = Looks().Rank({}).Rank({{"f (a.py:1)", 30}, {"keeps the lock", 40}}).Of(1);
  EXPECT_EQ(PlaceOf(both), "f (a.py:1)");
  EXPECT_EQ(both->samples, 30);
  EXPECT_EQ(both->kept_samples, 40);
  EXPECT_TRUE(both->kept_more);
}

TEST(MostStoodIn, IsOfAllRanksTogether) {
  const char kText[] = "f (a.py:3) < main (a.py:40)";
  const auto stood = Looks().Rank({{kText, 10}, {"g (a.py:9)", 2}}).Rank({{kText, 9}}).OfAll();
  ASSERT_TRUE(stood.has_value());
  EXPECT_EQ(stood->place, "f (a.py:3)");
  EXPECT_EQ(stood->samples, 19);
  EXPECT_EQ(stood->host_samples, 21);
  EXPECT_TRUE(stood->within.empty());
  EXPECT_FALSE(Looks().Rank({{kText, 10}}).Rank({{kText, 9}}).OfAll().has_value());
  EXPECT_FALSE(Looks().Rank({{"keeps the lock", 40}}).OfAll().has_value());
}

TEST(MostStoodIn, IsOfMostOfThem) {
  EXPECT_FALSE(Looks().Rank({{"f (a.py:3)", 40}}).Rank({{"g (a.py:9)", 40}}).OfAll().has_value());
  const Looks three = Looks()
                          .Rank({{"f (a.py:3)", 30}, {"g (a.py:9)", 10}})
                          .Rank({{"f (a.py:3)", 30}})
                          .Rank({{"g (a.py:9)", 40}});
  EXPECT_EQ(PlaceOf(three.OfAll()), "f (a.py:3)");
}

// A made-up job whose ranks are looked at as the hook does it.
class SampledJob {
 public:
  explicit SampledJob(FakeJobOptions options, uint64_t seed = 1) : job_(std::move(options)) {
    std::mt19937_64 random(seed);
    JobInput& input = job_.input();
    const NameId own = Name("python 100: CB.slow (jobs/a.py:3) > sleep (b.py:1)");
    const NameId other = Name("python 100: train (jobs/a.py:9)");
    for (size_t rank = 0; rank < input.ranks.size(); ++rank) {
      RankInput& of_rank = input.ranks[rank];
      const std::vector<OwnInterval>& runs = job_.own_code(rank);
      int64_t at_ns = of_rank.window.begin_ns;
      for (;;) {
        at_ns += 50 * kMs + static_cast<int64_t>(random() % (100 * kMs));
        if (at_ns >= of_rank.window.end_ns) break;
        const bool is_own = std::any_of(runs.begin(), runs.end(), [&](const OwnInterval& one) {
          return one.begin_ns <= at_ns && at_ns < one.end_ns;
        });
        of_rank.places.push_back({at_ns, kTid, is_own ? own : other});
      }
    }
  }
  JobInput& input() { return job_.input(); }
  Answer Explained() { return Explain(job_.input()); }

 private:
  NameId Name(const char* text) {
    job_.input().names.emplace_back(text);
    return static_cast<NameId>(job_.input().names.size() - 1);
  }
  FakeJob job_;
};

TEST(Places, OfALateRankWhoseOwnCodeTakesLonger) {
  for (const size_t culprit : {0, 1, 2}) {
    SampledJob job({.ranks = 3, .steps = 200, .trouble = {{culprit, {.host_ns = 20 * kMs}}}});
    const Answer answer = job.Explained();
    ASSERT_EQ(answer.verdict, Verdict::kLateCauseUnknown);
    const RankFinding& finding = answer.findings[0];
    EXPECT_EQ(finding.index, culprit);
    ASSERT_TRUE(finding.stood.has_value());
    EXPECT_EQ(finding.stood->place, "CB.slow (jobs/a.py:3)");
    EXPECT_EQ(finding.stood->within, "sleep (b.py)");
    EXPECT_LE(finding.stood->others, 2);
    EXPECT_EQ(finding.stood->host_samples, job.Explained().findings[0].stood->host_samples);
    const auto read = ReadJob(WriteJob(job.input()));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Explain(read->input).findings[0].stood->samples, finding.stood->samples);
  }
}

// The places are the same; the reason is another one.
TEST(Places, OfARankThatIsLateForAnotherReasonAreNotNamed) {
  const Trouble troubles[] = {{.throttled_ns = 20 * kMs}, {.queued_ns = 20 * kMs},
                              {.input_ns = 20 * kMs},     {.asleep_ns = 20 * kMs},
                              {.blocked_ns = 20 * kMs},   {.slower = 2}};
  for (const Trouble& trouble : troubles) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      SampledJob job({.steps = 200, .seed = seed, .trouble = {{1, trouble}}}, seed);
      const Answer answer = job.Explained();
      ASSERT_FALSE(answer.findings.empty());
      EXPECT_FALSE(answer.findings[0].stood.has_value());
    }
  }
}

TEST(Places, OfARankThatSharesTheDelayInOneStep) {
  // As often as it is looked at there, and no more: one long pause is no habit.
  SampledJob job({.steps = 200, .trouble = {{1, {.host_ns = 4000 * kMs}}}, .every = 199});
  for (const RankFinding& finding : job.Explained().findings) {
    EXPECT_FALSE(finding.stood.has_value());
  }
}

TEST(Places, OfEverybody) {
  SampledJob job(
      {.steps = 200, .trouble = {{0, {.host_ns = 20 * kMs}}, {1, {.host_ns = 20 * kMs}}}});
  const Answer answer = job.Explained();
  ASSERT_EQ(answer.verdict, Verdict::kEverybody);
  ASSERT_TRUE(answer.everybody_stood.has_value());
  EXPECT_EQ(answer.everybody_stood->place, "CB.slow (jobs/a.py:3)");
}

}  // namespace
}  // namespace syncline::analysis::why
