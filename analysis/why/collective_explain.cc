// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/collective_explain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kSlicesMost = 30;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kLimitNs = kSecondNs / 50;  // of each second: 2 %
constexpr int64_t kWideFactor = 3;            // of that limit
constexpr int64_t kRotatingNs = kSecondNs / 20;
constexpr double kShown = 0.95;
constexpr double kAllRanksWrong = 0.02;  // of healthy jobs, at most, all ranks together
constexpr uint64_t kUnmatchedPercent = 5;
constexpr size_t kMissingShown = 8;

class Explainer {
 public:
  Explainer(std::span<const CommunicatorReport> communicators, std::span<const std::string> nodes,
            int32_t ranks, bool incomplete)
      : communicators_(communicators), nodes_(nodes), world_(ranks) {
    answer_.incomplete = incomplete;
  }

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
                                 " ranks was recorded on each of them", MissingText(),
                                 ": start every rank with `syncline run --nccl`; a rank with an "
                                 "NCCL that is not supported, or with another plugin, is not "
                                 "recorded (docs/nccl.md)"));
    }
    if (transfers > 0) {
      return Refuse(CollectiveRefusal::kPeerToPeer,
                    absl::StrCat("ranks send to single ranks (", transfers,
                                 " sends and receives): stages of a pipeline do different work by "
                                 "design, and who waits in all-to-alls that are made of them does "
                                 "not show; `syncline report RUN --section nccl` has each "
                                 "communicator"));
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
      rank.process = member.key;
      if (index_.emplace(member.key, answer_.ranks.size() - 1).second) continue;
      return Refuse(CollectiveRefusal::kSeveralDevices,
                    absl::StrCat(member.process, " on ", rank.node,
                                 " works as several ranks of one communicator: only processes with "
                                 "one device each are judged; `syncline report RUN --section "
                                 "nccl` has each communicator"));
    }
    CheckProcesses();
  }

  // " (missing: 1, 3 of communicator c0ffee)".
  std::string MissingText() const {
    const CommunicatorReport& largest = communicators_.front();
    if (largest.members.size() >= largest.size) return "";
    std::vector<uint32_t> missing;
    for (uint32_t rank = 0, at = 0; rank < largest.size && missing.size() < kMissingShown; ++rank) {
      while (at < largest.members.size() && largest.members[at].rank < rank) ++at;
      if (at == largest.members.size() || largest.members[at].rank != rank) missing.push_back(rank);
    }
    return absl::StrCat(" (missing of its ", largest.size, " ranks: ", absl::StrJoin(missing, ", "),
                        missing.size() == kMissingShown ? ", ..." : "", ")");
  }

  // All that is told must be of the ranks that are compared.
  void CheckProcesses() {
    for (const CommunicatorReport& one : communicators_) {
      for (const CommunicatorMember& member : one.members) {
        if (index_.contains(member.key)) continue;
        return Refuse(
            CollectiveRefusal::kSeveralPrograms,
            absl::StrCat("processes that share no communicator with all others work under "
                         "one job's name (",
                         member.process,
                         " is none of the largest one's): if they are several jobs, give "
                         "each its own with `syncline run --job`; if the job was started "
                         "again meanwhile, record again"));
      }
    }
  }

  // Of each slice of the time, what each rank waits; later ns of each second.
  void TakeWaits() {
    TimelineTime first{INT64_MAX};
    TimelineTime last{INT64_MIN};
    for (const CommunicatorReport& one : communicators_) {
      answer_.unmatched += one.repeated + one.incomplete + one.different + one.impossible;
      other_ += one.other;
      for (const CommunicatorWait& wait : one.waits) {
        ++answer_.collectives;
        first = std::min(first, wait.begin);
        last = std::max(last, wait.begin);
        const bool any = std::any_of(wait.waited_ns.begin(), wait.waited_ns.end(),
                                     [&](int64_t ns) { return ns >= wait.skew_ns; });
        answer_.waited_in += any ? 1 : 0;
      }
    }
    if (answer_.collectives == 0 || first == last) {
      return RefuseWithoutWaits();
    }
    answer_.window_ns = last.ns - first.ns;
    slices_ = std::clamp<size_t>(answer_.collectives / 2, 2, kSlicesMost);
    std::vector<std::vector<Stretch>> kernels(answer_.ranks.size());  // these three by rank
    std::vector<std::vector<Stretch>> all(answer_.ranks.size());
    std::vector<std::vector<Stretch>> clear(answer_.ranks.size());
    for (const CommunicatorReport& one : communicators_) {
      for (size_t i = 0; i < one.members.size(); ++i) {
        const size_t rank = index_.at(one.members[i].key);
        answer_.ranks[rank].last_in += one.members[i].last_in;
        for (const CommunicatorWait& wait : one.waits) {
          const int64_t begin_ns = wait.begins[i].ns;
          kernels[rank].push_back({begin_ns, wait.kernels_ns[i]});
          all[rank].push_back({begin_ns, wait.waited_ns[i]});
          if (wait.waited_ns[i] < wait.skew_ns) continue;
          clear[rank].push_back({begin_ns, wait.waited_ns[i]});
        }
      }
    }
    waited_ = InSlices(&all, first);
    clear_ = InSlices(&clear, first);
    for (size_t i = 0; i < answer_.ranks.size(); ++i) {
      JoinStretches(&kernels[i]);
      answer_.ranks[i].kernels_ns = OfEachSecond(SumOf(kernels[i]));
      answer_.ranks[i].waited_ns = OfEachSecond(SumOf(all[i]));
    }
    NoteWhatIsMissing();
  }

  static int64_t SumOf(const std::vector<Stretch>& stretches) {
    int64_t sum = 0;
    for (const Stretch& one : stretches) sum += one.length_ns;
    return sum;
  }

  void RefuseWithoutWaits() {
    const auto is_placed = [](const CommunicatorMember& member) { return member.placed; };
    const bool placed = std::all_of(
        communicators_.begin(), communicators_.end(), [&](const CommunicatorReport& one) {
          return std::all_of(one.members.begin(), one.members.end(), is_placed);
        });
    if (!placed) {
      Refuse(CollectiveRefusal::kClockUnknown,
             "the clock of a rank's GPU could not be placed, so that nothing is known of how long "
             "its kernels took: `syncline report RUN --section losses` says why");
    } else if (answer_.unmatched > 0) {
      Refuse(
          CollectiveRefusal::kContradictions,
          absl::StrCat(answer_.unmatched,
                       " collectives were recorded, and cannot be compared: their numbers repeat "
                       "or are missing on ranks, or a rank's kernel was over before another's "
                       "had begun (clocks of nodes that are more than 0.2 ms apart, or stamps "
                       "that NCCL counts wrong: docs/nccl.md)"));
    } else {
      Refuse(CollectiveRefusal::kNoCollectives,
             "no two collectives that show who waits (all-reduce, all-gather, reduce-scatter) were "
             "recorded on all of their ranks: record for longer (--for), or see `syncline report "
             "RUN --section nccl`");
    }
  }

  // By rank and slice of the time, ns of each second. What overlaps counts once.
  std::vector<std::vector<int64_t>> InSlices(std::vector<std::vector<Stretch>>* waits,
                                             TimelineTime first) const {
    std::vector<std::vector<int64_t>> slices;
    for (std::vector<Stretch>& of_rank : *waits) {
      std::vector<int64_t>& values = slices.emplace_back(slices_, 0);
      JoinStretches(&of_rank);
      for (const Stretch& one : of_rank) {
        const double part = static_cast<double>(one.begin_ns - first.ns) /
                            static_cast<double>(answer_.window_ns) * static_cast<double>(slices_);
        values[std::min(slices_ - 1, static_cast<size_t>(std::max(0.0, part)))] += one.length_ns;
      }
      for (int64_t& ns : values) ns = OfEachSecond(ns) * static_cast<int64_t>(slices_);
    }
    return slices;
  }

  int64_t OfEachSecond(int64_t ns) const {
    return static_cast<int64_t>(static_cast<double>(ns) / static_cast<double>(answer_.window_ns) *
                                static_cast<double>(kSecondNs));
  }

  void NoteWhatIsMissing() {
    const uint64_t all = answer_.collectives + answer_.unmatched;
    if (answer_.unmatched * 100 > all * kUnmatchedPercent) {
      answer_.incomplete = true;
      answer_.notes.push_back(absl::StrCat(
          answer_.unmatched, " of ", all,
          " collectives are not known on all of their ranks, or not which is which (graphs that "
          "are replayed have no numbers), or their times contradict each other: who waits in them "
          "is not known"));
    }
    if (other_ > 0) {
      answer_.notes.push_back(absl::StrCat(
          other_,
          " collectives are of kinds that do not show who waits (broadcast, reduce, ...), "
          "or of a device whose clock could not be placed"));
    }
  }

  bool IsAbove(std::span<const int64_t> values) const {
    const double confidence = 1 - kAllRanksWrong / static_cast<double>(answer_.ranks.size());
    return answer_.collectives >= kWaitsMin && StudentMean(values, 1, confidence).lo_ns > kLimitNs;
  }

  // Of each slice, how much less the rank waits than the others do in the mean. Ranks that take
  // turns all wait less than the median now and then.
  static std::vector<int64_t> BelowMean(std::span<const std::vector<int64_t>> waited, size_t rank) {
    std::vector<int64_t> below;
    const auto others = static_cast<int64_t>(waited.size() - 1);
    for (size_t slice = 0; slice < waited.front().size(); ++slice) {
      int64_t sum = 0;
      for (const std::vector<int64_t>& one : waited) sum += one[slice];
      below.push_back((sum - waited[rank][slice]) / others - waited[rank][slice]);
    }
    return below;
  }

  // How much less than the others' median each rank waits, of each slice; and whether that is
  // certainly above the limit.
  struct Leads {
    std::vector<std::vector<int64_t>> values;
    std::vector<bool> above;
  };
  Leads LeadsBy(const std::vector<std::vector<int64_t>>& waited) const {
    std::vector<std::vector<int64_t>> less = waited;
    for (std::vector<int64_t>& slices : less) {
      for (int64_t& ns : slices) ns = -ns;
    }
    const Others others(less);
    Leads leads;
    for (size_t i = 0; i < waited.size(); ++i) {
      leads.values.push_back(others.Excess(i));
      leads.above.push_back(IsAbove(leads.values.back()) && IsAbove(BelowMean(waited, i)));
    }
    return leads;
  }

  void Compare() {
    const Leads leads = LeadsBy(waited_);
    const Leads clear = LeadsBy(clear_);
    bool unclear = false;  // all differences together say so, and those that are certain do not
    std::vector<CollectiveFinding> all;
    for (size_t i = 0; i < waited_.size(); ++i) {
      CollectiveFinding finding;
      finding.index = i;
      finding.lead = StudentMean(leads.values[i], 1, kShown);
      if (leads.above[i] && clear.above[i]) answer_.findings.push_back(finding);
      unclear = unclear || leads.above[i] != clear.above[i];
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
    const bool few = answer_.collectives < kWaitsMin;
    // Who waits for a late root of broadcasts does not wait in what follows.
    const bool unseen = other_ * 100 > answer_.collectives * kUnmatchedPercent;
    answer_.verdict = few || wide || unclear || unseen || answer_.incomplete
                          ? DeviceVerdict::kUndecided
                          : DeviceVerdict::kNobody;
    if (!unclear) return;
    answer_.notes.emplace_back(
        "what the ranks wait is small against how long the kernels take: kernels of one collective "
        "need not end at the same instant, and this may be all that it is");
  }

  std::span<const CommunicatorReport> communicators_;
  std::span<const std::string> nodes_;
  const int32_t world_;
  CollectiveAnswer answer_;
  std::map<ProcessKey, size_t> index_;        // into answer_.ranks
  std::vector<std::vector<int64_t>> waited_;  // these two by rank and slice
  std::vector<std::vector<int64_t>> clear_;   // without what may be none
  size_t slices_ = kSlicesMost;
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
    case CollectiveRefusal::kSeveralDevices:
      return "several_devices";
    case CollectiveRefusal::kSeveralPrograms:
      return "several_programs";
    case CollectiveRefusal::kClockUnknown:
      return "clock_unknown";
    case CollectiveRefusal::kContradictions:
      return "contradictions";
  }
  return "";
}

CollectiveAnswer ExplainCollectives(std::span<const CommunicatorReport> communicators,
                                    std::span<const std::string> nodes, int32_t ranks,
                                    bool incomplete) {
  return Explainer(communicators, nodes, ranks, incomplete).Explain();
}

}  // namespace syncline::analysis::why
