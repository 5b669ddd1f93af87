#include "export/why/why_sentences.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "export/report/table.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::MeanEstimate;
using analysis::why::NotACause;
using analysis::why::OrderCounts;
using analysis::why::Part;
using analysis::why::PartName;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::Taker;
using analysis::why::WorkDifference;

constexpr size_t kNameMax = 60;  // columns of a name from the job: longer ones are cut
constexpr size_t kWorkShown = 3;

std::string Name(const std::string& name) { return Fit(name, kNameMax); }

std::string Interval(const MeanEstimate& mean) {
  return absl::StrCat("[", Ms(mean.lo_ns), ", ", Ms(mean.hi_ns), "]");
}

std::string RankOf(const Answer& answer, const RankFinding& finding) {
  const RankSummary& rank = answer.ranks[finding.index];
  std::string text = absl::StrCat("rank ", rank.rank, " (", Name(rank.node), ", pid ", rank.pid);
  if (!rank.command.empty()) absl::StrAppend(&text, ", ", Name(rank.command));
  return text + ")";
}

std::string TakerName(const Taker& taker) {
  const std::string who = taker.name.empty() ? absl::StrCat("pid ", taker.pid)
                                             : absl::StrCat(Name(taker.name), ", pid ", taker.pid);
  switch (taker.kind) {
    case Taker::Kind::kOutside:
      return absl::StrCat("a process outside of the job (", who, ")");
    case Taker::Kind::kRank:
      return absl::StrCat("another process of the job on this node (", who, ")");
    case Taker::Kind::kOwnLoader:
      return "the rank's own loader workers";
    case Taker::Kind::kOwnThread:
      return absl::StrCat("the rank's own threads (", Name(taker.name), ")");
    case Taker::Kind::kSyncline:
      return absl::StrCat("Syncline itself (", who, ")");
    case Taker::Kind::kUnknown:
      break;
  }
  return "somebody whom this node does not show";
}

std::string Cpus(const Cause& cause) {
  if (cause.quota_ns <= 0 || cause.period_ns <= 0) return "unknown";
  return absl::StrFormat(
      "%.2g", static_cast<double>(cause.quota_ns) / static_cast<double>(cause.period_ns));
}

// "29.8 of the 31.3 ms", or what is true where it is more, or the rank is not late.
std::string Share(const RankFinding& finding, const Cause& cause) {
  const int64_t amount_ns = cause.amount.est_ns;
  if (!finding.late) return absl::StrCat(Ms(amount_ns), " ms of each step");
  if (amount_ns > finding.lead.est_ns) {
    return absl::StrCat(Ms(amount_ns), " ms of each step, more than the whole ",
                        Ms(finding.lead.est_ns), " ms");
  }
  return absl::StrCat(Ms(amount_ns), " of the ", Ms(finding.lead.est_ns), " ms");
}

std::string Unmeasured(Part part) { return absl::StrCat(PartName(part), " (not measured)"); }

}  // namespace

std::string Ms(int64_t ns) {
  const int64_t size_ns = std::abs(ns);
  if (size_ns >= 100'000'000) return absl::StrFormat("%.0f", static_cast<double>(ns) / 1e6);
  // Never "-0.0", nor 0 for more than nothing.
  if (size_ns < 50'000 && size_ns >= 500) {
    return absl::StrFormat("%.3f", static_cast<double>(ns) / 1e6);
  }
  if (size_ns < 500) return "0.0";
  return absl::StrFormat("%.1f", static_cast<double>(ns) / 1e6);
}

std::string LateSentence(const Answer& answer, const RankFinding& finding) {
  if (!finding.late) {
    return absl::StrCat(RankOf(answer, finding), ": not surely later than the others (",
                        Ms(finding.lead.est_ns), " ms more own work in a step of ",
                        Ms(answer.mean_step_ns), " ms, ", Interval(finding.lead),
                        "), but it loses time to what the others do not");
  }
  return absl::StrCat(RankOf(answer, finding), ": its own work takes ", Ms(finding.lead.est_ns),
                      " ms longer in a step of ", Ms(answer.mean_step_ns), " ms ",
                      Interval(finding.lead));
}

