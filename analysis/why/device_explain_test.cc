// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "analysis/why/statistics.h"
#include "analysis/why/testing/device_job.h"

namespace syncline::analysis::why {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kMs = DeviceJob::kMs;
using Step = DeviceJob::Step;

constexpr auto Noise = &DeviceJob::Noise;
constexpr auto Healthy = &DeviceJob::Healthy;

TEST(DeviceExplain, NobodyIsLateInAHealthyJob) {
  const DeviceAnswer answer = DeviceJob(4, 20, Healthy).Explain();
  EXPECT_EQ(answer.refusal_text, "");
  EXPECT_EQ(answer.verdict, DeviceVerdict::kNobody);
  EXPECT_EQ(answer.steps, 20u);
  EXPECT_THAT(answer.findings, IsEmpty());
}

TEST(DeviceExplain, PartsAddUpToTheStep) {
  for (const DeviceRankSummary& rank : DeviceJob(3, 7, Healthy).Explain().ranks) {
    int64_t sum = 0;
    for (const int64_t ns : rank.mean) sum += ns;
    EXPECT_EQ(sum, rank.mean_step_ns);
  }
}

TEST(DeviceExplain, SlowerKernelsAreTheSameWork) {
  const DeviceAnswer answer = DeviceJob(4, 20, [](size_t rank, int step) {
                                Step todo = Healthy(rank, step);
                                if (rank == 2) {
                                  todo.computing = todo.computing * 5 / 4;
                                  todo.kernel = todo.kernel * 5 / 4;
                                }
                                return todo;
                              }).Explain();
  ASSERT_EQ(answer.verdict, DeviceVerdict::kLate);
  ASSERT_THAT(answer.findings, SizeIs(1));
  const DeviceFinding& finding = answer.findings[0];
  EXPECT_EQ(answer.ranks[finding.index].rank, 2);
  EXPECT_NEAR(static_cast<double>(finding.lead.est_ns), 5e6, 1e5);
  EXPECT_EQ(finding.most_in, 20u);
  ASSERT_THAT(finding.causes, SizeIs(1));
  EXPECT_EQ(finding.causes[0].part, DevicePart::kComputing);
  ASSERT_TRUE(finding.causes[0].work.has_value());
  EXPECT_FALSE(finding.causes[0].work->is_more_work());
  EXPECT_NEAR(finding.causes[0].work->longer_part, 0.25, 0.02);
  EXPECT_NEAR(static_cast<double>(finding.cost_ns), 5e6, 2e5);
}

TEST(DeviceExplain, MoreKernelsAndOtherGridsAreOtherWork) {
  for (const bool other_grid : {false, true}) {
    const DeviceAnswer answer = DeviceJob(3, 10, [&](size_t rank, int step) {
                                  Step todo = Healthy(rank, step);
                                  if (rank != 1) return todo;
                                  todo.computing += 6 * kMs;
                                  if (other_grid) {
                                    todo.grid = "[11, 1, 1]";
                                    todo.kernel = todo.kernel * 13 / 10;
                                  }
                                  return todo;
                                }).Explain();
    ASSERT_THAT(answer.findings, SizeIs(1)) << other_grid;
    ASSERT_THAT(answer.findings[0].causes, SizeIs(1));
    ASSERT_TRUE(answer.findings[0].causes[0].work.has_value());
    EXPECT_TRUE(answer.findings[0].causes[0].work->is_more_work()) << other_grid;
  }
}

TEST(DeviceExplain, InputAndLateLaunchesAreToldApart) {
  const auto cause = [](const DeviceJob::Plan& plan) {
    const DeviceAnswer answer = DeviceJob(2, 12, plan).Explain();
    if (answer.findings.size() != 1 || answer.findings[0].causes.empty())
      return std::string("none");
    EXPECT_EQ(answer.ranks[answer.findings[0].index].rank, 1);
    return std::string(DevicePartJsonName(answer.findings[0].causes[0].part));
  };
  EXPECT_EQ(cause([](size_t rank, int step) {
              Step todo = Healthy(rank, step);
              if (rank == 1) todo.loading = 4 * kMs;
              return todo;
            }),
            "input");
  EXPECT_EQ(cause([](size_t rank, int step) {
              Step todo = Healthy(rank, step);
              if (rank == 1) todo.late_launch = 4 * kMs;
              return todo;
            }),
            "launch");
}

// Parts of the causes of the only finding, which is of rank 1.
std::vector<DevicePart> CausesOf(const DeviceAnswer& answer) {
  std::vector<DevicePart> parts;
  if (answer.findings.size() != 1) return parts;
  EXPECT_EQ(answer.ranks[answer.findings[0].index].rank, 1);
  for (const DeviceCause& cause : answer.findings[0].causes) parts.push_back(cause.part);
  return parts;
}

TEST(DeviceExplain, WhatCollectivesHideOnTheOthersIsNoCause) {
  const auto copies = [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    todo.copy = 3 * kMs;
    if (rank == 1) todo.late_launch = 5 * kMs;
    return todo;
  };
  EXPECT_THAT(CausesOf(DeviceJob(3, 12, copies).Explain()), ElementsAre(DevicePart::kLaunch));
  const auto starts = [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    todo.start = kMs / 4;
    if (rank == 1) todo.late_launch = 5 * kMs;
    return todo;
  };
  EXPECT_THAT(CausesOf(DeviceJob(3, 12, starts).Explain()), ElementsAre(DevicePart::kLaunch));
}

TEST(DeviceExplain, LongerCopiesAndSlowerStartsAreCauses) {
  const auto copies = [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    todo.copy = rank == 1 ? 5 * kMs : kMs;
    if (rank == 1) todo.late_launch = 5 * kMs;
    return todo;
  };
  EXPECT_THAT(CausesOf(DeviceJob(3, 12, copies).Explain()), ElementsAre(DevicePart::kCopies));
  const auto starts = [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    todo.start = rank == 1 ? kMs / 2 : kMs / 50;
    if (rank == 1) todo.late_launch = 41 * kMs / 10;  // when these have ended
    return todo;
  };
  EXPECT_THAT(CausesOf(DeviceJob(3, 12, starts).Explain()), ElementsAre(DevicePart::kNotStarted));
}

TEST(DeviceExplain, LateLaunchesThatTheProgramDoesNotShowAreNoCauseAndSaid) {
  const DeviceAnswer answer = DeviceJob(3, 12, [](size_t rank, int step) {
                                Step todo = Healthy(rank, step);
                                if (rank == 1) todo.late_launch = 5 * kMs;
                                todo.late_call = rank == 1;
                                return todo;
                              }).Explain();
  ASSERT_THAT(answer.findings, SizeIs(1));
  EXPECT_THAT(CausesOf(answer), IsEmpty());
  EXPECT_NEAR(static_cast<double>(answer.findings[0].unseen_launch_ns), 5e6, 2e5);
}

TEST(DeviceExplain, WhatEveryRankWaitsForIsSaidOfAll) {
  const DeviceAnswer answer = DeviceJob(4, 20, [](size_t rank, int step) {
                                Step todo = Healthy(rank, step);
                                todo.loading = 9 * kMs;
                                return todo;
                              }).Explain();
  EXPECT_EQ(answer.verdict, DeviceVerdict::kNobody);
  EXPECT_THAT(answer.everybody, ElementsAre(DevicePart::kInput));
}

TEST(DeviceExplain, RanksThatTakeTurnsAreNotLate) {
  const DeviceAnswer answer = DeviceJob(4, 40, [](size_t rank, int step) {
                                Step todo = Healthy(rank, step);
                                if (static_cast<size_t>(step) % 4 == rank)
                                  todo.computing += 8 * kMs;
                                return todo;
                              }).Explain();
  EXPECT_THAT(answer.findings, IsEmpty());
  EXPECT_NEAR(static_cast<double>(answer.rotating_ns), 6e6, 1e6);
}

TEST(DeviceExplain, AProgramThatIsSlowBesideItsDeviceHoldsNobodyUp) {
  const auto plan = [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    if (rank == 0) todo.busy_beside = 55 * kMs;
    return todo;
  };
  const DeviceAnswer answer = DeviceJob(4, 20, plan, 60 * kMs).Explain();
  EXPECT_EQ(answer.verdict, DeviceVerdict::kNobody);
}

TEST(DeviceExplain, ProgramsThatWaitUnseenLeaveItUndecided) {
  const DeviceAnswer answer = DeviceJob(4, 20, [](size_t rank, int step) {
                                Step todo = Healthy(rank, step);
                                todo.busy_beside = 1000 * kMs;
                                if (rank == 1) todo.computing += 6 * kMs;
                                return todo;
                              }).Explain();
  EXPECT_EQ(answer.verdict, DeviceVerdict::kUndecided);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("do not show it")));
}

