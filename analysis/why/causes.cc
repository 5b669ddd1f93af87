// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/causes.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/why/blocked.h"
#include "analysis/why/clock_speed.h"
#include "analysis/why/everybody.h"
#include "analysis/why/fewer_threads.h"
#include "analysis/why/lower_sets.h"
#include "analysis/why/operator_leads.h"
#include "analysis/why/page_faults.h"
#include "analysis/why/processor_time.h"
#include "analysis/why/replay.h"
#include "analysis/why/scheduled_taker.h"
#include "analysis/why/statistics.h"
#include "analysis/why/steal.h"
#include "analysis/why/takers.h"

namespace syncline::analysis::why {
namespace {

using Series = std::vector<std::vector<int64_t>>;  // [rank][step]

constexpr std::array kCauses = {Part::kThrottled, Part::kWaitingForCpu, Part::kBlocked,
                                Part::kInput, Part::kGarbageCollection};
constexpr int64_t kFloorNs = 500'000;
constexpr int64_t kFloorPercent = 2;
constexpr double kProbability = 0.01;
constexpr int64_t kUndecidedLimits = 3;  // an interval that reaches so many limits decides nothing
constexpr int64_t kUnmeasuredDivisor = 10;  // at most one other rank in so many without samples
constexpr double kSameQuota = 0.05;         // quotas that differ by less are the same
constexpr int64_t kOftenDivisor = 20;       // throttled in more than one period of so many
constexpr int64_t kPlacesDivisor = 4;       // a place is named for at least so much of the unknown
constexpr int64_t kReplayDivisor = 50;      // a replay that is off by more of a step is not used

class CauseFinder {
 public:
  CauseFinder(const JobInput& input, const Judged& judged, Answer* answer)
      : input_(input),
        judged_(judged),
        answer_(*answer),
        own_work_(SeriesOf([](const JudgedRank& rank, size_t step) { return rank.OwnWork(step); })),
        own_others_(own_work_),
        primitives_(judged.ranks, input.names),
        reorder_others_(primitives_.reorders_ns()),
        compute_(SeriesOf([](const JudgedRank& rank, size_t step) {
          return rank.tables[step][static_cast<size_t>(Part::kCompute)];
        })),
        uses_(StepUsesOf(judged.ranks)),
        page_faults_(PageFaultTimesOf(judged.ranks)),
        steal_(StealTimesOf(judged.ranks)),
        block_(BlockOf(judged.steps())),
        limit_ns_(std::max(kFloorNs, answer->mean_step_ns * kFloorPercent / 100)),
        p_(PermutationTest(own_work_, block_)),
        places_(judged.places, input.names),
        replay_(Replay::Of(input, judged)) {
    if (replay_.has_value() &&
        std::abs(replay_->error_ns()) * kReplayDivisor > answer_.mean_step_ns) {
      replay_.reset();
    }
    if (replay_.has_value()) answer_.replay_error_ns = replay_->error_ns();
    for (const Part part : kCauses) {
      parts_.push_back(SeriesOf([part](const JudgedRank& rank, size_t step) {
        return rank.tables[step][static_cast<size_t>(part)];
      }));
    }
    for (const Series& series : parts_) part_others_.emplace_back(series);
  }

  void Find() {
    std::vector<RankFinding> findings;
    size_t closest = 0;  // a late one before others, then the largest lead
    for (size_t rank = 0; rank < judged_.ranks.size(); ++rank) {
      findings.push_back(FindingOf(rank));
      const auto weight = [&](size_t i) {
        return std::pair(findings[i].late, findings[i].lead.est_ns);
      };
      if (weight(rank) > weight(closest)) closest = rank;
    }
    for (size_t rank = 0; rank < judged_.ranks.size(); ++rank) {
      RankFinding& finding = findings[rank];
      const bool sure = judged_.steps() >= kStepsSure;
      const bool unexplained = finding.late && rank == closest && sure;
      const bool found = finding.mostly_explained() || unexplained;
      if (found) Locate(&finding);
      if (rank == closest) answer_.closest = finding;
      if (!found) continue;
      answer_.findings.push_back(std::move(finding));
    }
    std::stable_sort(
        answer_.findings.begin(), answer_.findings.end(),
        [](const RankFinding& a, const RankFinding& b) { return WeightOf(a) > WeightOf(b); });
    SetVerdict();
    if (judged_.transfers) answer_.closest.reset();
    answer_.undecided = answer_.findings.empty() && answer_.closest.has_value() &&
                        !answer_.closest->late &&
                        answer_.closest->lead.hi_ns > kUndecidedLimits * limit_ns_;
  }