std::string CauseSentence(const RankFinding& finding, const Cause& cause) {
  const std::string share = Share(finding, cause);
  switch (cause.part) {
    case Part::kThrottled: {
      std::string text = absl::StrCat("its container takes the processor away: throttled for ",
                                      share, " ", Interval(cause.amount));
      if (!cause.group.empty()) {
        absl::StrAppend(&text, "; control group ", Name(cause.group), ": quota ", Cpus(cause),
                        " CPU, throttled in ", cause.throttled_periods, " of ", cause.periods,
                        " periods");
      }
      return text;
    }
    case Part::kWaitingForCpu:
      if (cause.taker.has_value() && cause.taker->kind == Taker::Kind::kOwnLoader &&
          cause.taker->cpu_ns == 0) {
        return absl::StrCat("it waits for input, and its loader workers wait for a CPU: ", share,
                            " ", Interval(cause.amount));
      }
      return absl::StrCat("it waits for a CPU: ", share, " ", Interval(cause.amount),
                          cause.taker.has_value()
                              ? absl::StrCat("; meanwhile the CPU ran ", TakerName(*cause.taker))
                              : std::string());
    case Part::kInput:
      return absl::StrCat("its input is slow: the data loader takes ", share, " ",
                          Interval(cause.amount));
    case Part::kGarbageCollection:
      return absl::StrCat("Python collects garbage: ", share, " ", Interval(cause.amount));
    default:
      return absl::StrCat(PartName(cause.part), ": ", share);
  }
}

std::string UnknownSentence(const Answer&, const RankFinding& finding) {
  if (!finding.work.empty()) {
    std::vector<std::string> shown;
    for (size_t i = 0; i < std::min(kWorkShown, finding.work.size()); ++i) {
      const WorkDifference& one = finding.work[i];
      shown.push_back(
          one.in_shapes
              ? absl::StrFormat("%s has other shapes (%.1f a step)", Name(one.name), one.own)
              : absl::StrFormat("%s runs %.1f times a step, on the others %.1f", Name(one.name),
                                one.own, one.others));
    }
    if (finding.work.size() > kWorkShown) {
      shown.push_back(absl::StrCat("and ", finding.work.size() - kWorkShown, " operators more"));
    }
    return absl::StrCat("its work differs, so no cause is named: ", absl::StrJoin(shown, "; "));
  }
  std::string text = "unknown: nothing that was measured explains it, and no fault is claimed";
  if (finding.processor.has_value()) {
    absl::StrAppend(&text, ". Its own work is ", Ms(finding.processor->on_cpu_ns), " ms on a CPU, ",
                    Ms(finding.processor->run_queue_ns), " ms waiting for one, and ",
                    Ms(finding.processor->asleep_ns), " ms asleep");
  }
  return text;
}

std::string LookedAtSentence(const Answer&, const RankFinding& finding) {
  std::vector<std::string> looked;
  for (const NotACause& one : finding.not_causes) {
    looked.push_back(one.measured
                         ? absl::StrCat(PartName(one.part), " (", Ms(one.amount_ns), " ms)")
                         : Unmeasured(one.part));
  }
  if (finding.work.empty()) {
    looked.push_back(finding.shapes_known ? "more work (no: same operators, counts and shapes)"
                                          : "more work (no: same operators and counts; shapes are "
                                            "not recorded)");
  }
  if (looked.empty()) return "";
  return absl::StrCat("looked at, not the cause: ", absl::StrJoin(looked, ", "));
}

std::string CostSentence(const Answer& answer, const RankFinding& finding) {
  const MeanEstimate& cost = finding.cost_all;
  const int64_t percent = cost.est_ns * 100 / std::max<int64_t>(1, answer.mean_step_ns);
  return absl::StrCat(Ms(cost.est_ns), " ms of each step ", Interval(cost), ", ", percent,
                      " %: an estimate, not replayed; windows of one job differ by some percent "
                      "more than this interval says");
}

std::string OrderSentence(const Answer& answer, const RankFinding& finding) {
  const OrderCounts& order = finding.order;
  std::string proof = absl::StrCat("proven in ", order.proven);
  if (order.likely > 0) absl::StrAppend(&proof, ", likely in ", order.likely);
  std::string text =
      absl::StrCat("last to arrive in ", order.last, " of ", order.steps, " steps (", proof);
  if (answer.clock_bound_ns.has_value()) {
    absl::StrAppendFormat(&text, "; clocks ± %.1f µs",
                          static_cast<double>(*answer.clock_bound_ns) / 1e3);
  }
  return text + ")";
}

