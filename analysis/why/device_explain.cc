// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_explain.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/why/device_judged.h"
#include "analysis/why/device_starts.h"
#include "analysis/why/kernel_work.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kLimitDivisor = 50;  // of the step: 2 %
constexpr int64_t kLimitNs = 100'000;
constexpr int64_t kWideFactor = 3;  // of that limit
constexpr int64_t kEverybodyPercent = 15;
constexpr int64_t kRotatingDivisor = 20;  // of the step
constexpr double kShown = 0.95;
constexpr double kAllRanksWrong = 0.02;  // of healthy jobs, at most, both sides, all ranks together

class Explainer {
 public:
  explicit Explainer(std::span<const DeviceRank> ranks) : ranks_(JudgeDevices(ranks, &answer_)) {}

  DeviceAnswer Explain() {
    if (answer_.refusal != DeviceRefusal::kNone) return std::move(answer_);
    Summarise();
    if (ranks_.size() > 1 && answer_.collectives) Compare();
    return std::move(answer_);
  }

 private:
  void Summarise() {
    const auto steps = static_cast<int64_t>(answer_.steps);
    for (const JudgedDevice& rank : ranks_) {
      DeviceRankSummary summary;
      summary.rank = rank.given->rank;
      summary.source = rank.given->source;
      summary.device = rank.report.device;
      int64_t steps_ns = 0;
      int64_t program_ns = 0;
      for (const DeviceStep& step : rank.steps) {
        steps_ns += step.duration_ns();
        program_ns += step.program_ns;
      }
      summary.mean_step_ns = steps_ns / steps;
      summary.mean = MeanParts(std::span<const DevicePartTable>(rank.tables), summary.mean_step_ns);
      summary.mean_own_ns = MeanOf(rank.own_ns);
      summary.mean_program_ns = program_ns / steps;
      answer_.mean_step_ns += summary.mean_step_ns / static_cast<int64_t>(ranks_.size());
      answer_.ranks.push_back(std::move(summary));
    }
    for (size_t part = 0; part < kDeviceParts; ++part) {
      const auto which = static_cast<DevicePart>(part);
      if (which == DevicePart::kComputing || which == DevicePart::kUnknown) continue;
      const bool all = std::all_of(
          answer_.ranks.begin(), answer_.ranks.end(), [&](const DeviceRankSummary& rank) {
            return rank.mean[part] * 100 >= rank.mean_step_ns * kEverybodyPercent;
          });
      // In a collective ranks also wait for the last one to come, who does not wait.
      if (all && (which != DevicePart::kCommunication || IsCommunicationLong())) {
        answer_.everybody.push_back(which);
      }
    }
    std::stable_sort(answer_.everybody.begin(), answer_.everybody.end(),
                     [&](DevicePart a, DevicePart b) {
                       return answer_.ranks[0].mean[static_cast<size_t>(a)] >
                              answer_.ranks[0].mean[static_cast<size_t>(b)];
                     });
  }

  bool IsCommunicationLong() const {
    const auto part = static_cast<size_t>(DevicePart::kCommunication);
    int64_t least_ns = 0;
    for (size_t step = 0; step < answer_.steps; ++step) {
      int64_t least = INT64_MAX;
      for (const JudgedDevice& rank : ranks_) least = std::min(least, rank.tables[step][part]);
      least_ns += least;
    }
    return least_ns / static_cast<int64_t>(answer_.steps) * 100 >=
           answer_.mean_step_ns * kEverybodyPercent;
  }

  // Steps next to each other resemble each other: means of a few of them vary independently.
  size_t Block() const { return answer_.steps < 15 ? 1 : answer_.steps < 60 ? 3 : 6; }

  // The mean of one value a step, with the interval that holds `confidence` of it.
  MeanEstimate Estimate(std::span<const int64_t> values, double confidence = kShown) const {
    return StudentMean(values, Block(), confidence);
  }

  int64_t LimitNs() const {
    return std::max<int64_t>(kLimitNs, answer_.mean_step_ns / kLimitDivisor);
  }

  // Whether the mean is certainly above the limit, though as many ranks were looked at.
  bool IsAbove(std::span<const int64_t> values) const {
    const double confidence = 1 - kAllRanksWrong / static_cast<double>(ranks_.size());
    return answer_.steps >= kDeviceStepsMin && Estimate(values, confidence).lo_ns > LimitNs();
  }

  // Of each step, the rank's value less the mean of the others. Ranks that take turns all exceed
  // the others' median now and then; the mean they do not.
  static std::vector<int64_t> AboveMean(std::span<const std::vector<int64_t>> values, size_t rank) {
    std::vector<int64_t> above;
    for (size_t step = 0; step < values[rank].size(); ++step) {
      int64_t sum = 0;
      for (const std::vector<int64_t>& one : values) sum += one[step];
      above.push_back(values[rank][step] -
                      (sum - values[rank][step]) / static_cast<int64_t>(values.size() - 1));
    }
    return above;
  }