 private:
  template <class Value>
  Series SeriesOf(Value value) const {
    Series series(judged_.ranks.size());
    for (size_t rank = 0; rank < series.size(); ++rank) {
      for (size_t step = 0; step < judged_.steps(); ++step) {
        series[rank].push_back(value(judged_.ranks[rank], step));
      }
    }
    return series;
  }

  // What the largest cause is, or else the lead: those whose causes explain them come first.
  static std::pair<bool, int64_t> WeightOf(const RankFinding& finding) {
    if (!finding.mostly_explained()) return {false, finding.lead.est_ns};
    return {true, finding.causes[0].amount.est_ns};
  }

  // Of the rank, and of nearly all that it is compared with: who was not measured shows 0.
  bool Measured(size_t rank, Part part) const {
    const auto measured = [&](const JudgedRank& one) {
      return part == Part::kBlocked ? one.sleep.has_value() : one.samples.measured();
    };
    const bool taken = part == Part::kThrottled || part == Part::kWaitingForCpu;
    if (!taken && part != Part::kBlocked) return true;
    const auto ranks = static_cast<int64_t>(judged_.ranks.size());
    const int64_t unmeasured =
        ranks - std::count_if(judged_.ranks.begin(), judged_.ranks.end(), measured);
    return measured(judged_.ranks[rank]) && unmeasured * kUnmeasuredDivisor <= ranks - 1;
  }

  // Of what the rank has more of it than the others. How long they were blocked is not only another
  // one in each step, but found by samples, which leave something open.
  MeanEstimate AmountOf(size_t rank, size_t cause) const {
    MeanEstimate amount = Bootstrap(part_others_[cause].Excess(rank), block_);
    if (kCauses[cause] != Part::kBlocked || !judged_.ranks[rank].sleep.has_value()) return amount;
    const BlockedSleep& sleep = *judged_.ranks[rank].sleep;
    amount.lo_ns -= sleep.less_ns + OthersSleep(rank, &BlockedSleep::more_ns);
    amount.hi_ns += sleep.more_ns + OthersSleep(rank, &BlockedSleep::less_ns);
    amount.est_ns -= OthersSleep(rank, &BlockedSleep::uncut_ns);
    amount.est_ns = std::max(amount.est_ns, amount.lo_ns);
    return amount;
  }

  // Of the other ranks, the median.
  int64_t OthersSleep(size_t rank, int64_t BlockedSleep::*ns) const {
    std::vector<int64_t> others;
    for (size_t i = 0; i < judged_.ranks.size(); ++i) {
      if (i != rank) others.push_back(judged_.ranks[i].sleep.value_or(BlockedSleep{}).*ns);
    }
    return MedianOf(std::move(others)).value_or(0);
  }

  // What is said of what is no cause: also what was found, and left in other parts.
  int64_t SeenNs(size_t rank, size_t cause, const MeanEstimate& amount) const {
    if (kCauses[cause] != Part::kBlocked) return amount.est_ns;
    const int64_t uncut_ns = judged_.ranks[rank].sleep.value_or(BlockedSleep{}).uncut_ns;
    return uncut_ns > 0 ? std::max(amount.est_ns, uncut_ns) : amount.est_ns;
  }

  // Surely large enough; twice that where the rank is not late.
  bool IsCertain(const RankFinding& finding, const MeanEstimate& one) const {
    return one.lo_ns > (finding.late ? limit_ns_ : 2 * limit_ns_);
  }