std::string NobodySentence(const Answer& answer) {
  const RankFinding& closest = *answer.closest;
  int64_t compute_ns = 0;
  for (const RankSummary& rank : answer.ranks) {
    compute_ns += rank.mean[static_cast<size_t>(Part::kCompute)];
  }
  const int64_t percent =
      compute_ns * 100 /
      std::max<int64_t>(1, answer.mean_step_ns * static_cast<int64_t>(answer.ranks.size()));
  std::string text = closest.late || closest.p < 0.01
                         ? absl::StrCat("No rank is named: rank ", answer.ranks[closest.index].rank,
                                        " has the most own work, ")
                         : std::string("No rank is late: the most own work of a rank is ");
  absl::StrAppend(&text, Ms(closest.lead.est_ns), " ms ", Interval(closest.lead),
                  " above the others', in a step of ", Ms(answer.mean_step_ns), " ms. ");
  if (answer.steps < 60) {
    absl::StrAppend(&text, "With ", answer.steps,
                    " steps only a rank that is clearly late is named; 60 tell more. ");
  }
  absl::StrAppend(&text, percent,
                  " % of the step is compute; whether that could be faster is not judged.");
  return text;
}

std::string NotJudgedSentence(const Answer& answer) {
  return answer.ranks.size() == 1
             ? "one rank: nobody to compare it with; the table shows where its time goes"
             : "no collective: the ranks do not wait for each other; the table shows where their "
               "time goes";
}

std::string MarginSentence(const Answer& answer) {
  std::string text;
  if (!answer.findings.empty()) {
    text = "LATE, CAUSE and COST hold whatever the clocks say (own work is timed on one clock); ";
  }
  absl::StrAppend(&text, "not known: at most ", Ms(answer.worst_not_covered_ns),
                  " ms of a rank's step, ", answer.lost_events, " events lost");
  return text;
}

std::string NextSentence(const Answer& answer) {
  if (answer.findings.empty()) {
    return answer.everybody.empty()
               ? "no rank holds the others up; what is left is the work itself: `syncline report` "
                 "lists the largest operators"
               : absl::StrCat("look at ", PartName(answer.everybody[0]),
                              " on all ranks: it is not one rank's trouble");
  }
  const RankFinding& finding = answer.findings[0];
  const RankSummary& rank = answer.ranks[finding.index];
  if (finding.causes.empty()) {
    return finding.work.empty()
               ? absl::StrCat("compare ", Name(rank.node),
                              " with another node under the same load "
                              "(clock rate, memory, other users), or exchange two ranks' nodes and "
                              "ask again")
               : "give all ranks the same work, or accept that they differ";
  }
  const Cause& cause = finding.causes[0];
  switch (cause.part) {
    case Part::kThrottled:
      return cause.group.empty()
                 ? "raise the CPU quota of its container"
                 : absl::StrCat("raise the CPU quota of control group ", Name(cause.group), " on ",
                                Name(rank.node), " (now ", Cpus(cause), " CPU)");
    case Part::kWaitingForCpu:
      if (cause.taker.has_value() && cause.taker->kind == Taker::Kind::kOutside) {
        return absl::StrCat("move or stop ", Name(cause.taker->name), " (pid ", cause.taker->pid,
                            " on ", Name(rank.node), "), or give rank ", rank.rank,
                            " a CPU of its own");
      }
      return absl::StrCat("give rank ", rank.rank, " on ", Name(rank.node),
                          " a CPU of its own, or start fewer processes and threads there");
    case Part::kInput:
      return absl::StrCat("make rank ", rank.rank,
                          "'s input faster: more loader workers, a faster disk, less work in the "
                          "data set");
    case Part::kGarbageCollection:
      return "call gc.freeze() after set-up, or switch collection off and call gc.collect() at the "
             "same step on all ranks";
    default:
      return "`syncline report` shows more";
  }
}

}  // namespace syncline::report
