// SPDX-License-Identifier: Apache-2.0
// What is said of a rank whose causes do not explain its lead.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "export/report/units.h"
#include "export/why/stalls_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::AllLonger;
using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::LongerOperator;
using analysis::why::LongerWork;
using analysis::why::NotACause;
using analysis::why::Part;
using analysis::why::PartName;
using analysis::why::ProcessorTime;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::StoodIn;
using analysis::why::Taker;
using analysis::why::WorkDifference;

constexpr size_t kWorkShown = 3;
constexpr size_t kOperatorsShown = 3;
constexpr int64_t kStolenShownNs = 100'000;  // of a step

std::string ProcessorText(const ProcessorTime& time) {
  const std::string queued = absl::StrCat(Ms(time.on_cpu_ns), " ms on a CPU, ",
                                          Ms(time.run_queue_ns), " ms in a run queue");
  const std::string stolen =
      time.stolen_ns < kStolenShownNs
          ? ""
          : absl::StrCat(", perhaps ", Ms(time.stolen_ns), " ms taken by a hypervisor");
  return absl::StrCat(queued, stolen, "; asleep in its own work ", Ms(time.asleep_ns),
                      stolen.empty() ? " ms or more" : " ms or more, if so");
}

// Of the other ranks (of those whose processor time was measured) the one in the middle, by own
// work; nullptr: there is none.
const RankSummary* MiddleOther(const Answer& answer, const RankFinding& finding, bool measured) {
  std::vector<const RankSummary*> others;
  for (size_t i = 0; i < answer.ranks.size(); ++i) {
    if (i == finding.index || (measured && !answer.ranks[i].processor.has_value())) continue;
    others.push_back(&answer.ranks[i]);
  }
  if (others.empty()) return nullptr;
  std::stable_sort(others.begin(), others.end(), [](const RankSummary* a, const RankSummary* b) {
    return a->mean_own_ns < b->mean_own_ns;
  });
  return others[others.size() / 2];
}

// What of its lead its data loader is named for.
int64_t NamedInputNs(const RankFinding& finding) {
  int64_t named_ns = 0;
  for (const Cause& cause : finding.causes) {
    const bool loader_waits = cause.part == Part::kWaitingForCpu && cause.taker.has_value() &&
                              cause.taker->kind == Taker::Kind::kOwnLoader;
    if (cause.part == Part::kInput || loader_waits) named_ns += cause.amount.est_ns;
  }
  return named_ns;
}

// What of its lead its primitives' instruction set is named for: a part of what it computes longer.
int64_t NamedComputeNs(const RankFinding& finding) {
  int64_t named_ns = 0;
  for (const Cause& cause : finding.causes) {
    if (cause.part == Part::kCompute) named_ns += cause.amount.est_ns;
  }
  return named_ns;
}

// The part of own work that differs most from that of the rank in the middle, if one stands out.
std::string LargestDifference(const Answer& answer, const RankFinding& finding) {
  const RankSummary* const middle = MiddleOther(answer, finding, /*measured=*/false);
  if (middle == nullptr) return "";
  const RankSummary& rank = answer.ranks[finding.index];
  int64_t largest_ns = 0;
  Part largest = Part::kCompute;
  for (const Part part : {Part::kCompute, Part::kInput, Part::kHostCode}) {
    const auto at = static_cast<size_t>(part);
    if (part == Part::kInput && NamedInputNs(finding) > 0) continue;  // said already
    const int64_t named_ns = part == Part::kCompute ? NamedComputeNs(finding) : 0;
    const int64_t longer_ns = rank.mean[at] - middle->mean[at] - named_ns;
    if (longer_ns <= largest_ns) continue;
    largest_ns = longer_ns;
    largest = part;
  }
  if (largest_ns * 2 < finding.unexplained_ns() || largest_ns == 0) return "";
  const auto at = static_cast<size_t>(largest);
  return absl::StrCat("most of it in ", PartName(largest), ": ", Ms(rank.mean[at]),
                      " ms a step, on rank ", middle->rank, " ", Ms(middle->mean[at]), " ms");
}

// How much longer than the rank in the middle it sleeps in its own work, but for what is known to
// be sleep in which it was blocked.
int64_t SleepsLongerNs(const Answer& answer, const RankFinding& finding) {
  const RankSummary* const middle = MiddleOther(answer, finding, /*measured=*/true);
  if (middle == nullptr || !finding.processor.has_value()) return 0;
  const RankSummary& rank = answer.ranks[finding.index];
  const auto blocked = static_cast<size_t>(Part::kBlocked);
  const bool known = rank.blocked_known && middle->blocked_known;
  const int64_t blocked_ns = known ? rank.mean[blocked] - middle->mean[blocked] : 0;
  return finding.processor->asleep_ns - middle->processor->asleep_ns - NamedInputNs(finding) -
         blocked_ns;
}