  // Somebody waits for `excess`, of which `amount` is the mean: it shows in the lead or, where
  // ranks wait for each other several times in a step and each for the other, in what the steps
  // would be without it.
  bool IsWaitedFor(const RankFinding& finding, const MeanEstimate& amount,
                   const std::vector<PartTable>& excess) const {
    if (!judged_.transfers && finding.lead.est_ns * 2 >= amount.est_ns) return true;
    if (!replay_.has_value()) return false;
    const MeanEstimate cost = CostOf(finding.index, excess);
    return IsCertain(finding, cost) && cost.lo_ns * 2 >= amount.est_ns;
  }

  // At least half of the other ranks have the same quota, and are throttled, too: who works more
  // meets it more often. The quota is everybody's, and no fault of the rank's.
  bool SharesItsQuota(size_t rank) const {
    const GroupFacts& own = judged_.ranks[rank].samples.group;
    if (own.quota_ns <= 0 || own.period_ns <= 0) return false;
    size_t alike = 0;
    for (size_t i = 0; i < judged_.ranks.size(); ++i) {
      const GroupFacts& other = judged_.ranks[i].samples.group;
      if (i == rank || other.quota_ns <= 0 || other.period_ns <= 0) continue;
      const double ratio = static_cast<double>(other.quota_ns) /
                           static_cast<double>(other.period_ns) *
                           static_cast<double>(own.period_ns) / static_cast<double>(own.quota_ns);
      const bool same = ratio > 1 - kSameQuota && ratio < 1 + kSameQuota;
      const bool often = other.throttled_periods > other.periods / kOftenDivisor;
      alike += same && often ? 1 : 0;
    }
    return alike * 2 >= judged_.ranks.size() - 1;
  }

  RankFinding FindingOf(size_t rank) const {
    RankFinding finding;
    finding.index = rank;
    std::vector<int64_t> leads = own_others_.Excess(rank);
    finding.lead = Bootstrap(leads, block_);
    if (answer_.stalls.has_value() && !answer_.stalls->judged.empty()) {
      const std::vector<size_t>& stalls = answer_.stalls->judged;
      for (size_t i = stalls.size(); i-- > 0;) {
        leads.erase(leads.begin() + static_cast<ptrdiff_t>(stalls[i]));
      }
      finding.quiet_lead = Bootstrap(leads, block_);
    }
    finding.p = p_;
    // Ranks that send to each other may do different parts of the work.
    finding.late = !judged_.transfers && p_ < kProbability && finding.lead.lo_ns > limit_ns_;
    const bool may_name = judged_.steps() >= kStepsSure || finding.late;
    std::vector<PartTable> taken(judged_.steps(), PartTable{});
    for (size_t i = 0; i < kCauses.size(); ++i) {
      const MeanEstimate amount = AmountOf(rank, i);
      std::optional<Cause> cause;
      std::vector<PartTable> excess;
      if (may_name && Measured(rank, kCauses[i]) && IsCertain(finding, amount)) {
        excess = ExcessIn(part_others_[i].Excess(rank), kCauses[i], amount);
        if (IsWaitedFor(finding, amount, excess)) cause = CauseOf(rank, i, amount, excess);
      }
      NotACause not_a_cause{kCauses[i], SeenNs(rank, i, amount), Measured(rank, kCauses[i])};
      if (cause.has_value() && kCauses[i] == Part::kThrottled && SharesItsQuota(rank)) {
        not_a_cause.because = NotACause::Because::kSharedQuota;
        cause.reset();
      }
      // Its own transfers run beside its work because it is late: no cause of that.
      if (cause.has_value() && cause->taker.has_value() && cause->taker->transfers) {
        not_a_cause.because = NotACause::Because::kOwnTransfers;
        cause.reset();
      }
      if (cause.has_value()) {
        Add(excess, &taken);
        finding.causes.push_back(*std::move(cause));
      } else {
        finding.not_causes.push_back(not_a_cause);
      }
    }
    if (!judged_.transfers && (finding.late || !finding.causes.empty())) Compare(rank, &finding);
    if (!finding.work.empty()) finding.causes.clear();
    if (finding.late && finding.work.empty()) {
      if (!AddLowerSets(rank, &finding, &taken)) AddFewerThreads(rank, &finding, &taken);
      const MeanEstimate reorders = Bootstrap(reorder_others_.Excess(rank), block_);
      if (reorders.lo_ns > limit_ns_) finding.reorders = reorders;
    }
    if (!finding.causes.empty()) finding.cost_all = CostOf(rank, taken);
    std::stable_sort(
        finding.causes.begin(), finding.causes.end(),
        [](const Cause& a, const Cause& b) { return a.amount.est_ns > b.amount.est_ns; });
    finding.order = OrderOf(rank);
    finding.processor = ProcessorTimeOf(judged_.ranks[rank]);
    return finding;
  }