TEST(DeviceExplain, SeveralLateRanksHaveACostTogether) {
  const DeviceAnswer answer = DeviceJob(6, 20, [](size_t rank, int step) {
                                Step todo = Healthy(rank, step);
                                if (rank < 2) todo.computing += 5 * kMs;
                                return todo;
                              }).Explain();
  ASSERT_THAT(answer.findings, SizeIs(2));
  for (const DeviceFinding& finding : answer.findings) EXPECT_LT(finding.cost_ns, kMs);
  EXPECT_NEAR(static_cast<double>(answer.joint_cost_ns), 5e6, 2e5);
}

TEST(DeviceExplain, TheCostIsNotLessWhereTheOthersTakeTurns) {
  // Of each step the largest of the others is 3 ms above their means.
  const DeviceAnswer answer = DeviceJob(4, 45, [](size_t rank, int step) {
                                Step todo = Healthy(rank, step);
                                if (rank == 3) {
                                  todo.computing += 8 * kMs;
                                } else if (static_cast<size_t>(step) % 3 == rank) {
                                  todo.computing += 4 * kMs;
                                }
                                return todo;
                              }).Explain();
  ASSERT_THAT(answer.findings, SizeIs(1));
  EXPECT_GT(answer.findings[0].cost_ns, 6'500'000);
  EXPECT_LT(answer.findings[0].cost_ns, 8'100'000);
}

