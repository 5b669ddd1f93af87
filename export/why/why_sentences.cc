// SPDX-License-Identifier: Apache-2.0
#include "export/why/why_sentences.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "common/utf8.h"
#include "export/report/table.h"
#include "export/report/units.h"
#include "export/why/stalls_text.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::BlockedSleep;
using analysis::why::Cause;
using analysis::why::FullMemory;
using analysis::why::MeanEstimate;
using analysis::why::NotACause;
using analysis::why::OrderCounts;
using analysis::why::Part;
using analysis::why::PartName;
using analysis::why::PartTable;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::Taker;

constexpr double kFaultsLeast = 0.05;  // a step: fewer are none, and fewer bytes
constexpr double kReadBytesLeast = 512;
constexpr double kFullLeast = 0.1;
constexpr uint64_t kStepsSure =
    60;  // docs/findings.md: a lead without a cause is said from here on

std::string RankOf(const Answer& answer, const RankFinding& finding) {
  const RankSummary& rank = answer.ranks[finding.index];
  std::string text =
      absl::StrCat(RankName(answer, finding), " (node ", Printed(rank.node), ", pid ", rank.pid);
  if (!rank.command.empty()) absl::StrAppend(&text, ", ", Printed(rank.command));
  return text + ")";
}

// Whom a rank is compared with.
std::string TheOthers(const Answer& answer) {
  return answer.ranks.size() > 2 ? "the other ranks' median" : "the other rank's";
}

// With the sign: of a rank that is not late the lead may be below 0.
std::string DiffersBy(const Answer& answer, const MeanEstimate& lead) {
  return absl::StrCat("differs from ", TheOthers(answer), " by ", WithInterval(lead));
}

std::string OfStep(const Answer& answer) {
  return absl::StrCat(" in a step of ", Ms(answer.mean_step_ns), " ms");
}

// Behind "throttled for", "takes": "29.8 ms [27.6, 31.9] of the 31.3 ms", or what is true where the
// amount is more than the lead, or the rank is not late.
std::string Share(const RankFinding& finding, const Cause& cause) {
  const std::string amount = WithInterval(cause.amount);
  if (finding.late && cause.amount.est_ns <= finding.lead.est_ns) {
    return absl::StrCat(amount, " of the ", Ms(finding.lead.est_ns), " ms");
  }
  std::string text = absl::StrCat(amount, " a step more than the others");
  if (finding.late) {
    absl::StrAppend(&text, ", more than its whole lead of ", Ms(finding.lead.est_ns), " ms");
  }
  return text;
}

// Its loader waits because its workers do: no count of who ran instead.
bool LoaderWaits(const Cause& cause) {
  return cause.taker.has_value() && cause.taker->kind == Taker::Kind::kOwnLoader &&
         cause.taker->cpu_ns == 0;
}

std::string TakerSentence(const Taker& taker) {
  std::string whose;
  switch (taker.kind) {
    case Taker::Kind::kOutside:
      whose = "processes outside of the job";
      break;
    case Taker::Kind::kRank:
      whose = "other processes of the job";
      break;
    case Taker::Kind::kOwnLoader:
      whose = "its own child processes (loader workers)";
      break;
    case Taker::Kind::kOwnThread:
      whose = "its own other threads";
      break;
    case Taker::Kind::kSyncline:
      whose = "Syncline itself";
      break;
    case Taker::Kind::kNobody:
      return absl::StrCat("the CPU for which it waited was idle for ", Ms(taker.cpu_ns),
                          " ms a step, by the scheduler's trace");
    case Taker::Kind::kUnknown:
      return "who ran instead: a process that this node does not show";
  }
  std::string text =
      taker.by_scheduler
          ? absl::StrCat("who had the CPU meanwhile, by the scheduler's trace: ", whose, ", ",
                         Ms(taker.cpu_ns), " ms a step")
          : absl::StrCat("who ran in the same sampling intervals: ", whose, ", ", Ms(taker.cpu_ns),
                         " ms of CPU time a step");
  if (!taker.name.empty()) {
    absl::StrAppend(&text, ", most by ", Printed(taker.name), " (pid ", taker.pid, ")");
  }
  return text;
}

std::string FullSentence(const FullMemory& memory) {
  const analysis::FullGroup& group = memory.group;
  const std::string limit =
      group.limit_bytes < 0
          ? ""
          : absl::StrCat(" (", BytesText(static_cast<double>(group.limit_bytes)), ")");
  return absl::StrFormat(
      "its control group %s reached its memory limit%s %.1f times a step, by the kernel's count: "
      "cached files may have to be dropped then, or memory paged out, and read again",
      Printed(group.path, kGroupColumns), limit, memory.per_step);
}