  // Whether the rank did the same work as the others.
  void Compare(size_t rank, RankFinding* finding) const {
    std::vector<WorkDone> work;
    int64_t total_ns = 0;
    for (const JudgedRank& one : judged_.ranks) work.push_back(one.work);
    for (const OwnInterval& step : judged_.ranks[rank].steps) total_ns += step.length_ns();
    finding->work = DifferencesOf(work, rank, judged_.steps(), total_ns, input_.names);
    finding->shapes_known = std::all_of(work.begin(), work.end(), [&](const WorkDone& one) {
      return ShapesKnown(one, input_.names);
    });
  }

  // What of each step it takes from all. Without a replay: by how much the slowest rank would be
  // faster without it.
  MeanEstimate CostOf(size_t rank, const std::vector<PartTable>& taken) const {
    if (replay_.has_value()) {
      const Replay::Saved saved = replay_->SavedBy({rank, taken});
      MeanEstimate cost = Bootstrap(saved.likely, block_);
      cost.lo_ns = std::min(cost.lo_ns, Bootstrap(saved.least, block_).lo_ns);
      cost.hi_ns = std::max(cost.hi_ns, Bootstrap(saved.most, block_).hi_ns);
      return cost;
    }
    std::vector<int64_t> costs;
    for (size_t step = 0; step < judged_.steps(); ++step) {
      const int64_t own_ns = own_work_[rank][step];
      const int64_t others_ns = own_others_.Largest(rank, step);
      const int64_t taken_ns = std::accumulate(taken[step].begin(), taken[step].end(), int64_t{0});
      costs.push_back(std::max(own_ns, others_ns) - std::max(own_ns - taken_ns, others_ns));
    }
    return Bootstrap(costs, block_);
  }

  // Of each step, what the rank has more of it than the others' median, `amount` in the mean: in
  // single steps it may have less, of which nothing can be taken.
  static std::vector<PartTable> ExcessIn(const std::vector<int64_t>& more, Part part,
                                         const MeanEstimate& amount) {
    std::vector<PartTable> excess(more.size(), PartTable{});
    double sum_ns = 0;
    for (const int64_t ns : more) sum_ns += static_cast<double>(std::max<int64_t>(0, ns));
    const double wanted_ns = static_cast<double>(amount.est_ns) * static_cast<double>(more.size());
    const double scale = sum_ns > 0 ? std::clamp(wanted_ns / sum_ns, 0.0, 1.0) : 0;
    for (size_t step = 0; step < excess.size(); ++step) {
      const auto ns = static_cast<double>(std::max<int64_t>(0, more[step]));
      excess[step][static_cast<size_t>(part)] = static_cast<int64_t>(ns * scale);
    }
    return excess;
  }

  // Adds to what all causes take of each step.
  static void Add(const std::vector<PartTable>& more, std::vector<PartTable>* taken) {
    for (size_t step = 0; step < more.size(); ++step) {
      for (size_t part = 0; part < kParts; ++part) (*taken)[step][part] += more[step][part];
    }
  }