// Own work as the kernel counts it, beside that of the rank in the middle of the others.
std::string OwnWorkSentence(const Answer& answer, const RankFinding& finding) {
  if (!finding.processor.has_value()) {
    return "how long it is on a CPU, in a run queue or asleep: not measured";
  }
  std::string text = absl::StrCat("in a step, waits included: ", ProcessorText(*finding.processor));
  const RankSummary* const middle = MiddleOther(answer, finding, /*measured=*/true);
  if (middle == nullptr) return text;
  return absl::StrCat(text, "; rank ", middle->rank, ": ", ProcessorText(*middle->processor));
}

std::string WorkText(const WorkDifference& one) {
  if (one.in_shapes) {
    return absl::StrFormat("%s has other shapes in %.1f executions a step", Printed(one.name),
                           one.own);
  }
  return absl::StrFormat("%s runs %.1f times a step, on the others %.1f", Printed(one.name),
                         one.own, one.others);
}

// "aten::mul 12.1 ms a step longer [11.5, 12.7] (14.2 in 80.0 calls, on the other rank 2.1)".
std::string LongerText(const Answer& answer, const LongerOperator& one) {
  return absl::StrFormat(
      "%s %s ms a step longer %s (%s ms in %.1f calls, %s %s)", Printed(one.name),
      Ms(one.longer.est_ns), IntervalText(one.longer), Ms(one.own_ns), one.calls,
      answer.ranks.size() > 2 ? "the others' median" : "on the other rank", Ms(one.others_ns));
}

std::string LongerSentence(const Answer& answer, const RankFinding& finding) {
  const LongerWork& longer = *finding.longer;
  if (longer.all.has_value()) {
    const AllLonger& all = *longer.all;
    return absl::StrFormat(
        "nearly all operators take longer there, by a similar factor: of the %d that take 1 %% of "
        "computing or more, %d certainly do; for half of the time in them the factor is %.2f to "
        "%.2f (%.2f in the middle)%s",
        all.operators, all.certain, all.low, all.high, all.middle,
        finding.shapes_known ? "" : "; whether they work on as much data is not known");
  }
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kOperatorsShown, longer.operators.size()); ++i) {
    shown.push_back(LongerText(answer, longer.operators[i]));
  }
  if (longer.operators.size() > kOperatorsShown) {
    shown.push_back(absl::StrCat(
        "and ", Plural(longer.operators.size() - kOperatorsShown, "operator"), " more"));
  }
  return absl::StrCat("of operators that run as often on ",
                      answer.ranks.size() > 2 ? "the others" : "the other rank", ": ",
                      absl::StrJoin(shown, "; "));
}

// ", there mostly in wait (threading.py)".
std::string WithinText(const StoodIn& stood) {
  if (stood.within.empty()) return "";
  return absl::StrCat(", there mostly in ", Printed(stood.within, kPlaceColumns));
}

// Of the other rank, or the one in the middle.
std::string OthersText(const Answer& answer, const StoodIn& stood) {
  const std::string count = stood.others == 0 ? "none" : absl::StrCat(stood.others);
  return absl::StrCat("; of the ", stood.others_host, " of the other rank",
                      answer.ranks.size() > 2 ? " in the middle " : " ", count);
}

std::string KeptText(const StoodIn& stood) {
  if (stood.kept_samples == 0) return "";
  return absl::StrCat("; ", stood.kept_samples, " cannot tell where: Python, or C code that ",
                      "keeps the interpreter's lock, ran");
}

std::string StoodSentence(const Answer& answer, const RankFinding& finding) {
  const StoodIn& stood = *finding.stood;
  if (IsHeldUpByItsThreads(answer, finding)) {
    return absl::StrCat("in ", stood.kept_samples, " of ", stood.host_samples,
                        " samples in host code the interpreter's lock was kept, although the rank ",
                        "sleeps: another Python thread of its process seems to hold it up");
  }
  if (stood.place.empty()) {
    return absl::StrCat(stood.samples, " of ", stood.host_samples,
                        " samples of its Python stack in host code find Python running, or C ",
                        "code that keeps the interpreter's lock; in which function, they cannot ",
                        "tell", OthersText(answer, stood));
  }
  return absl::StrCat("of ", stood.host_samples, " samples of its Python stack in host code ",
                      stood.samples, stood.samples == 1 ? " is in " : " are in ",
                      Printed(stood.place, kPlaceColumns), WithinText(stood),
                      OthersText(answer, stood), KeptText(stood));
}

// What may be a part of what nothing explains.
void AddSigns(const Answer& answer, const RankFinding& finding, std::vector<std::string>* lines) {
  if (finding.steal.has_value()) lines->push_back(StealSentence(answer, *finding.steal));
  if (finding.clock.has_value()) lines->push_back(ClockSentence(answer, *finding.clock));
  if (finding.page_faults.has_value()) {
    lines->push_back(FaultSentence(answer, *finding.page_faults));
  }
}

}  // namespace

bool IsHeldUpByItsThreads(const Answer& answer, const RankFinding& finding) {
  return finding.stood.has_value() && finding.stood->kept_more && SleepsAtHome(answer, finding);
}

std::string EverybodyStoodSentence(const Answer& answer) {
  const StoodIn& stood = *answer.everybody_stood;
  return absl::StrCat("of ", stood.host_samples,
                      " samples of the ranks' Python stacks in host code ", stood.samples,
                      " are in ", Printed(stood.place, kPlaceColumns), WithinText(stood),
                      KeptText(stood));
}