TEST(DeviceExplain, WaitingInTurnIsNoCommunicationOfAll) {
  const auto turns = [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    if (static_cast<size_t>(step) % 4 == rank) todo.computing += 12 * kMs;
    return todo;
  };
  EXPECT_THAT(DeviceJob(4, 40, turns).Explain().everybody, IsEmpty());
  EXPECT_THAT(DeviceJob(4, 40, turns, 20 * kMs).Explain().everybody,
              ElementsAre(DevicePart::kCommunication));
}

TEST(DeviceExplain, KernelsOfOtherSizesEachTimeAreNotCompared) {
  const DeviceAnswer answer =
      DeviceJob(4, 20, [](size_t rank, int step) {
        Step todo = Healthy(rank, step);
        todo.grid = "[" + std::to_string(100 * step) + ", " + std::to_string(rank) + ", 1]";
        if (rank == 1) todo.computing += 4 * kMs;
        return todo;
      }).Explain();
  ASSERT_THAT(answer.findings, SizeIs(1));
  ASSERT_THAT(answer.findings[0].causes, SizeIs(1));
  ASSERT_TRUE(answer.findings[0].causes[0].work.has_value());
  EXPECT_FALSE(answer.findings[0].causes[0].work->is_comparable);
}

TEST(DeviceExplain, FewStepsAreUndecided) {
  const auto late = [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    if (rank == 0) todo.computing += 9 * kMs;
    return todo;
  };
  const DeviceAnswer few = DeviceJob(2, 4, late).Explain();
  EXPECT_EQ(few.verdict, DeviceVerdict::kUndecided);
  ASSERT_TRUE(few.closest.has_value());
  EXPECT_EQ(few.ranks[few.closest->index].rank, 0);
  EXPECT_EQ(DeviceJob(2, 5, late).Explain().verdict, DeviceVerdict::kLate);
}

TEST(DeviceExplain, TheOrderOfTheRanksDoesNotMatter) {
  DeviceJob job(5, 20, [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    if (rank == 3) todo.late_launch = 3 * kMs;
    return todo;
  });
  const DeviceAnswer answer = job.Explain();
  std::reverse(job.ranks().begin(), job.ranks().end());
  const DeviceAnswer again = job.Explain();
  ASSERT_THAT(answer.findings, SizeIs(1));
  ASSERT_THAT(again.findings, SizeIs(1));
  EXPECT_EQ(answer.ranks[answer.findings[0].index].rank, 3);
  EXPECT_EQ(again.ranks[again.findings[0].index].rank, 3);
  EXPECT_EQ(answer.findings[0].lead.est_ns, again.findings[0].lead.est_ns);
}

