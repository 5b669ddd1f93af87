// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/device_judged.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::analysis::why {
namespace {

constexpr uint64_t kOtherDevicePercent = 10;
constexpr int64_t kHostCollectivesDivisor = 100;  // of the steps

std::string Name(const DeviceRank& rank) {
  if (rank.rank < 0) return rank.source;
  return absl::StrCat("rank ", rank.rank);
}

DevicePartTable TableOf(const DeviceUse& use) {
  DevicePartTable table{};
  const auto set = [&](DevicePart part, int64_t ns) { table[static_cast<size_t>(part)] = ns; };
  set(DevicePart::kComputing, use.computing_ns);
  set(DevicePart::kCopies, use.copies_ns);
  set(DevicePart::kInput, use.loading_ns);
  set(DevicePart::kLaunch, use.unlaunched_ns - use.loading_ns);
  set(DevicePart::kNotStarted, use.unstarted_ns);
  set(DevicePart::kUnknown, use.unknown_ns);
  set(DevicePart::kCommunication, use.communication_ns);
  return table;
}

class Judge {
 public:
  Judge(std::span<const DeviceRank> ranks, DeviceAnswer* answer) : answer_(answer) {
    for (const DeviceRank& rank : ranks) {
      ranks_.emplace_back().given = &rank;
      answer_->recorded |= rank.recorded;
    }
    std::stable_sort(ranks_.begin(), ranks_.end(),
                     [](const auto& a, const auto& b) { return a.given->rank < b.given->rank; });
  }

  std::vector<JudgedDevice> Run() {
    for (JudgedDevice& rank : ranks_) TakeDevice(&rank);
    CheckRanks();
    if (!refused()) PairSteps();
    if (!refused()) CheckCollectives();
    if (!refused()) CheckWorld();
    return std::move(ranks_);
  }

 private:
  bool refused() const { return answer_->refusal != DeviceRefusal::kNone; }
  void Refuse(DeviceRefusal refusal, std::string text) {
    if (refused()) return;
    answer_->refusal = refusal;
    answer_->refusal_text = std::move(text);
  }

  // The device that the rank computes on.
  void TakeDevice(JudgedDevice* rank) {
    const timeline::ProcessDevices* devices = rank->given->devices;
    if (devices == nullptr || devices->work.empty()) {
      return Refuse(
          DeviceRefusal::kNoDeviceWork,
          absl::StrCat(Name(*rank->given),
                       rank->given->recorded
                           ? ": nothing of its device was recorded: start every rank of the job "
                             "with `syncline run --kineto`"
                           : ": no device did anything in its profile: `why` judges profiles of "
                             "jobs that compute on devices (jobs on CPUs: record them with "
                             "`syncline record`)"));
    }
    std::vector<DeviceReport> reports = DevicesOf(*devices, std::nullopt);
    uint64_t all = 0;
    size_t most = 0;
    for (size_t i = 0; i < reports.size(); ++i) {
      all += reports[i].work;
      if (reports[i].work > reports[most].work) most = i;
    }
    if ((all - reports[most].work) * 100 > all * kOtherDevicePercent) {
      Refuse(DeviceRefusal::kSeveralDevices,
             absl::StrCat(Name(*rank->given), " computes on ", reports.size(),
                          " devices: only ranks with one device each are judged"));
    }
    rank->device = static_cast<uint32_t>(most);
    rank->report = std::move(reports[most]);
    using timeline::StepsBy;
    const bool paired = rank->report.steps_by == StepsBy::kProfiler;
    const bool optimizer = rank->report.steps_by == StepsBy::kOptimizer &&
                           (rank->given->recorded || ranks_.size() == 1);
    if (!rank->report.has_steps || (!paired && !optimizer)) {
      Refuse(DeviceRefusal::kNoSteps,
             absl::StrCat(Name(*rank->given),
                          rank->given->recorded
                              ? ": no two steps of its optimizer ended while its device was "
                                "recorded: record for longer (--for)"
                              : ": the profile has no ProfilerStep#, by which the steps of ranks "
                                "are paired: only PyTorch's profiles are judged, and the program "
                                "must call the profiler's step() after each step"));
    }
  }

  void CheckRanks() {
    for (size_t i = 0; i < ranks_.size() && ranks_.size() > 1; ++i) {
      const DeviceRank& rank = *ranks_[i].given;
      if (rank.rank < 0) {
        Refuse(DeviceRefusal::kNoRank,
               absl::StrCat(rank.source,
                            ": of which rank it is, is not known: neither the file nor "
                            "its name says it (rank3.json.gz)"));
      } else if (i > 0 && ranks_[i - 1].given->rank == rank.rank) {
        Refuse(DeviceRefusal::kRanksDisagree,
               absl::StrCat("two processes work as rank ", rank.rank, " (",
                            ranks_[i - 1].given->source, ", ", rank.source,
                            "): give the profiles of one job"));
      }
    }
  }