std::vector<std::string> BlockedSentences(const Cause& cause, const std::string& share) {
  std::vector<std::string> lines = {absl::StrCat(
      "it is blocked in the kernel for ", share,
      ": uninterruptible sleep, mostly for storage (a file, a network file system, memory "
      "that was paged out)")};
  if (!cause.blocked.has_value()) return lines;
  const BlockedSleep& sleep = *cause.blocked;
  if (sleep.by_scheduler) {
    lines.push_back("when it was blocked: by the scheduler's trace");
  } else {
    lines.push_back(absl::StrCat("how long: as ", sleep.blocked, " of the ", sleep.asleep,
                                 " samples show that find it asleep in its own work"));
  }
  if (sleep.where.has_value()) {
    lines.push_back(absl::StrCat("most of it in ", *sleep.where == Part::kInput
                                                       ? "its data loader"
                                                       : PartName(*sleep.where)));
  }
  const bool faults = sleep.faults.value_or(0) >= kFaultsLeast;
  const bool bytes = sleep.read_bytes.value_or(0) >= kReadBytesLeast;
  std::vector<std::string> came;
  if (faults)
    came.push_back(absl::StrFormat("%.1f page faults that storage serves", *sleep.faults));
  if (bytes) came.push_back(BytesText(*sleep.read_bytes) + " read from storage for its process");
  if (!came.empty()) {
    lines.push_back("a step: " + absl::StrJoin(came, ", and "));
  } else if (sleep.faults.has_value() && sleep.read_bytes.has_value()) {
    lines.emplace_back(
        "no page fault that storage serves, and nothing read from storage for its process: perhaps "
        "it writes, or waits for a network file system or a lock in the kernel");
  }
  if (IsFullOften(cause)) lines.push_back(FullSentence(*cause.full_memory));
  return lines;
}

// What is certain, and no cause of the rank's.
std::string DroppedText(const NotACause& one) {
  if (one.because == NotACause::Because::kSharedQuota) {
    return absl::StrCat("throttled ", Ms(one.amount_ns),
                        " ms a step more than the others, but other ranks have the same quota and "
                        "are throttled, too: who works more meets it more often");
  }
  return absl::StrCat("waits for a CPU ", Ms(one.amount_ns),
                      " ms a step more than the others, while its own threads that carry out its "
                      "collectives run: a late rank's transfers run beside its work");
}

int64_t PercentOf(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : (part * 100 + whole / 2) / whole;
}

// "88 % of the step is compute", as the mean over ranks.
std::string ComputeSentence(const Answer& answer) {
  int64_t compute_ns = 0;
  int64_t step_ns = 0;
  for (const RankSummary& rank : answer.ranks) {
    compute_ns += rank.mean[static_cast<size_t>(Part::kCompute)];
    step_ns += rank.mean_step_ns;
  }
  return absl::StrCat(PercentOf(compute_ns, step_ns),
                      " % of the step is compute; whether that could be faster is not judged.");
}

}  // namespace

bool IsFullOften(const Cause& cause) {
  return cause.full_memory.has_value() && cause.full_memory->per_step >= kFullLeast;
}

std::string Ms(int64_t ns) {
  const int64_t size_ns = std::abs(ns);
  if (size_ns < 500) return "0.0";  // never "-0.0"
  // Never 0 for more than nothing.
  const int decimals = size_ns < 50'000 ? 3 : 1;
  return absl::StrFormat("%.*f", decimals, static_cast<double>(ns) / 1e6);
}

std::string SignedMs(int64_t ns) { return absl::StrCat(ns >= 500 ? "+" : "", Ms(ns)); }

std::string IntervalText(const MeanEstimate& mean) {
  return absl::StrCat("[", Ms(mean.lo_ns), ", ", Ms(mean.hi_ns), "]");
}

std::string WithInterval(const MeanEstimate& mean) {
  const std::string text = absl::StrCat(Ms(mean.est_ns), " ms");
  return mean.lo_ns == INT64_MIN ? text : absl::StrCat(text, " ", IntervalText(mean));
}

std::vector<Part> LargestFirst(const PartTable& parts) {
  std::vector<Part> order;
  for (size_t part = 0; part < parts.size(); ++part) order.push_back(static_cast<Part>(part));
  std::stable_sort(order.begin(), order.end(), [&](Part a, Part b) {
    return parts[static_cast<size_t>(a)] > parts[static_cast<size_t>(b)];
  });
  return order;
}

std::string Printed(std::string_view name, size_t columns_max) {
  return Fit(OnlyPrintable(name, '?'), columns_max);
}