TEST(DeviceExplain, RefusesWhatItCannotJudge) {
  const auto reason = [](const std::function<void(DeviceJob*)>& change) {
    DeviceJob job(2, 10, Healthy);
    change(&job);
    const DeviceAnswer answer = job.Explain();
    EXPECT_EQ(answer.refusal == DeviceRefusal::kNone, answer.refusal_text.empty());
    return std::string(DeviceRefusalJsonName(answer.refusal));
  };
  EXPECT_EQ(reason([](DeviceJob*) {}), "");
  EXPECT_EQ(reason([](DeviceJob* job) { job->ranks()[1].devices = nullptr; }), "no_device_work");
  EXPECT_EQ(reason([](DeviceJob* job) { job->ranks()[1].rank = -1; }), "no_rank");
  EXPECT_EQ(reason([](DeviceJob* job) { job->ranks()[1].rank = 0; }), "ranks_disagree");
  EXPECT_EQ(reason([](DeviceJob* job) { job->devices().front().steps.clear(); }), "no_steps");
  EXPECT_EQ(reason([](DeviceJob* job) {
              for (timeline::ProgramStep& step : job->devices().front().steps) step.name += "x";
            }),
            "ranks_disagree");
  EXPECT_EQ(reason([](DeviceJob* job) {
              timeline::ProcessDevices& devices = job->devices().front();
              devices.devices.emplace_back("GPU 1");
              for (size_t i = 0; i < devices.work.size(); i += 2) devices.work[i].device = 1;
            }),
            "several_devices");
  EXPECT_EQ(reason([](DeviceJob* job) {
              timeline::ProcessDevices& devices = job->devices().back();
              devices.sends.push_back({devices.steps[3].begin, devices.steps[3].end});
            }),
            "peer_to_peer");
  EXPECT_EQ(reason([](DeviceJob* job) {
              timeline::ProcessDevices& devices = job->devices().back();
              devices.host_collectives.push_back(
                  {devices.steps[3].begin, {devices.steps[3].begin.ns + 9 * kMs}});
            }),
            "host_collectives");
  const DeviceAnswer pipeline = DeviceJob(2, 10, [](size_t rank, int step) {
                                  Step todo = Healthy(rank, step);
                                  todo.collective = "send";
                                  return todo;
                                }).Explain();
  EXPECT_EQ(pipeline.refusal, DeviceRefusal::kPeerToPeer);
}

TEST(DeviceExplain, MissingRanksAreSaid) {
  DeviceJob job(3, 10, Healthy);
  for (DeviceRank& rank : job.ranks()) rank.world_size = 8;
  const DeviceAnswer answer = job.Explain();
  EXPECT_TRUE(answer.incomplete);
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("the job has 8 ranks")));
}

TEST(DeviceExplain, AStepThatOtherCollectivesHaveIsNotJudged) {
  DeviceJob job(2, 10, Healthy);
  timeline::ProcessDevices& devices = job.devices().front();
  for (timeline::DeviceWork& work : devices.work) {
    if (work.kind != timeline::DeviceWork::Kind::kCollective) continue;
    work.kind = timeline::DeviceWork::Kind::kCompute;
    break;
  }
  const DeviceAnswer answer = job.Explain();
  EXPECT_EQ(answer.steps, 9u);
  EXPECT_EQ(answer.unpaired_steps, 1u);
}

TEST(DeviceExplain, OneRankAloneIsNotCompared) {
  DeviceJob job(1, 10, [](size_t rank, int step) {
    Step todo = Healthy(rank, step);
    todo.loading = 9 * kMs;
    return todo;
  });
  const DeviceAnswer answer = job.Explain();
  EXPECT_EQ(answer.refusal_text, "");
  EXPECT_EQ(answer.verdict, DeviceVerdict::kNotJudged);
  EXPECT_THAT(answer.everybody, ElementsAre(DevicePart::kInput));
}

TEST(DeviceExplain, OfOneRankCollectivesOnTheHostAreSaid) {
  DeviceJob job(1, 10, Healthy);
  EXPECT_FALSE(job.Explain().host_collectives);
  for (const timeline::ProgramStep& step : job.devices().front().steps) {
    job.devices().front().host_collectives.push_back({step.begin, {step.begin.ns + 9 * kMs}});
  }
  const DeviceAnswer answer = job.Explain();
  EXPECT_TRUE(answer.host_collectives);
  EXPECT_THAT(answer.notes, testing::Contains(HasSubstr("on the host (Gloo)")));
}

TEST(Statistics, StudentsTIsThatOfTheTables) {
  EXPECT_NEAR(StudentQuantile(0.95, 1), 12.706, 0.001);
  EXPECT_NEAR(StudentQuantile(0.95, 2), 4.303, 0.001);
  EXPECT_NEAR(StudentQuantile(0.95, 19), 2.093, 0.001);
  EXPECT_NEAR(StudentQuantile(0.999, 4), 8.610, 0.001);
  EXPECT_NEAR(StudentQuantile(0.999, 30), 3.646, 0.001);
}

}  // namespace
}  // namespace syncline::analysis::why