std::vector<std::string> UnknownSentences(const Answer& answer, const RankFinding& finding) {
  if (!finding.work.empty()) {
    std::vector<std::string> shown;
    for (size_t i = 0; i < std::min(kWorkShown, finding.work.size()); ++i) {
      shown.push_back(WorkText(finding.work[i]));
    }
    if (finding.work.size() > kWorkShown) {
      shown.push_back(
          absl::StrCat("and ", Plural(finding.work.size() - kWorkShown, "operator"), " more"));
    }
    return {absl::StrCat("its work differs: ", absl::StrJoin(shown, "; ")),
            "no cause is named where the work differs"};
  }
  if (finding.causes.empty() && MostInStalls(answer, finding)) {
    std::vector<std::string> lines = {
        "most of its lead comes from few steps that take far longer: STALLS says what is known"};
    if (finding.stood.has_value()) lines.push_back(StoodSentence(answer, finding));
    return lines;
  }
  const bool measured = answer.ranks[finding.index].taken_away_known;
  int64_t dropped_ns = 0;
  for (const NotACause& one : finding.not_causes) {
    if (one.because != NotACause::Because::kTooSmall) dropped_ns += one.amount_ns;
  }
  if (dropped_ns * 2 >= finding.lead.est_ns) {
    return {"no fault of this rank alone: what was measured is said below",
            OwnWorkSentence(answer, finding)};
  }
  std::string text = finding.causes.empty()
                         ? "unknown"
                         : absl::StrCat("unknown for ", Ms(finding.unexplained_ns()), " ms of the ",
                                        Ms(finding.lead.est_ns), " ms");
  if (!measured) {
    absl::StrAppend(&text, ": samples of the rank's processor time are missing, so whether the ",
                    "rank was throttled or waited for a CPU is not known. It accuses nobody");
  } else if (!IsCompared(finding)) {
    const RankSummary& rank = answer.ranks[finding.index];
    absl::StrAppend(&text, ": other ranks were not sampled, so what this rank lost (throttled ",
                    Ms(rank.mean[static_cast<size_t>(Part::kThrottled)]),
                    " ms a step, waiting for a CPU ",
                    Ms(rank.mean[static_cast<size_t>(Part::kWaitingForCpu)]),
                    " ms) cannot be compared with theirs. It accuses nobody");
  } else if (SleepsAtHome(answer, finding)) {
    const bool known = answer.ranks[finding.index].blocked_known;
    absl::StrAppend(&text, ": the rank sleeps ", known ? "" : "or blocks ",
                    Ms(SleepsLongerNs(answer, finding)), " ms a step longer in its own work (",
                    known ? "a lock, a connection, a sleep" : "a file, a lock, a sleep",
                    "); what it waits for was not recorded");
  } else if (!finding.stood.has_value()) {
    const bool single = finding.longer.has_value() && !finding.longer->all.has_value();
    absl::StrAppend(&text, ": nothing that was measured explains it for certain. It accuses nobody",
                    single ? "" : ": a slower core does the same in a healthy job");
  }
  std::vector<std::string> lines = {std::move(text)};
  if (finding.stood.has_value()) lines.push_back(StoodSentence(answer, finding));
  if (std::string most = LargestDifference(answer, finding); !most.empty()) {
    lines.push_back(std::move(most));
  }
  if (finding.longer.has_value()) lines.push_back(LongerSentence(answer, finding));
  AddSigns(answer, finding, &lines);
  if (finding.reorders.has_value()) {
    lines.push_back(absl::StrCat("its oneDNN reorders data ", Ms(finding.reorders->est_ns),
                                 " ms a step longer than the others': `syncline report --section "
                                 "primitives` says where"));
  }
  lines.push_back(OwnWorkSentence(answer, finding));
  return lines;
}

bool IsCompared(const RankFinding& finding) {
  return std::none_of(
      finding.not_causes.begin(), finding.not_causes.end(),
      [](const NotACause& one) { return !one.measured && one.part != Part::kBlocked; });
}

bool SleepsAtHome(const Answer& answer, const RankFinding& finding) {
  return SleepsLongerNs(answer, finding) * 2 >= std::max<int64_t>(1, finding.unexplained_ns());
}

std::vector<std::string> RemainderSentences(const Answer& answer, const RankFinding& finding) {
  if (finding.unexplained_ns() <= LimitNs(answer, finding)) return {};
  std::string text = absl::StrCat("not explained: ", Ms(finding.unexplained_ns()), " ms of the ",
                                  Ms(finding.lead.est_ns), " ms");
  const std::string most = LargestDifference(answer, finding);
  std::vector<std::string> lines = {most.empty() ? text : absl::StrCat(text, "; ", most)};
  if (finding.longer.has_value()) lines.push_back(LongerSentence(answer, finding));
  AddSigns(answer, finding, &lines);
  if (finding.stood.has_value()) lines.push_back(StoodSentence(answer, finding));
  return lines;
}

}  // namespace syncline::report