  // Its oneDNN does the same work by a lower instruction set, and takes longer for it. `taken`: of
  // each step, what all causes take.
  bool AddLowerSets(size_t rank, RankFinding* finding, std::vector<PartTable>* taken) const {
    LowerSets lower = primitives_.LowerSetsOf(rank);
    if (lower.primitives.empty()) return false;
    Cause* const cause = AddLonger(rank, lower.times_ns, 1, finding, taken);
    if (cause != nullptr) cause->lower_sets = std::move(lower.primitives);
    return cause != nullptr;
  }

  // It does the same on fewer threads, and takes longer for it.
  void AddFewerThreads(size_t rank, RankFinding* finding, std::vector<PartTable>* taken) const {
    const std::optional<FewerThreads> threads = FewerThreadsOf(uses_, rank);
    if (!threads.has_value()) return;
    Cause* const cause = AddLonger(rank, compute_, threads->explained, finding, taken);
    if (cause != nullptr) cause->threads = threads;
  }

  // Where what nothing explains is: in which operators, and where it stood in host code. Not where
  // most of its lead was taken from it, wherever it was.
  void Locate(RankFinding* finding) {
    const size_t rank = finding->index;
    if (!finding->late || !finding->work.empty()) return;
    int64_t taken_ns = 0;
    for (size_t i = 0; i < kCauses.size(); ++i) {
      const bool taken = kCauses[i] == Part::kThrottled || kCauses[i] == Part::kWaitingForCpu;
      if (taken) taken_ns += MeanOf(part_others_[i].Excess(rank));
    }
    const int64_t unknown_ns = finding->unexplained_ns();
    if (unknown_ns <= limit_ns_ || taken_ns * 2 > finding->lead.est_ns) return;
    const double least = static_cast<double>(unknown_ns) / kPlacesDivisor /
                         static_cast<double>(answer_.ranks[rank].mean_step_ns);
    finding->stood = places_.Of(rank, least);
    finding->page_faults = MoreFaultsOf(page_faults_, rank, limit_ns_, answer_.ranks);
    finding->clock = SlowerClockOf(judged_.ranks, rank, limit_ns_);
    finding->steal = MoreStealOf(steal_, rank, limit_ns_, judged_.ranks, answer_.ranks);
    const bool known = std::any_of(finding->causes.begin(), finding->causes.end(),
                                   [](const Cause& one) { return one.part == Part::kCompute; });
    if (known) return;
    if (!operators_.has_value()) operators_.emplace(judged_.ranks, input_.names);
    finding->longer = operators_->Of(rank, unknown_ns);
  }

  // A cause by which the rank computes longer: of `times`, this part of what is more than the
  // others' median. nullptr: that is not evident.
  Cause* AddLonger(size_t rank, const Series& times, double part, RankFinding* finding,
                   std::vector<PartTable>* taken) const {
    std::vector<int64_t> longer = Others(times).Excess(rank);
    for (int64_t& ns : longer) ns = static_cast<int64_t>(static_cast<double>(ns) * part);
    const MeanEstimate amount = Bootstrap(longer, block_);
    if (!IsCertain(*finding, amount)) return nullptr;
    const std::vector<PartTable> of_it = ExcessIn(longer, Part::kCompute, amount);
    if (!IsWaitedFor(*finding, amount, of_it)) return nullptr;
    Add(of_it, taken);
    Cause& cause = finding->causes.emplace_back();
    cause.part = Part::kCompute;
    cause.amount = amount;
    cause.own_ns = MeanOf(times[rank]);
    cause.cost = CostOf(rank, of_it);
    return &cause;
  }