  // By how much the largest mean of `late` exceeds that of all others. Ranks that do not wait for
  // each other in every step make up for a long one in the next: then the means count.
  static int64_t AboveMeansOf(std::span<const std::vector<int64_t>> own,
                              const std::set<size_t>& late) {
    int64_t of_late = 0;
    int64_t of_others = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t& largest = late.contains(i) ? of_late : of_others;
      largest = std::max(largest, MeanOf(own[i]));
    }
    return of_late - of_others;
  }

  void Compare() {
    std::vector<std::vector<int64_t>> own;
    std::vector<std::vector<int64_t>> device;
    for (const JudgedDevice& rank : ranks_) {
      own.push_back(rank.own_ns);
      device.push_back(rank.device_ns);
    }
    const Others others(own);
    const Others devices(device);
    bool is_hidden = false;  // ranks are waited for, and own work does not show it
    std::vector<DeviceFinding> all;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const std::vector<int64_t> leads = others.Excess(i);
      DeviceFinding finding;
      finding.index = i;
      // All devices' steps are as long in the mean: so much longer the others wait in collectives.
      // A program that is slow while its device communicates holds nobody up.
      const std::vector<int64_t> waits = devices.Excess(i);
      finding.lead = Estimate(leads);
      const MeanEstimate waited = Estimate(waits);
      if (waited.est_ns < finding.lead.est_ns) finding.lead = waited;
      int64_t cost_ns = 0;
      for (size_t step = 0; step < leads.size(); ++step) {
        const int64_t largest = others.Largest(i, step);
        if (own[i][step] >= largest) ++finding.most_in;
        cost_ns += std::max(own[i][step], largest) -
                   std::max(std::min(own[i][step], others.Median(i, step)), largest);
      }
      finding.cost_ns =
          std::min(std::max(cost_ns / static_cast<int64_t>(answer_.steps), AboveMeansOf(own, {i})),
                   std::max<int64_t>(0, MeanOf(waits)));
      const bool is_waited_for = IsAbove(waits) && IsAbove(AboveMean(device, i));
      if (is_waited_for && IsAbove(leads) && IsAbove(AboveMean(own, i))) {
        answer_.findings.push_back(finding);
      } else if (is_waited_for && finding.lead.est_ns * 2 < waited.est_ns) {
        is_hidden = true;
      }
      all.push_back(std::move(finding));
    }
    const auto by_lead = [](const DeviceFinding& a, const DeviceFinding& b) {
      return a.lead.est_ns > b.lead.est_ns;
    };
    std::stable_sort(answer_.findings.begin(), answer_.findings.end(), by_lead);
    for (DeviceFinding& finding : answer_.findings) AddCauses(&finding);
    AddRotating(own);
    AddJointCost(own);
    if (!answer_.findings.empty()) {
      answer_.verdict = DeviceVerdict::kLate;
      return;
    }
    std::stable_sort(all.begin(), all.end(), by_lead);
    answer_.closest = all[0];
    const bool wide = all[0].lead.hi_ns > kWideFactor * LimitNs();
    answer_.verdict = answer_.steps < kDeviceStepsMin || wide || is_hidden
                          ? DeviceVerdict::kUndecided
                          : DeviceVerdict::kNobody;
    if (!is_hidden) return;
    answer_.notes.emplace_back(
        "the others wait for a rank in collectives, and the programs' own times do not show it: "
        "programs may wait in ways that no call of the profile shows (a loop that asks whether a "
        "collective is done, e.g. TORCH_NCCL_BLOCKING_WAIT=1), or are all so slow to launch that "
        "this wait costs nothing");
  }

  // Of each rank and step one value.
  template <class Of>
  std::vector<std::vector<int64_t>> ValuesOf(Of of) const {
    std::vector<std::vector<int64_t>> values(ranks_.size());
    for (size_t i = 0; i < ranks_.size(); ++i) {
      for (size_t step = 0; step < ranks_[i].steps.size(); ++step) {
        values[i].push_back(of(ranks_[i], step));
      }
    }
    return values;
  }

  // `unhidden`, of each step: the rank's excess by another measure, which kernels of collectives do
  // not hide on the ranks that wait in them; the smaller one counts.
  void AddCause(DevicePart part, const std::optional<std::vector<int64_t>>& unhidden,
                DeviceFinding* finding) {
    const auto of_device = ValuesOf([part](const JudgedDevice& rank, size_t step) {
      return rank.tables[step][static_cast<size_t>(part)];
    });
    const std::vector<int64_t> device = Others(of_device).Excess(finding->index);
    if (!IsAbove(device)) return;
    DeviceCause cause;
    cause.part = part;
    cause.amount = Estimate(device);
    cause.own_ns = MeanOf(of_device[finding->index]);
    if (unhidden.has_value()) {
      if (!IsAbove(*unhidden)) {
        if (part == DevicePart::kLaunch) finding->unseen_launch_ns = cause.amount.est_ns;
        return;
      }
      const MeanEstimate amount = Estimate(*unhidden);
      if (amount.est_ns <= cause.amount.est_ns) cause.amount = amount;
    }
    if (part == DevicePart::kComputing) cause.work = WorkOf(finding->index);
    finding->causes.push_back(std::move(cause));
  }

  template <class Of>
  std::vector<int64_t> ExcessOf(size_t rank, Of of) const {
    const auto values = ValuesOf(of);
    return Others(values).Excess(rank);
  }

  std::vector<int64_t> SlowerStartsOf(size_t rank) const {
    std::vector<std::vector<Starts>> starts;
    for (const JudgedDevice& one : ranks_) {
      starts.push_back(StartsOf(*one.given->devices, one.device, ProgramStepsOf(one)));
    }
    return SlowerStarts(starts, rank);
  }

  // What the rank copies longer than the others, also while its device computes or communicates.
  std::vector<int64_t> LongerCopies(size_t rank) const {
    std::vector<std::vector<int64_t>> copied;
    for (const JudgedDevice& one : ranks_) {
      copied.push_back(CopiedNs(*one.given->devices, one.device, ProgramStepsOf(one)));
    }
    return Others(copied).Excess(rank);
  }

  void AddCauses(DeviceFinding* finding) {
    const size_t rank = finding->index;
    AddCause(DevicePart::kComputing, std::nullopt, finding);
    AddCause(DevicePart::kCopies, LongerCopies(rank), finding);
    AddCause(DevicePart::kNotStarted, SlowerStartsOf(rank), finding);
    // What the program takes beside a busy device holds nobody up.
    AddCause(DevicePart::kInput,
             ExcessOf(rank, [](const JudgedDevice& one,
                               size_t step) { return one.steps[step].program_loading_ns; }),
             finding);
    AddCause(DevicePart::kLaunch,
             ExcessOf(rank,
                      [](const JudgedDevice& one, size_t step) {
                        return one.steps[step].program_ns - one.steps[step].program_loading_ns;
                      }),
             finding);
    std::stable_sort(finding->causes.begin(), finding->causes.end(),
                     [](const DeviceCause& a, const DeviceCause& b) {
                       return a.amount.est_ns > b.amount.est_ns;
                     });
    int64_t explained_ns = 0;
    for (const DeviceCause& cause : finding->causes) explained_ns += cause.amount.est_ns;
    finding->unexplained_ns = std::max<int64_t>(0, finding->lead.est_ns - explained_ns);
    finding->unseen_launch_ns = std::min(finding->unseen_launch_ns, finding->unexplained_ns);
    if (finding->unseen_launch_ns < LimitNs()) finding->unseen_launch_ns = 0;
  }

  static std::vector<timeline::Interval> ProgramStepsOf(const JudgedDevice& rank) {
    std::vector<timeline::Interval> steps;
    for (const DeviceStep& step : rank.steps) steps.push_back(step.program);
    return steps;
  }

  KernelWork WorkOf(size_t rank) {
    std::vector<KernelSums> sums;
    for (const JudgedDevice& one : ranks_) {
      sums.push_back(KernelsOf(*one.given->devices, one.device, ProgramStepsOf(one)));
    }
    return CompareKernels(sums, rank, answer_.steps);
  }

  // Without one of several equally late ranks the others still hold the job up.
  void AddJointCost(std::span<const std::vector<int64_t>> own) {
    if (answer_.findings.size() < 2 || answer_.findings.size() == ranks_.size()) return;
    std::set<size_t> late;
    for (const DeviceFinding& finding : answer_.findings) late.insert(finding.index);
    int64_t cost_ns = 0;
    for (size_t step = 0; step < answer_.steps; ++step) {
      std::vector<int64_t> of_others;
      int64_t largest = 0;
      for (size_t i = 0; i < own.size(); ++i) {
        largest = std::max(largest, own[i][step]);
        if (!late.contains(i)) of_others.push_back(own[i][step]);
      }
      cost_ns += largest - std::min(largest, *std::max_element(of_others.begin(), of_others.end()));
    }
    answer_.joint_cost_ns =
        std::max(cost_ns / static_cast<int64_t>(answer_.steps), AboveMeansOf(own, late));
  }

  // What it costs that another rank has most own work from step to step.
  void AddRotating(std::span<const std::vector<int64_t>> own) {
    int64_t largest_ns = 0;
    for (size_t step = 0; step < answer_.steps; ++step) {
      int64_t largest = 0;
      for (const std::vector<int64_t>& rank : own) largest = std::max(largest, rank[step]);
      largest_ns += largest;
    }
    int64_t most_ns = 0;
    for (const std::vector<int64_t>& rank : own) most_ns = std::max(most_ns, MeanOf(rank));
    const int64_t rotating_ns = largest_ns / static_cast<int64_t>(answer_.steps) - most_ns;
    if (rotating_ns > answer_.mean_step_ns / kRotatingDivisor) answer_.rotating_ns = rotating_ns;
  }

  DeviceAnswer answer_;
  std::vector<JudgedDevice> ranks_;  // by rank
};

}  // namespace

DeviceAnswer ExplainDevices(std::span<const DeviceRank> ranks) {
  return Explainer(ranks).Explain();
}

}  // namespace syncline::analysis::why