std::string CpusText(const Cause& cause) {
  if (cause.quota_ns <= 0 || cause.period_ns <= 0) return "not known";
  const double cpus = static_cast<double>(cause.quota_ns) / static_cast<double>(cause.period_ns);
  std::string text = absl::StrFormat("%.2f", cpus);
  if (cpus < 0.01) return absl::StrFormat("%.4f CPU", cpus);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + " CPU";
}

std::string RankName(const Answer& answer, const RankFinding& finding) {
  return absl::StrCat("rank ", answer.ranks[finding.index].rank);
}

std::string LateSentence(const Answer& answer, const RankFinding& finding) {
  if (finding.late) {
    return absl::StrCat(RankOf(answer, finding), ": its own work takes ",
                        WithInterval(finding.lead), " longer than ", TheOthers(answer),
                        OfStep(answer), WithoutStalls(answer, finding));
  }
  return absl::StrCat(RankOf(answer, finding),
                      " loses more time than the others to what CAUSE says, but is not shown to be "
                      "late: its own work ",
                      DiffersBy(answer, finding.lead), OfStep(answer),
                      WithoutStalls(answer, finding));
}

std::vector<std::string> CauseSentences(const Answer& answer, const RankFinding& finding,
                                        const Cause& cause) {
  const std::string share = Share(finding, cause);
  switch (cause.part) {
    case Part::kThrottled: {
      std::vector<std::string> lines = {
          absl::StrCat("its container takes the processor away: throttled for ", share)};
      if (cause.group.empty()) {
        lines.push_back("which control group has the quota: not measured");
      } else {
        lines.push_back(absl::StrCat("cgroup ", Printed(cause.group, kGroupColumns), ": quota ",
                                     CpusText(cause), ", throttled in ", cause.throttled_periods,
                                     " of ", cause.periods, " periods"));
      }
      return lines;
    }
    case Part::kWaitingForCpu: {
      if (LoaderWaits(cause)) {
        return {absl::StrCat("its data loader takes ", share),
                "the loader's workers were kept waiting for a CPU"};
      }
      std::vector<std::string> lines = {absl::StrCat("it waits for a CPU for ", share)};
      if (cause.taker.has_value()) lines.push_back(TakerSentence(*cause.taker));
      return lines;
    }
    case Part::kBlocked:
      return BlockedSentences(cause, share);
    case Part::kInput: {
      std::vector<std::string> lines = {
          absl::StrCat("its input is slow: its data loader takes ", share)};
      if (cause.loader_blocked.value_or(0) >= kLoaderBlockedLeast) {
        lines.push_back(absl::StrFormat(
            "of its loader's workers one was blocked in the kernel, mostly for storage, in %.0f %% "
            "of its samples",
            100 * *cause.loader_blocked));
        if (IsFullOften(cause)) lines.push_back(FullSentence(*cause.full_memory));
      }
      return lines;
    }
    case Part::kGarbageCollection:
      return {absl::StrCat("Python collects garbage on it for ", share)};
    case Part::kCompute:
      return ComputeSentences(answer, cause, share);
    default:
      return {absl::StrCat(PartName(cause.part), " takes ", share)};
  }
}

std::vector<std::string> LookedAtSentences(const Answer& answer, const RankFinding& finding) {
  std::vector<std::string> looked;
  std::vector<std::string> uncertain;
  std::vector<std::string> unmeasured;
  std::vector<std::string> dropped;
  for (const NotACause& one : finding.not_causes) {
    if (!one.measured) {
      unmeasured.push_back(PartName(one.part));
      continue;
    }
    if (one.because != NotACause::Because::kTooSmall) {
      dropped.push_back(DroppedText(one));
      continue;
    }
    std::vector<std::string>& list = one.amount_ns > LimitNs(answer, finding) ? uncertain : looked;
    list.push_back(absl::StrCat(
        PartName(one.part), " (", SignedMs(one.amount_ns), " ms",
        list.empty()
            ? absl::StrCat(" a step compared with ",
                           answer.ranks.size() > 2 ? "the other ranks' median" : "the other rank")
            : "",
        ")"));
  }
  if (finding.work.empty() && (finding.late || !finding.causes.empty())) {
    looked.push_back(absl::StrCat(
        "more work (no: operators that take 1 % of the step or more run equally "
        "often, oneDNN's reorders aside",
        finding.shapes_known ? ", and its primitives with the same shapes)" : "; shapes unknown)"));
  }
  std::vector<std::string> sentences = std::move(dropped);
  if (!looked.empty()) {
    sentences.push_back(absl::StrCat("looked at, not the cause: ", absl::StrJoin(looked, ", ")));
  }
  if (!uncertain.empty()) {
    sentences.push_back(
        absl::StrCat("not certain enough to be named: ", absl::StrJoin(uncertain, ", ")));
  }
  if (!unmeasured.empty()) {
    sentences.push_back(absl::StrCat("not measured: ", absl::StrJoin(unmeasured, ", ")));
  }
  return sentences;
}