  // `excess`: of each step, what the rank has more of it.
  Cause CauseOf(size_t rank, size_t index, const MeanEstimate& amount,
                const std::vector<PartTable>& excess) const {
    const JudgedRank& judged = judged_.ranks[rank];
    Cause cause;
    cause.part = kCauses[index];
    cause.amount = amount;
    cause.own_ns = MeanOf(parts_[index][rank]);
    cause.cost = CostOf(rank, excess);
    if (cause.part == Part::kThrottled && judged.samples.group.group != nullptr) {
      const GroupFacts& facts = judged.samples.group;
      cause.group = facts.group->path;
      cause.group_version = facts.group->version;
      cause.quota_ns = facts.quota_ns;
      cause.period_ns = facts.period_ns;
      cause.periods = facts.periods;
      cause.throttled_periods = facts.throttled_periods;
    }
    if (cause.part == Part::kWaitingForCpu) {
      cause.taker = WhoTook(input_, judged);
    }
    if (cause.part == Part::kBlocked) cause.blocked = judged.sleep;
    if (cause.part == Part::kInput) {
      cause.loader_blocked = LoaderBlocked(*judged.input, judged.samples);
    }
    // A loader whose workers have no processor is not slow by itself.
    const auto steps = static_cast<int64_t>(judged_.steps());
    if (cause.part == Part::kInput &&
        LoaderRunQueueNs(*judged.input, judged.samples) / steps * 2 > cause.own_ns) {
      cause.part = Part::kWaitingForCpu;
      cause.taker = Taker{Taker::Kind::kOwnLoader, "", judged.input->pid, 0};
    }
    if (cause.part == Part::kBlocked || cause.part == Part::kInput) {
      cause.full_memory = FullMemoryOf(*judged.input, judged.steps);
    }
    return cause;
  }

  OrderCounts OrderOf(size_t rank) const {
    std::map<std::pair<uint32_t, uint64_t>, const Arrival*> arrivals;
    for (const Arrival& arrival : input_.arrivals) {
      if (arrival.everybody_waits || arrival.root == arrival.last)
        arrivals[{arrival.group, arrival.number}] = &arrival;
    }
    OrderCounts counts;
    for (const auto& of_step : judged_.collectives) {
      const Arrival* widest = nullptr;  // the collective that tells most about the step
      for (const auto& key : of_step) {
        const auto found = arrivals.find(key);
        if (found == arrivals.end()) continue;
        if (widest == nullptr || found->second->spread_ns > widest->spread_ns) {
          widest = found->second;
        }
      }
      if (widest == nullptr) continue;
      ++counts.steps;
      if (widest->last != rank) continue;
      ++counts.last;
      counts.proven += widest->level == Level::kProven ? 1 : 0;
      counts.likely += widest->level == Level::kLikely ? 1 : 0;
    }
    return counts;
  }

  void SetVerdict() {
    answer_.verdict = Verdict::kNobody;
    if (!answer_.findings.empty()) {
      const RankFinding& first = answer_.findings[0];
      answer_.verdict = first.mostly_explained() ? Verdict::kCause
                        : !first.work.empty()    ? Verdict::kWorkDiffers
                                                 : Verdict::kLateCauseUnknown;
    } else if (!answer_.everybody.empty()) {
      answer_.verdict = Verdict::kEverybody;
    } else if (judged_.transfers) {
      answer_.verdict = Verdict::kNotJudged;
    }
  }

  const JobInput& input_;
  const Judged& judged_;
  Answer& answer_;
  const Series own_work_;
  const Others own_others_;
  const Primitives primitives_;
  const Others reorder_others_;
  const Series compute_;
  const std::vector<std::optional<StepUse>> uses_;
  const Series page_faults_;                        // what they take; empty: not known
  const std::vector<std::vector<StepLoss>> steal_;  // likewise
  const size_t block_;
  const int64_t limit_ns_;
  const double p_;
  const StoodPlaces places_;
  std::optional<OperatorLeads> operators_;  // once one is asked for
  std::optional<Replay> replay_;
  std::vector<Series> parts_;  // by kCauses; complete before `part_others_` is filled
  std::vector<Others> part_others_;
};

}  // namespace

void FindCauses(const JobInput& input, const Judged& judged, Answer* answer) {
  FindEverybody(input, judged, answer);
  if (judged.collective_job) {
    CauseFinder(input, judged, answer).Find();
  } else {
    answer->verdict = answer->everybody.empty() ? Verdict::kNotJudged : Verdict::kEverybody;
  }
}

}  // namespace syncline::analysis::why
