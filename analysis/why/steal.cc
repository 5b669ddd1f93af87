// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/steal.h"

#include <algorithm>

#include "analysis/why/samples.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr double kShareMax = 0.999;
constexpr double kCoveredMin = 0.75;  // of the steps, between the first reading and the last one

OwnInterval AllOf(const JudgedRank& rank) {
  return {rank.steps.front().begin_ns, rank.steps.back().end_ns};
}

// By step. Empty: not known.
std::vector<StepLoss> LossesOf(const JudgedRank& rank, const CpuSteal& cpus) {
  if (!rank.samples.measured() || rank.steps.empty()) return {};
  if (!cpus.known() || !cpus.Covers(AllOf(rank))) return {};
  const std::vector<Reading>& driver = rank.samples.driver;
  std::vector<StepLoss> losses;
  for (const OwnInterval& step : rank.steps) {
    const int64_t ran_ns = GrownIn(driver, &Reading::on_cpu_ns, step);
    const auto queued_ns = static_cast<double>(GrownIn(driver, &Reading::run_queue_ns, step));
    const double lost_ns = cpus.LostIn(step, static_cast<double>(ran_ns), queued_ns);
    losses.push_back({static_cast<int64_t>(lost_ns), ran_ns});
  }
  return losses;
}

// Of steps: each rank's, if it had had as much to do as this one.
std::vector<std::vector<int64_t>> AtWorkOf(const std::vector<std::vector<StepLoss>>& losses,
                                           size_t rank) {
  std::vector<std::vector<int64_t>> times_ns;
  for (const std::vector<StepLoss>& other : losses) {
    std::vector<int64_t>& of_steps = times_ns.emplace_back();
    for (size_t step = 0; step < other.size(); ++step) {
      const auto [lost_ns, ran_ns] = other[step];
      const double as_much =
          ran_ns > 0 ? static_cast<double>(losses[rank][step].ran_ns) / static_cast<double>(ran_ns)
                     : 0;
      of_steps.push_back(static_cast<int64_t>(static_cast<double>(lost_ns) * as_much));
    }
  }
  return times_ns;
}

// Steps of one reading resemble each other: a block holds all of them.
size_t StepsInABlock(const JudgedRank& rank) {
  const size_t steps = rank.steps.size();
  const int64_t all_ns = std::max<int64_t>(1, AllOf(rank).length_ns());
  const int64_t pause_ns = CpuSteal(*rank.input).pause_ns();
  const auto of_reading =
      static_cast<size_t>(static_cast<double>(pause_ns) / static_cast<double>(all_ns) *
                          static_cast<double>(steps)) +
      1;
  return std::min(steps, std::max(BlockOf(steps), of_reading));
}

}  // namespace

CpuSteal::CpuSteal(const RankInput& rank) {
  if (rank.evidence == nullptr || !rank.evidence_process.has_value()) return;
  const OwnInterval within{rank.window.begin_ns - kMarginNs, rank.window.end_ns + kMarginNs};
  for (const evidence::StealSample& sample : rank.evidence->steal_samples) {
    if (sample.process != *rank.evidence_process) continue;
    if (sample.at_ns < within.begin_ns || sample.at_ns > within.end_ns) continue;
    readings_.push_back(
        {sample.at_ns + (sample.until_ns - sample.at_ns) / 2, sample.busy_ns, sample.stolen_ns});
  }
  if (readings_.size() < 2) return;
  usual_ = MeasuredIn({readings_.front().at_ns, readings_.back().at_ns});
}

// nullopt: they had nothing to do.
std::optional<double> CpuSteal::MeasuredIn(const OwnInterval& within) const {
  const int64_t stolen_ns = GrownIn(readings_, &Reading::stolen_ns, within);
  const int64_t all_ns = stolen_ns + GrownIn(readings_, &Reading::busy_ns, within);
  if (all_ns <= 0) return std::nullopt;
  return static_cast<double>(stolen_ns) / static_cast<double>(all_ns);
}

double CpuSteal::ShareIn(const OwnInterval& within) const {
  return MeasuredIn(within).value_or(*usual_);
}

double CpuSteal::LostIn(const OwnInterval& within, double ran_ns, double queued_ns) const {
  const double share = std::min(ShareIn(within), kShareMax);
  const double most_ns = static_cast<double>(within.length_ns()) - ran_ns - queued_ns;
  return std::clamp(ran_ns * share / (1 - share), 0.0, std::max(0.0, most_ns));
}

double CpuSteal::MostIn(const OwnInterval& within) const {
  return static_cast<double>(
      std::min(within.length_ns(), GrownIn(readings_, &Reading::stolen_ns, within)));
}

int64_t CpuSteal::pause_ns() const {
  int64_t longest_ns = 0;
  for (size_t i = 1; i < readings_.size(); ++i) {
    longest_ns = std::max(longest_ns, readings_[i].at_ns - readings_[i - 1].at_ns);
  }
  return longest_ns;
}

bool CpuSteal::Covers(const OwnInterval& within) const {
  if (readings_.empty()) return false;
  const int64_t covered_ns = std::min(within.end_ns, readings_.back().at_ns) -
                             std::max(within.begin_ns, readings_.front().at_ns);
  return static_cast<double>(covered_ns) >= kCoveredMin * static_cast<double>(within.length_ns());
}

double SleptOf(double left_ns, const Stolen& stolen, std::optional<double> found_ns) {
  const double most_ns = std::max(0.0, left_ns);
  if (!found_ns.has_value()) return std::max(0.0, most_ns - stolen.likely_ns);
  return std::clamp(*found_ns, std::max(0.0, most_ns - stolen.most_ns), most_ns);
}

std::optional<StealTime> StealTimeOf(const JudgedRank& rank) {
  const CpuSteal cpus(*rank.input);
  const std::vector<StepLoss> losses = LossesOf(rank, cpus);
  if (losses.empty()) return std::nullopt;
  int64_t lost_ns = 0;
  for (const StepLoss& loss : losses) lost_ns += loss.lost_ns;
  return StealTime{cpus.ShareIn(AllOf(rank)), lost_ns / static_cast<int64_t>(losses.size())};
}

std::vector<std::vector<StepLoss>> StealTimesOf(std::span<const JudgedRank> ranks) {
  std::vector<std::vector<StepLoss>> losses;
  for (const JudgedRank& rank : ranks) {
    losses.push_back(LossesOf(rank, CpuSteal(*rank.input)));
    if (losses.back().empty()) return {};
  }
  return losses;
}

std::optional<MoreStealTime> MoreStealOf(const std::vector<std::vector<StepLoss>>& losses,
                                         size_t rank, int64_t limit_ns,
                                         std::span<const JudgedRank> judged,
                                         std::span<const RankSummary> ranks) {
  if (losses.empty()) return std::nullopt;
  const std::vector<int64_t> more_ns = Others(AtWorkOf(losses, rank)).Excess(rank);
  size_t block = 0;
  for (const JudgedRank& one : judged) block = std::max(block, StepsInABlock(one));
  // Of one block alone nothing is certain.
  if (block * 2 > more_ns.size()) return std::nullopt;
  if (Bootstrap(more_ns, block).lo_ns <= limit_ns) return std::nullopt;
  std::vector<double> others;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i != rank) others.push_back(ranks[i].steal->share);
  }
  std::sort(others.begin(), others.end());
  // The lower one in the middle, as Others has it.
  return MoreStealTime{*ranks[rank].steal, others[(others.size() - 1) / 2], MeanOf(more_ns)};
}

}  // namespace syncline::analysis::why
