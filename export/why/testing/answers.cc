// SPDX-License-Identifier: Apache-2.0
#include "export/why/testing/answers.h"

#include <numeric>
#include <utility>

#include "export/why/why_text.h"

namespace syncline::report::testing {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::MeanEstimate;
using analysis::why::Part;
using analysis::why::PartTable;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::Refusal;
using analysis::why::StallGroup;
using analysis::why::Stalls;
using analysis::why::StoodIn;
using analysis::why::Taker;
using analysis::why::Verdict;

MeanEstimate Tenths(int64_t est, int64_t lo, int64_t hi) {
  return {est * kTenth, lo * kTenth, hi * kTenth};
}

RankSummary RankOf(int32_t rank, const std::string& node, const PartTable& parts) {
  RankSummary summary;
  summary.rank = rank;
  summary.node = node;
  summary.pid = 4710 + rank;
  summary.command = "train.py";
  for (size_t i = 0; i < parts.size(); ++i) summary.mean[i] = parts[i] * kTenth;
  summary.mean_step_ns = std::accumulate(summary.mean.begin(), summary.mean.end(), int64_t{0});
  summary.mean_own_ns = summary.mean_step_ns -
                        summary.mean[static_cast<size_t>(Part::kWaitAndTransfer)] -
                        summary.mean[static_cast<size_t>(Part::kNotCovered)];
  summary.covered = 0.9991;
  summary.taken_away_known = true;
  summary.blocked_known = true;
  summary.sample_period_ns = 50'000'000;
  summary.group_version = 1;
  summary.sample_gaps = 0;
  return summary;
}

Answer TwoRanks() {
  Answer answer;
  answer.job = "j1";
  answer.window_ns = 10'000'000'000;
  answer.classes = {{"all_reduce x3", 104, 10'000'000'000}};
  answer.steps = 104;
  answer.ranks = {RankOf(0, "alpha", {581, 0, 6, 0, 11, 24, 3, 332, 5}),
                  RankOf(1, "beta", {587, 298, 8, 0, 12, 26, 7, 19, 5})};
  answer.mean_step_ns = answer.ranks[0].mean_step_ns;
  answer.clock_bound_ns = 1'200;
  answer.lost_events = 0;
  answer.worst_not_covered_ns = 5 * kTenth;
  return answer;
}

RankFinding LateRank() {
  RankFinding finding;
  finding.index = 1;
  finding.late = true;
  finding.lead = Tenths(313, 289, 338);
  finding.p = 0.0005;
  finding.order = {101, 96, 0, 104};
  return finding;
}

Cause Throttled() {
  Cause cause;
  cause.part = Part::kThrottled;
  cause.amount = Tenths(298, 276, 319);
  cause.own_ns = 298 * kTenth;
  cause.cost = Tenths(300, 260, 340);
  cause.group = "/job/rank1";
  cause.group_version = 1;
  cause.quota_ns = 70'000'000;
  cause.period_ns = 100'000'000;
  cause.periods = 100;
  cause.throttled_periods = 88;
  return cause;
}

Cause CauseOf(Part part, const MeanEstimate& amount) {
  Cause cause;
  cause.part = part;
  cause.amount = amount;
  cause.own_ns = amount.est_ns;
  cause.cost = amount;
  return cause;
}

Answer ThrottledAnswer() {
  Answer answer = TwoRanks();
  RankFinding finding = LateRank();
  finding.causes = {Throttled()};
  finding.not_causes = {{Part::kWaitingForCpu, 2 * kTenth},
                        {Part::kInput, kTenth},
                        {Part::kGarbageCollection, 4 * kTenth}};
  finding.cost_all = finding.causes[0].cost;
  finding.shapes_known = true;
  answer.findings = {finding};
  answer.closest = finding;
  answer.verdict = Verdict::kCause;
  return answer;
}

Answer AnswerWith(std::vector<Cause> causes) {
  Answer answer = ThrottledAnswer();
  answer.findings[0].causes = std::move(causes);
  return answer;
}

Answer ManyRanks() {
  Answer answer = ThrottledAnswer();
  answer.ranks.clear();
  for (int32_t rank = 0; rank < 64; ++rank) {
    answer.ranks.push_back(RankOf(rank, "node" + std::to_string(rank / 8),
                                  {500 + rank, 0, 6, 0, 11, 24, 3, 332 - rank, 5}));
  }
  answer.findings[0].index = 40;
  return answer;
}

std::string FlatText(const Answer& answer) { return WhyText(answer, {10'000}); }

Stalls StallsOf(size_t rank) {
  Stalls stalls;
  stalls.steps = 108;
  stalls.stalls = 4;
  stalls.usual_ns = 962 * kTenth;
  stalls.longer_ns = 20'152 * kTenth;
  stalls.total_ns = 120'000 * kTenth;
  StallGroup& group = stalls.groups.emplace_back();
  group.kind = StallGroup::Kind::kRanks;
  group.ranks = {rank};
  group.stalls = 4;
  group.shortest_ns = 5'900 * kTenth;
  group.longest_ns = 6'100 * kTenth;
  group.total_longer_ns = stalls.longer_ns;
  group.longer_ns = 5'030 * kTenth;
  group.others_most_ns = 12 * kTenth;
  group.longer[static_cast<size_t>(Part::kHostCode)] = 4'500 * kTenth;
  group.longer[static_cast<size_t>(Part::kCompute)] = 530 * kTenth;
  return stalls;
}

std::vector<Answer> AnswersWithNames(const std::string& name) {
  std::vector<Answer> answers = {ThrottledAnswer(), ManyRanks()};
  for (Answer& answer : answers) {
    for (RankSummary& rank : answer.ranks) rank.node = rank.command = name;
    answer.classes = {{name, 104, 1}, {name, 3, 1}};
    answer.findings[0].causes[0].group = "/" + name;
    Cause waiting = CauseOf(Part::kWaitingForCpu, Tenths(12, 10, 20));
    waiting.taker = Taker{Taker::Kind::kOutside, name, 1, 5};
    answer.findings[0].causes.push_back(waiting);
    RankFinding other = answer.findings[0];
    other.index = 0;
    other.causes.clear();
    other.stood = StoodIn{name, name, 1, 2};
    answer.everybody = {Part::kHostCode};
    answer.everybody_stood = other.stood;
    answer.findings.push_back(other);
    other.work = {{name, false, 1, 2}, {name, true, 1, 2}};
    answer.findings.push_back(other);
    answer.notes.assign(9, name);
    answer.path.emplace();
    answer.path->step = answer.path->collectives = Tenths(10, 10, 10);
    answer.path->ranks.resize(answer.ranks.size());
    answer.path->parts.resize(answer.ranks.size());
    answer.path->kinds.assign(5, {name, kTenth, true});
    answer.stalls = StallsOf(0);
    answer.stalls->groups[0].stood = other.stood;
  }
  Answer refused;
  refused.refusal = Refusal::kGpuJob;
  refused.refusal_text = name;
  answers.push_back(refused);
  return answers;
}

}  // namespace syncline::report::testing
