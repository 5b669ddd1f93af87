// SPDX-License-Identifier: Apache-2.0
#include "analysis/communicators.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace syncline::analysis {
namespace {

using timeline::DeviceCollective;
using timeline::ProcessCollectives;

constexpr int64_t kSkewDivisor = 10;  // of the shortest kernel

// How far the clocks of two nodes may be apart by their models: this at least, also where there is
// none, and this at most, because stamps that are off by a collective would not be found out.
constexpr int64_t kApartMinNs = 200'000;
constexpr int64_t kApartMaxNs = 2'000'000;

// Every rank's result needs every rank's part.
bool EverybodyWaits(std::string_view name) {
  constexpr std::string_view kKinds[] = {"AllReduce", "AllGather", "ReduceScatter"};
  return std::find(std::begin(kKinds), std::end(kKinds), name) != std::end(kKinds);
}

// One rank's part of a communicator.
struct Part {
  const ProcessCollectives* process = nullptr;
  uint32_t communicator = 0;  // index into process->communicators
  CommunicatorMember member;
};

class Joiner {
 public:
  Joiner(CommunicatorReport* report, std::vector<Part> parts, const Models& models,
         const std::optional<timeline::Interval>& window)
      : report_(report), parts_(std::move(parts)), models_(models), window_(window) {
    std::sort(parts_.begin(), parts_.end(),
              [](const Part& a, const Part& b) { return a.member.rank < b.member.rank; });
  }

  void Join() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const uint32_t rank = parts_[i].member.rank;
      report_->twice |= rank >= report_->size || (i > 0 && parts_[i - 1].member.rank == rank);
      Collect(i);
    }
    const bool all = parts_.size() == report_->size && !report_->twice;
    for (const auto& [key, found] : by_key_) Match(key, found, all);
    for (const Key& key : incomplete_) {
      const auto range = matched_.find(key.first);
      const bool edge = range != matched_.end() &&
                        (key.second < range->second.first || key.second > range->second.second);
      report_->incomplete += edge ? 0 : 1;
    }
    AddUp();
    for (Part& part : parts_) report_->members.push_back(std::move(part.member));
    std::sort(report_->waits.begin(), report_->waits.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
  }

 private:
  struct Found {
    size_t part = 0;
    const DeviceCollective* collective = nullptr;
  };
  using Key = std::pair<std::string, uint64_t>;  // function, number

  void Collect(size_t index) {
    Part& part = parts_[index];
    const timeline::CommunicatorClock& clock = part.process->clocks[part.communicator];
    part.member.placed = clock.placed;
    skew_ns_ = std::max(skew_ns_, 2 * clock.step_ns);
    const std::vector<DeviceCollective>& all = part.process->collectives;
    const auto first = std::partition_point(all.begin(), all.end(), [&](const auto& one) {
      return one.communicator < part.communicator;
    });
    for (auto at = first; at != all.end() && at->communicator == part.communicator; ++at) {
      const DeviceCollective& one = *at;
      ++part.member.collectives;
      if (!one.sequence.has_value()) {
        ++report_->transfers;
      } else {
        by_key_[{part.process->names[one.name], *one.sequence}].push_back({index, &one});
      }
    }
  }

  // `found`: by part.
  void Match(const Key& key, const std::vector<Found>& found, bool all) {
    const std::string& name = key.first;
    for (size_t i = 1; i < found.size(); ++i) {
      if (found[i].part == found[i - 1].part) {
        ++report_->repeated;
        return;
      }
    }
    if (!all || found.size() < parts_.size()) {
      incomplete_.push_back(key);
      return;
    }
    const auto [range, is_first] = matched_.try_emplace(name, key.second, key.second);
    if (!is_first) range->second.second = key.second;
    const bool same = std::all_of(found.begin(), found.end(), [&](const Found& one) {
      return one.collective->bytes == found.front().collective->bytes;
    });
    if (!same) {
      ++report_->different;
    } else if (!EverybodyWaits(name) || !AllPlaced()) {
      ++report_->other;
    } else if (IsImpossible(found)) {
      ++report_->impossible;
    } else {
      Wait(found);
    }
  }

