// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/collective_explain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kSlices = 30;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kLimitNs = kSecondNs / 50;  // of each second: 2 %
constexpr int64_t kWideFactor = 3;            // of that limit
constexpr int64_t kRotatingNs = kSecondNs / 20;
constexpr double kShown = 0.95;
constexpr double kAllRanksWrong = 0.02;  // of healthy jobs, at most, all ranks together
constexpr uint64_t kUnmatchedPercent = 5;

class Explainer {
 public:
  Explainer(std::span<const CommunicatorReport> communicators, std::span<const std::string> nodes,
            int32_t ranks)
      : communicators_(communicators), nodes_(nodes), world_(ranks) {}

  CollectiveAnswer Explain() {
    answer_.job = communicators_.front().job;
    TakeRanks();
    if (refused()) return std::move(answer_);
    TakeWaits();
    if (refused()) return std::move(answer_);
    Compare();
    return std::move(answer_);
  }

 private:
  bool refused() const { return answer_.refusal != CollectiveRefusal::kNone; }
  void Refuse(CollectiveRefusal refusal, std::string text) {
    answer_.refusal = refusal;
    answer_.refusal_text = std::move(text);
  }

  // The communicator of all ranks says who they are.
  void TakeRanks() {
    const CommunicatorReport* all = nullptr;
    uint64_t transfers = 0;
    for (const CommunicatorReport& one : communicators_) {
      transfers += one.transfers;
      if (one.size < 2 || !one.has_all()) continue;
      if (all == nullptr || one.size > all->size) all = &one;
    }
    const uint32_t largest = communicators_.front().size;
    const uint32_t wanted = world_ > 0 ? static_cast<uint32_t>(world_) : largest;
    if (all == nullptr || all->size < std::max(wanted, largest)) {
      return Refuse(CollectiveRefusal::kNoCommonCommunicator,
                    absl::StrCat("no communicator of all ", std::max(wanted, largest),
                                 " ranks was recorded on each of them: start every rank with "
                                 "`syncline run --nccl`; who waits in each communicator says "
                                 "`syncline report --section nccl`"));
    }
    if (transfers > 0) {
      return Refuse(CollectiveRefusal::kPeerToPeer,
                    absl::StrCat("ranks send to single ranks (", transfers,
                                 " sends and receives): stages of a pipeline do different work by "
                                 "design, and who waits in all-to-alls that are made of them does "
                                 "not show; `syncline report --section nccl` says who waits in "
                                 "each communicator"));
    }
    if (world_ <= 0) {
      answer_.notes.push_back(
          absl::StrCat("the job does not say how many ranks it has: taken for "
                       "all are the ",
                       all->size, " of its largest communicator"));
    }
    for (const CommunicatorMember& member : all->members) {
      CollectiveRank& rank = answer_.ranks.emplace_back();
      rank.rank = member.job_rank >= 0 ? member.job_rank : static_cast<int32_t>(member.rank);
      rank.node = nodes_[member.key.node];
      rank.pid = member.key.pid;
      index_.emplace(member.key, answer_.ranks.size() - 1);
    }
  }

  // Of each slice of the time, what each rank waits; later ns of each second.
  void TakeWaits() {
    TimelineTime first{INT64_MAX};
    TimelineTime last{INT64_MIN};
    for (const CommunicatorReport& one : communicators_) {
      answer_.unmatched += one.repeated + one.incomplete + one.different;
      other_ += one.other;
      for (const CommunicatorWait& wait : one.waits) {
        ++answer_.collectives;
        first = std::min(first, wait.begin);
        last = std::max(last, wait.begin);
        answer_.waited_in += std::any_of(wait.waited_ns.begin(), wait.waited_ns.end(),
                                         [](int64_t ns) { return ns > 0; })
                                 ? 1
                                 : 0;
      }
    }
    if (answer_.collectives == 0 || first == last) {
      return Refuse(CollectiveRefusal::kNoCollectives,
                    "no two collectives that show who waits (all-reduce, all-gather, "
                    "reduce-scatter, broadcast) were recorded on all of their ranks: record for "
                    "longer (--for), or see `syncline report --section nccl`");
    }
    answer_.window_ns = last.ns - first.ns;
    waited_.assign(answer_.ranks.size(), std::vector<int64_t>(kSlices, 0));
    for (const CommunicatorReport& one : communicators_) {
      for (const CommunicatorWait& wait : one.waits) Add(one, wait, first);
      for (const CommunicatorMember& member : one.members) {
        const auto rank = index_.find(member.key);
        if (rank == index_.end()) continue;
        answer_.ranks[rank->second].kernels_ns += OfEachSecond(member.kernels_ns);
        answer_.ranks[rank->second].waited_ns += OfEachSecond(member.waited_ns);
        answer_.ranks[rank->second].last_in += member.last_in;
      }
    }
    for (std::vector<int64_t>& slices : waited_) {
      for (int64_t& ns : slices) ns = OfEachSecond(ns * static_cast<int64_t>(kSlices));
    }
    NoteWhatIsMissing();
  }