// How COST was found.
std::string CostSource(const Answer& answer) {
  if (!answer.replay_error_ns.has_value()) return "an estimate, not replayed, and";
  return absl::StrCat("by replay (with nothing changed it gives a step of ",
                      Ms(answer.mean_step_ns + *answer.replay_error_ns), " ms), and");
}

std::string CostSentence(const Answer& answer, const RankFinding& finding) {
  const MeanEstimate& cost = finding.cost_all;
  return absl::StrCat("without ", finding.causes.size() > 1 ? "all these causes" : "this cause",
                      " a step would be shorter by ", WithInterval(cost), ", ",
                      PercentOf(cost.est_ns, answer.mean_step_ns), " %; ", CostSource(answer),
                      " without drift (windows of one job differ by some percent)");
}

std::string OrderSentence(const Answer& answer, const RankFinding& finding) {
  const OrderCounts& order = finding.order;
  if (!answer.clock_bounds_hold) {
    return "not known: what was recorded contradicts the clocks";
  }
  if (order.steps == 0)
    return "not measured: there is no collective of all ranks whose entries "
           "could be compared";
  std::string text = absl::StrCat("last to arrive in ", order.last, " of ", order.steps,
                                  " steps (proven in ", order.proven);
  if (order.likely > 0) absl::StrAppend(&text, ", likely in ", order.likely);
  if (!answer.clock_bound_ns.has_value()) return text + "; error of the clocks not known)";
  const int64_t bound_ns = *answer.clock_bound_ns;
  return absl::StrCat(text, "; clocks ± ",
                      bound_ns < 1'000'000
                          ? absl::StrFormat("%.1f µs", static_cast<double>(bound_ns) / 1e3)
                          : DurationText(bound_ns),
                      ")");
}

std::string NobodySentence(const Answer& answer) {
  const RankFinding& closest = *answer.closest;
  std::string text;
  if (closest.late) {
    text = absl::StrCat("No rank is named: the own work of ", RankName(answer, closest), " ",
                        DiffersBy(answer, closest.lead), OfStep(answer), ", but ", answer.steps,
                        " steps are too few to call a rank late without a cause (", kStepsSure,
                        " are needed).");
  } else if (answer.ranks.size() == 2) {
    text = absl::StrCat(answer.undecided ? "No rank is shown to be late" : "No rank is late",
                        ": the own work of the two ranks differs by ", WithInterval(closest.lead),
                        OfStep(answer), WithoutStalls(answer, closest), ".");
  } else {
    text = absl::StrCat(answer.undecided ? "No rank is shown to be late: " : "No rank is late: ",
                        RankName(answer, closest), " has the most own work, which ",
                        DiffersBy(answer, closest.lead), OfStep(answer),
                        WithoutStalls(answer, closest), ".");
  }
  if (answer.undecided) {
    absl::StrAppend(&text, " The steps differ too much among each other to say that none is late.");
  }
  return absl::StrCat(text, " ", ComputeSentence(answer));
}

std::string NotJudgedSentence(const Answer& answer) {
  return absl::StrCat(
      answer.ranks.size() == 1 ? "One rank: there is none to compare it with. "
      : answer.transfers
          ? "Ranks send to each other and receive: they may do different parts of the work, so how "
            "long each works is not compared. "
      : answer.few_transfers
          ? "No collective, and sends and receives in fewer than half of the steps: no rank is "
            "compared. "
          : "No collective: the ranks do not wait for each other, so none is compared. ",
      "A step takes ", Ms(answer.mean_step_ns), " ms. ", ComputeSentence(answer));
}

std::string EverybodySentence(const Answer& answer, Part part) {
  int64_t least = 100;
  int64_t most = 0;
  for (const RankSummary& rank : answer.ranks) {
    const int64_t percent = PercentOf(rank.mean[static_cast<size_t>(part)], rank.mean_step_ns);
    least = std::min(least, percent);
    most = std::max(most, percent);
  }
  return absl::StrCat("Everybody: ", PartName(part), " takes ",
                      least >= most ? absl::StrCat(most) : absl::StrCat(least, " to ", most),
                      " % of the step on every rank");
}

std::string EverybodyTakerSentence(const Answer& answer) {
  return absl::StrCat("as rank ", answer.ranks[answer.everybody_taker_rank].rank, " sees it, ",
                      TakerSentence(*answer.everybody_taker));
}

std::string LostSentence(const Answer& answer) {
  if (!answer.lost_events.has_value()) return "how many events were lost is not known";
  return absl::StrCat(Plural(*answer.lost_events, "event"), " lost");
}

}  // namespace syncline::report