  // Steps that all ranks have, with as many kernels of collectives. The last one before a pause of
  // a profile is not whole.
  void PairSteps() {
    std::vector<std::map<std::string, std::vector<const DeviceStep*>>> by_name(ranks_.size());
    std::set<std::string> names;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      for (const DeviceStep& step : ranks_[i].report.steps) {
        if (step.name.empty()) continue;
        by_name[i][step.name].push_back(&step);
        if (!step.last) names.insert(step.name);
      }
    }
    if (ranks_.size() == 1) {
      for (const DeviceStep& step : ranks_[0].report.steps) {
        if (!step.last) ranks_[0].steps.push_back(step);
      }
    } else {
      for (const auto& [name, first] : by_name[0]) {
        if (!names.contains(name) || !IsPaired(by_name, name)) continue;
        for (size_t i = 0; i < ranks_.size(); ++i) {
          ranks_[i].steps.push_back(*by_name[i].at(name)[0]);
        }
      }
      answer_->unpaired_steps = names.size() - ranks_[0].steps.size();
    }
    for (JudgedDevice& rank : ranks_) {
      std::stable_sort(rank.steps.begin(), rank.steps.end(),
                       [](const DeviceStep& a, const DeviceStep& b) { return a.begin < b.begin; });
      for (const DeviceStep& step : rank.steps) {
        rank.tables.push_back(TableOf(step.use));
        rank.device_ns.push_back(step.duration_ns() - step.use.communication_ns);
        rank.own_ns.push_back(std::max(rank.device_ns.back(), step.program_ns));
      }
    }
    answer_->steps = ranks_[0].steps.size();
    if (answer_->steps > 0) return;
    Refuse(names.empty() ? DeviceRefusal::kNoSteps : DeviceRefusal::kRanksDisagree,
           !names.empty()
               ? "no step was seen on all ranks with as many kernels of collectives: ranks that "
                 "run different programs are not judged, nor those whose profiles begin at "
                 "different ones of several optimizers"
           : answer_->recorded
               ? "the recording has no two steps, one after the other, in which the program "
                 "launches a collective of all ranks: record for longer (--for)"
               : "the profiles have no two steps, one after the other: profile more of "
                 "them, e.g. torch.profiler.schedule(wait=5, warmup=5, active=20)");
  }

  static bool IsPaired(
      std::span<const std::map<std::string, std::vector<const DeviceStep*>>> by_name,
      const std::string& name) {
    const DeviceStep* first = nullptr;
    for (const auto& steps : by_name) {
      const auto found = steps.find(name);
      if (found == steps.end() || found->second.size() != 1 || found->second[0]->last) return false;
      if (first == nullptr) first = found->second[0];
      if (found->second[0]->collectives != first->collectives) return false;
    }
    return true;
  }

  void CheckCollectives() {
    for (const JudgedDevice& rank : ranks_) {
      int64_t steps_ns = 0;
      int64_t host_ns = 0;
      for (const DeviceStep& step : rank.steps) {
        answer_->collectives |= step.collectives > 0;
        steps_ns += step.program.end.ns - step.program.begin.ns;
        host_ns += step.program_collectives_ns;
        if (step.peer_to_peer && ranks_.size() > 1) {
          Refuse(DeviceRefusal::kPeerToPeer,
                 absl::StrCat(Name(*rank.given), " sends to single ranks in ", step.name,
                              ": stages of a pipeline do different work by design, and are not "
                              "judged"));
        }
      }
      if (host_ns * kHostCollectivesDivisor <= steps_ns) continue;
      if (ranks_.size() == 1) {
        answer_->host_collectives = true;
        answer_->notes.push_back(absl::StrCat(
            Name(*rank.given),
            " runs collectives on the host (Gloo): its device waits for a launch also while its "
            "program waits for another rank"));
      } else {
        Refuse(DeviceRefusal::kHostCollectives,
               absl::StrCat(Name(*rank.given),
                            " runs collectives on the host (Gloo): on its device, waiting for "
                            "another rank looks like waiting for the program; `syncline report "
                            "--section devices` says what each device did"));
      }
    }
  }

  // Of a job some of whose ranks are not here, one of these may be later than all.
  void CheckWorld() {
    int32_t world = -1;
    for (const JudgedDevice& rank : ranks_) {
      answer_->world_size = std::max(answer_->world_size, rank.given->world_size);
      world = std::max({world, rank.given->world_size, rank.given->rank + 1});
    }
    if (world <= static_cast<int32_t>(ranks_.size())) return;
    answer_->incomplete = ranks_.size() > 1;
    answer_->notes.push_back(
        absl::StrCat("the job has ", world, " ranks, and the profiles of ", ranks_.size(),
                     ranks_.size() == 1 ? " of them are here"
                                        : " of them are here: one of the others may be "
                                          "later than all that are"));
  }

  std::vector<JudgedDevice> ranks_;
  DeviceAnswer* const answer_;
};

}  // namespace

std::vector<JudgedDevice> JudgeDevices(std::span<const DeviceRank> ranks, DeviceAnswer* answer) {
  return Judge(ranks, answer).Run();
}

}  // namespace syncline::analysis::why