  int64_t OfEachSecond(int64_t ns) const {
    return static_cast<int64_t>(static_cast<double>(ns) / static_cast<double>(answer_.window_ns) *
                                static_cast<double>(kSecondNs));
  }

  void Add(const CommunicatorReport& communicator, const CommunicatorWait& wait,
           TimelineTime first) {
    const double part = static_cast<double>(wait.begin.ns - first.ns) /
                        static_cast<double>(answer_.window_ns) * static_cast<double>(kSlices);
    const size_t slice = std::min(kSlices - 1, static_cast<size_t>(part));
    for (size_t i = 0; i < communicator.members.size(); ++i) {
      const auto rank = index_.find(communicator.members[i].key);
      if (rank != index_.end()) waited_[rank->second][slice] += wait.waited_ns[i];
    }
  }

  void NoteWhatIsMissing() {
    const uint64_t all = answer_.collectives + answer_.unmatched;
    if (answer_.unmatched * 100 > all * kUnmatchedPercent) {
      answer_.incomplete = true;
      answer_.notes.push_back(absl::StrCat(
          answer_.unmatched, " of ", all,
          " collectives are not known on all of their ranks, or not which is which (graphs that "
          "are replayed have no numbers): who waits in them is not known"));
    }
    if (other_ > 0) {
      answer_.notes.push_back(absl::StrCat(
          other_,
          " collectives are of kinds that do not show who waits (reduce, gather, scatter), "
          "or of a device whose clock could not be placed"));
    }
  }

  bool IsAbove(std::span<const int64_t> values) const {
    const double confidence = 1 - kAllRanksWrong / static_cast<double>(answer_.ranks.size());
    return answer_.collectives >= kWaitsMin && StudentMean(values, 1, confidence).lo_ns > kLimitNs;
  }

  // Of each slice, how much less the rank waits than the others do in the mean. Ranks that take
  // turns all wait less than the median now and then.
  std::vector<int64_t> BelowMean(size_t rank) const {
    std::vector<int64_t> below;
    const auto others = static_cast<int64_t>(waited_.size() - 1);
    for (size_t slice = 0; slice < kSlices; ++slice) {
      int64_t sum = 0;
      for (const std::vector<int64_t>& one : waited_) sum += one[slice];
      below.push_back((sum - waited_[rank][slice]) / others - waited_[rank][slice]);
    }
    return below;
  }

  void Compare() {
    std::vector<std::vector<int64_t>> not_waited = waited_;
    for (std::vector<int64_t>& slices : not_waited) {
      for (int64_t& ns : slices) ns = -ns;
    }
    const Others others(not_waited);
    std::vector<CollectiveFinding> all;
    for (size_t i = 0; i < waited_.size(); ++i) {
      const std::vector<int64_t> leads = others.Excess(i);
      CollectiveFinding finding;
      finding.index = i;
      finding.lead = StudentMean(leads, 1, kShown);
      if (IsAbove(leads) && IsAbove(BelowMean(i))) answer_.findings.push_back(finding);
      all.push_back(finding);
    }
    const auto by_lead = [](const CollectiveFinding& a, const CollectiveFinding& b) {
      return a.lead.est_ns > b.lead.est_ns;
    };
    std::stable_sort(answer_.findings.begin(), answer_.findings.end(), by_lead);
    std::stable_sort(all.begin(), all.end(), by_lead);
    // What all wait at least goes to the rank that is last in the mean, the rest to those who take
    // turns.
    int64_t least_ns = INT64_MAX;
    for (const CollectiveRank& rank : answer_.ranks) least_ns = std::min(least_ns, rank.waited_ns);
    if (least_ns > kRotatingNs) answer_.rotating_ns = least_ns;
    if (!answer_.findings.empty()) {
      answer_.verdict = DeviceVerdict::kLate;
      return;
    }
    answer_.closest = all[0];
    const bool wide = all[0].lead.hi_ns > kWideFactor * kLimitNs;
    answer_.verdict = answer_.collectives < kWaitsMin || wide || answer_.incomplete
                          ? DeviceVerdict::kUndecided
                          : DeviceVerdict::kNobody;
  }

  std::span<const CommunicatorReport> communicators_;
  std::span<const std::string> nodes_;
  const int32_t world_;
  CollectiveAnswer answer_;
  std::map<ProcessKey, size_t> index_;        // into answer_.ranks
  std::vector<std::vector<int64_t>> waited_;  // by rank and slice
  uint64_t other_ = 0;
};

}  // namespace

const char* CollectiveRefusalJsonName(CollectiveRefusal refusal) {
  switch (refusal) {
    case CollectiveRefusal::kNone:
      return "";
    case CollectiveRefusal::kNoCommonCommunicator:
      return "no_common_communicator";
    case CollectiveRefusal::kPeerToPeer:
      return "peer_to_peer";
    case CollectiveRefusal::kNoCollectives:
      return "no_collectives";
  }
  return "";
}

CollectiveAnswer ExplainCollectives(std::span<const CommunicatorReport> communicators,
                                    std::span<const std::string> nodes, int32_t ranks) {
  return Explainer(communicators, nodes, ranks).Explain();
}

}  // namespace syncline::analysis::why