  bool AllPlaced() const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const Part& part) { return part.member.placed; });
  }

  // By how much the timeline may be wrong about the clock of its node; 0 where that is not known.
  int64_t ClockBoundNs(const Found& one) const {
    const ClockId clock{parts_[one.part].process->key.node, ClockKind::kRaw};
    if (models_.proven == nullptr || !models_.proven->Knows(clock)) return 0;
    const TimelineEstimate at =
        models_.proven->Locate(models_.proven->Unlocate(clock, one.collective->begin));
    return at.bounded() ? at.bound_ns() : 0;
  }

  // One's kernel was over before another's had begun.
  bool IsImpossible(const std::vector<Found>& found) const {
    const auto begin_ns = [](const Found& one) {
      return one.collective->begin.ns - one.collective->bound_ns;
    };
    const auto end_ns = [](const Found& one) {
      return one.collective->begin.ns + one.collective->duration_ns() + one.collective->bound_ns;
    };
    const auto last =
        std::max_element(found.begin(), found.end(),
                         [&](const Found& a, const Found& b) { return begin_ns(a) < begin_ns(b); });
    const auto first =
        std::min_element(found.begin(), found.end(),
                         [&](const Found& a, const Found& b) { return end_ns(a) < end_ns(b); });
    const int64_t late_ns = begin_ns(*last) - end_ns(*first);
    if (late_ns <= kApartMinNs) return false;
    return late_ns > std::min(kApartMaxNs, ClockBoundNs(*last) + ClockBoundNs(*first));
  }

  void Wait(const std::vector<Found>& found) {
    CommunicatorWait wait;
    for (const Found& one : found) {
      wait.begins.push_back(one.collective->begin);
      wait.kernels_ns.push_back(one.collective->duration_ns());
    }
    wait.begin = *std::min_element(wait.begins.begin(), wait.begins.end());
    if (window_.has_value() && !window_->Contains(wait.begin)) return;
    const int64_t least_ns = *std::min_element(wait.kernels_ns.begin(), wait.kernels_ns.end());
    wait.skew_ns = std::max(skew_ns_, least_ns / kSkewDivisor);
    bool waits = false;
    for (const int64_t kernel_ns : wait.kernels_ns) {
      wait.waited_ns.push_back(kernel_ns - least_ns);
      waits = waits || wait.waited_ns.back() >= wait.skew_ns;
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (waits && wait.waited_ns[i] < wait.skew_ns) ++parts_[found[i].part].member.last_in;
    }
    report_->waits.push_back(std::move(wait));
  }

  void AddUp() {
    if (report_->waits.empty()) return;
    for (size_t i = 0; i < parts_.size(); ++i) {
      std::vector<Stretch> kernels;
      std::vector<Stretch> waits;
      for (const CommunicatorWait& wait : report_->waits) {
        kernels.push_back({wait.begins[i].ns, wait.kernels_ns[i]});
        waits.push_back({wait.begins[i].ns, wait.waited_ns[i]});
      }
      JoinStretches(&kernels);
      JoinStretches(&waits);
      for (const Stretch& one : kernels) parts_[i].member.kernels_ns += one.length_ns;
      for (const Stretch& one : waits) parts_[i].member.waited_ns += one.length_ns;
    }
  }

  CommunicatorReport* const report_;
  std::vector<Part> parts_;
  const Models& models_;
  const std::optional<timeline::Interval> window_;
  int64_t skew_ns_ = kCommunicatorSkewNs;
  std::map<std::string, std::pair<uint64_t, uint64_t>> matched_;  // first and last, by function
  std::vector<Key> incomplete_;
  std::map<Key, std::vector<Found>> by_key_;
};

}  // namespace

void JoinStretches(std::vector<Stretch>* stretches) {
  std::sort(stretches->begin(), stretches->end(),
            [](const Stretch& a, const Stretch& b) { return a.begin_ns < b.begin_ns; });
  size_t last = 0;
  for (size_t i = 1; i < stretches->size(); ++i) {
    Stretch& before = (*stretches)[last];
    const Stretch& one = (*stretches)[i];
    if (one.begin_ns <= before.begin_ns + before.length_ns) {
      before.length_ns = std::max(before.length_ns, one.begin_ns + one.length_ns - before.begin_ns);
    } else {
      (*stretches)[++last] = one;
    }
  }
  if (!stretches->empty()) stretches->resize(last + 1);
}

std::vector<CommunicatorReport> CommunicatorsOf(std::span<const timeline::NodeResult> nodes,
                                                const Models& models,
                                                const std::optional<timeline::Interval>& window) {
  std::map<std::tuple<std::string, uint64_t, uint32_t>, std::vector<Part>> parts;
  for (const timeline::NodeResult& node : nodes) {
    for (const ProcessCollectives& process : node.device_collectives) {
      const auto facts = std::find_if(node.processes.begin(), node.processes.end(),
                                      [&](const auto& one) { return one.key == process.key; });
      for (uint32_t i = 0; i < process.communicators.size(); ++i) {
        const timeline::Communicator& communicator = process.communicators[i];
        Part part;
        part.process = &process;
        part.communicator = i;
        part.member.key = process.key;
        part.member.process = process.process;
        part.member.rank = communicator.rank;
        std::string job;
        if (facts != node.processes.end()) {
          part.member.job_rank = facts->rank;
          job = facts->job;
        }
        parts[{job, communicator.id, communicator.size}].push_back(std::move(part));
      }
    }
  }
  std::vector<CommunicatorReport> reports;
  for (auto& [key, of] : parts) {
    CommunicatorReport& report = reports.emplace_back();
    std::tie(report.job, report.id, report.size) = key;
    Joiner(&report, std::move(of), models, window).Join();
  }
  std::stable_sort(reports.begin(), reports.end(), [](const auto& a, const auto& b) {
    return std::tie(a.job, b.size, a.id) < std::tie(b.job, a.size, b.id);
  });
  return reports;
}

}  // namespace syncline::analysis
