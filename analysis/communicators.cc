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

// Ranks send and receive as much.
bool ShowsWaits(std::string_view name) {
  constexpr std::string_view kKinds[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                         "AlltoAll"};
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
  Joiner(CommunicatorReport* report, std::vector<Part> parts)
      : report_(report), parts_(std::move(parts)) {
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
    for (const auto& [key, found] : by_key_) Match(key.first, found, all);
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
    part.member.placed = part.process->placed[part.communicator];
    for (const DeviceCollective& one : part.process->collectives) {
      if (one.communicator != part.communicator) continue;
      ++part.member.collectives;
      if (!one.sequence.has_value()) {
        ++report_->transfers;
      } else {
        by_key_[{part.process->names[one.name], *one.sequence}].push_back({index, &one});
      }
    }
  }

  // `found`: by part.
  void Match(const std::string& name, const std::vector<Found>& found, bool all) {
    for (size_t i = 1; i < found.size(); ++i) {
      if (found[i].part == found[i - 1].part) {
        ++report_->repeated;
        return;
      }
    }
    if (!all || found.size() < parts_.size()) {
      ++report_->incomplete;
      return;
    }
    const bool same = std::all_of(found.begin(), found.end(), [&](const Found& one) {
      return one.collective->bytes == found.front().collective->bytes;
    });
    if (!same) {
      ++report_->different;
    } else if (!ShowsWaits(name) || !AllPlaced()) {
      ++report_->other;
    } else {
      Wait(found);
    }
  }

  bool AllPlaced() const {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const Part& part) { return part.member.placed; });
  }

  void Wait(const std::vector<Found>& found) {
    CommunicatorWait wait;
    wait.begin = found.front().collective->begin;
    for (const Found& one : found) {
      wait.begin = std::min(wait.begin, one.collective->begin);
      wait.kernels_ns.push_back(one.collective->duration_ns());
    }
    const int64_t least_ns = *std::min_element(wait.kernels_ns.begin(), wait.kernels_ns.end());
    bool waits = false;
    const int64_t skew_ns = std::max(kCommunicatorSkewNs, least_ns / kSkewDivisor);
    for (const int64_t kernel_ns : wait.kernels_ns) {
      const int64_t longer_ns = kernel_ns - least_ns;
      wait.waited_ns.push_back(longer_ns < skew_ns ? 0 : longer_ns);
      waits = waits || wait.waited_ns.back() > 0;
    }
    for (size_t i = 0; i < found.size(); ++i) {
      CommunicatorMember& member = parts_[found[i].part].member;
      member.kernels_ns += wait.kernels_ns[i];
      member.waited_ns += wait.waited_ns[i];
      if (waits && wait.waited_ns[i] == 0) ++member.last_in;
    }
    report_->waits.push_back(std::move(wait));
  }

  CommunicatorReport* const report_;
  std::vector<Part> parts_;
  std::map<Key, std::vector<Found>> by_key_;
};

}  // namespace

std::vector<CommunicatorReport> CommunicatorsOf(std::span<const timeline::NodeResult> nodes) {
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
    Joiner(&report, std::move(of)).Join();
  }
  std::stable_sort(reports.begin(), reports.end(), [](const auto& a, const auto& b) {
    return std::tie(a.job, b.size, a.id) < std::tie(b.job, a.size, b.id);
  });
  return reports;
}

}  // namespace syncline::analysis
