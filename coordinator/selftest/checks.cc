// SPDX-License-Identifier: Apache-2.0
#include "coordinator/selftest/checks.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/contradictions.h"
#include "common/duration_text.h"
#include "export/why/why_sentences.h"

namespace syncline::selftest {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::MeanEstimate;
using analysis::why::Part;
using analysis::why::RankFinding;
using analysis::why::Refusal;
using analysis::why::Verdict;
using report::Ms;
using report::WithInterval;

// From here on a fault is promised to be named (docs/findings.md): steps, and part of the step.
constexpr uint64_t kStepsPromised = 60;
constexpr int64_t kPromisedPercent = 10;
// How far the amount may lie outside of its own interval of 95 %, of the delay; and what a step
// became longer by outside of the cost's, of the step: windows of one job differ by some percent.
constexpr int64_t kAmountPercent = 5;
constexpr int64_t kDriftPercent = 5;

std::string RankName(const Answer& answer, size_t index) {
  const analysis::why::RankSummary& rank = answer.ranks[index];
  return absl::StrCat("rank ", rank.rank, " (node ", report::Printed(rank.node), ")");
}

const char* CauseText(const Cause& cause) { return analysis::why::PartName(cause.part); }

// Of the ranks that are named for a cause, those first that most of the step is for.
std::vector<const RankFinding*> Named(const Answer& answer) {
  std::vector<const RankFinding*> named;
  for (const RankFinding& finding : answer.findings) {
    if (!finding.causes.empty()) named.push_back(&finding);
  }
  return named;
}

std::string Sentence(const Answer& answer) {
  if (answer.findings.empty()) return "nobody is named";
  const RankFinding& first = answer.findings.front();
  std::string text = RankName(answer, first.index);
  absl::StrAppend(&text, first.late ? " is late by " : " differs by ", WithInterval(first.lead));
  absl::StrAppend(&text, first.causes.empty()
                             ? std::string("; no cause is named")
                             : absl::StrCat("; cause: ", CauseText(first.causes.front())));
  return text;
}

Check CheckHealthy(const Answer& healthy) {
  Check check{.name = "nobody"};
  if (healthy.refusal != Refusal::kNone) {
    check.state = State::kUndecided;
    check.text = absl::StrCat("no answer without the delay: ", healthy.refusal_text);
    return check;
  }
  const std::string step = absl::StrCat("in a step of ", Ms(healthy.mean_step_ns), " ms");
  const std::vector<const RankFinding*> named = Named(healthy);
  const bool is_ours = std::any_of(named.begin(), named.end(), [](const RankFinding* finding) {
    return std::any_of(finding->causes.begin(), finding->causes.end(), [](const Cause& cause) {
      return cause.part == Part::kInput || cause.part == Part::kGarbageCollection;
    });
  });
  if (healthy.verdict == Verdict::kWorkDiffers || is_ours) {
    check.state = State::kFailed;
    check.text = absl::StrCat(Sentence(healthy), " ", step,
                              "; but all ranks do the same work, and no loader waits");
    return check;
  }
  if (named.empty()) {
    check.state = State::kPassed;
    check.text = "no rank is named for a cause without the delay";
    if (healthy.closest.has_value()) {
      absl::StrAppend(&check.text, "; own work differs by ", WithInterval(healthy.closest->lead),
                      " ", step);
    }
    if (!healthy.findings.empty()) {
      const RankFinding& late = healthy.findings.front();
      absl::StrAppend(&check.text, "; own work of ", RankName(healthy, late.index), " takes ",
                      WithInterval(late.lead), " longer ", step,
                      ", cause unknown, as on a slower core");
    }
    return check;
  }
  check.state = State::kUndecided;
  check.text = absl::StrCat(Sentence(healthy), " ", step,
                            " without the delay; this test cannot tell whether that is so: end "
                            "what else runs on these nodes and repeat it");
  return check;
}

// Why a missed delay proves nothing; empty: it was to be found.
std::string BelowPromise(const Answer& healthy, const Answer& delayed, const Delay& delay) {
  if (delayed.steps < kStepsPromised) {
    return absl::StrCat(delayed.steps, " steps were judged, fewer than ", kStepsPromised,
                        ": record for longer (--for)");
  }
  if (healthy.mean_step_ns > 0 && delay.delay_ns < healthy.mean_step_ns * kPromisedPercent / 100) {
    return absl::StrCat("the delay is less than ", kPromisedPercent, " % of the step of ",
                        Ms(healthy.mean_step_ns), " ms: take a larger one (--delay)");
  }
  return "";
}

Check CheckWho(const Answer& healthy, const Answer& delayed, const Delay& delay) {
  Check check{.name = "who"};
  const std::vector<const RankFinding*> named = Named(delayed);
  const bool only_it = named.size() == 1 && delayed.ranks[named[0]->index].rank == delay.rank;
  if (only_it && named[0]->late) {
    check.state = State::kPassed;
    check.text = absl::StrCat(Sentence(delayed), ", and no other rank is named");
    return check;
  }
  if (named.size() > 1 || (named.size() == 1 && !only_it)) {
    check.state = State::kFailed;
    check.text = absl::StrCat("rank ", delay.rank, " was delayed, but ", Sentence(delayed));
    if (named.size() > 1) absl::StrAppend(&check.text, "; ", named.size(), " ranks are named");
    return check;
  }
  const std::string excuse = BelowPromise(healthy, delayed, delay);
  check.state = excuse.empty() ? State::kFailed : State::kUndecided;
  check.text = absl::StrCat("rank ", delay.rank, " was delayed, but ", Sentence(delayed),
                            excuse.empty() ? "" : "; ", excuse);
  return check;
}

// The cause that names the delayed rank's input; nullptr: there is none.
const Cause* InputOf(const Answer& answer, int32_t rank) {
  for (const RankFinding& finding : answer.findings) {
    if (answer.ranks[finding.index].rank != rank) continue;
    for (const Cause& cause : finding.causes) {
      if (cause.part == Part::kInput) return &cause;
    }
  }
  return nullptr;
}

Check CheckCause(const Answer& delayed, const Delay& delay, const Cause* input, bool excused) {
  Check check{.name = "cause"};
  if (input == nullptr) {
    check.state = excused ? State::kUndecided : State::kFailed;
    check.text = absl::StrCat("the data loader of rank ", delay.rank,
                              " was slow, but the answer does not say so");
    return check;
  }
  const auto late = std::find_if(
      delayed.findings.begin(), delayed.findings.end(),
      [&](const RankFinding& finding) { return delayed.ranks[finding.index].rank == delay.rank; });
  const bool first = &late->causes.front() == input;
  check.state = first ? State::kPassed : State::kFailed;
  check.text =
      first ? "its input is named as the cause"
            : absl::StrCat("its input is named only behind ", CauseText(late->causes.front()));
  if (first && late->causes.size() > 1) {
    absl::StrAppend(&check.text, "; ", CauseText(late->causes[1]), " is named behind it");
  }
  return check;
}

// What lies between `value` and the interval; 0 inside.
int64_t Outside(const MeanEstimate& mean, int64_t value_ns) {
  return std::max<int64_t>({0, mean.lo_ns - value_ns, value_ns - mean.hi_ns});
}

Check CheckAmount(const Delay& delay, const Cause& input) {
  const double off = 100.0 * static_cast<double>(input.amount.est_ns - delay.delay_ns) /
                     static_cast<double>(delay.delay_ns);
  const bool fits = Outside(input.amount, delay.delay_ns) <= delay.delay_ns * kAmountPercent / 100;
  return {.name = "amount",
          .state = fits ? State::kPassed : State::kFailed,
          .text = absl::StrFormat("%s a step are found, where it was delayed by %s ms (%+.1f %%)",
                                  WithInterval(input.amount), Ms(delay.delay_ns), off)};
}

Check CheckCost(const Answer& healthy, const Answer& delayed, const Cause& input) {
  const int64_t longer_ns = delayed.mean_step_ns - healthy.mean_step_ns;
  const bool fits = Outside(input.cost, longer_ns) <= healthy.mean_step_ns * kDriftPercent / 100;
  return {.name = "cost",
          // Something else may have changed between the recordings.
          .state = fits ? State::kPassed : State::kUndecided,
          .text = absl::StrCat(
              "COST says that a step would be shorter by ", WithInterval(input.cost),
              "; without the delay it was shorter by ", Ms(longer_ns), " ms",
              fits ? ""
                   : ": more than COST and drift between recordings explain; ranks that "
                     "share a machine compute faster while one of them waits")};
}

bool Overlap(const MeanEstimate& a, const MeanEstimate& b) {
  return a.lo_ns <= b.hi_ns && b.lo_ns <= a.hi_ns;
}

// Who is named, for what and with what time. Steps at the ends of the window may be others: a clock
// places the window on its node.
bool SameFindings(const Answer& a, const Answer& b) {
  const auto same_cause = [](const Cause& x, const Cause& y) {
    return x.part == y.part && Overlap(x.amount, y.amount);
  };
  return a.refusal == b.refusal && a.verdict == b.verdict &&
         std::equal(a.findings.begin(), a.findings.end(), b.findings.begin(), b.findings.end(),
                    [&](const RankFinding& x, const RankFinding& y) {
                      return x.index == y.index && x.late == y.late && Overlap(x.lead, y.lead) &&
                             std::equal(x.causes.begin(), x.causes.end(), y.causes.begin(),
                                        y.causes.end(), same_cause);
                    });
}

Check CheckSame(const Answer& original, const Answer& shifted) {
  if (shifted.refusal != Refusal::kNone) {
    return {.name = "verdict_without_clocks",
            .state = State::kUndecided,
            .text = absl::StrCat("no answer with the wrong clock: ", shifted.refusal_text)};
  }
  const bool same = SameFindings(original, shifted);
  Check check{.name = "verdict_without_clocks", .state = same ? State::kPassed : State::kFailed};
  if (!same) {
    check.text = "with the wrong clock the answer is another one: " + Sentence(shifted);
  } else if (original.findings.empty()) {
    check.text = "nobody is named with the wrong clock, either";
  } else {
    check.text = absl::StrCat("with the wrong clock the same is said: ", Sentence(shifted));
  }
  return check;
}

Check CheckNoticed(const ClockSight& before, const ClockSight& after, int64_t shift_ns) {
  Check check{.name = "clock_noticed"};
  const std::string shifted =
      absl::StrCat("the clock of ", after.node, " was made wrong by ", DurationText(shift_ns));
  if (after.events > before.events || after.contradictions > before.contradictions) {
    check.state = State::kPassed;
    check.text = absl::StrCat(shifted, ": ");
    if (after.events > before.events) {
      absl::StrAppend(&check.text, after.events - before.events,
                      " more clock events, the first: ", after.first_event);
    } else {
      absl::StrAppend(&check.text, after.contradictions - before.contradictions,
                      " more messages contradict the clocks");
    }
    return check;
  }
  const bool visible = before.bound_ns.has_value() && *before.bound_ns < std::abs(shift_ns);
  check.state = visible ? State::kFailed : State::kUndecided;
  check.text = absl::StrCat(shifted, ", and nothing says so");
  if (!visible) {
    absl::StrAppend(&check.text, "; it is known to ",
                    before.bound_ns.has_value() ? absl::StrCat("± ", DurationText(*before.bound_ns))
                                                : std::string("no bound"),
                    " only: take a larger --shift");
  }
  return check;
}

bool Meet(const std::optional<DurationEstimate>& a, const std::optional<DurationEstimate>& b) {
  return a.has_value() && b.has_value() && a->lo_ns <= b->hi_ns && b->lo_ns <= a->hi_ns;
}

Check CheckTruth(const ClockSight& before, const ClockSight& after) {
  Check check{.name = "clock_bound"};
  if (!before.start.has_value() || !before.stop.has_value() || !before.bound_ns.has_value()) {
    check.text = "when this node began and ended is not known";
    return check;
  }
  if (after.contradictions > 0) {
    check.state = State::kPassed;
    check.text =
        "the report says that its bounds do not hold, and calls nothing proven across nodes";
    return check;
  }
  const bool holds = Meet(before.start, after.start) && Meet(before.stop, after.stop);
  check.state = holds ? State::kPassed : State::kFailed;
  const std::string bound = !after.bound_ns.has_value()
                                ? std::string("unknown")
                                : absl::StrCat("± ", DurationText(*after.bound_ns));
  check.text = absl::StrCat("its proven bound goes from ± ", DurationText(*before.bound_ns), " to ",
                            bound, " and ", holds ? "holds" : "DOES NOT HOLD",
                            " the truth at the begin and end of the window");
  return check;
}

}  // namespace

const char* StateJsonName(State state) {
  switch (state) {
    case State::kPassed:
      return "passed";
    case State::kFailed:
      return "failed";
    case State::kUndecided:
      return "undecided";
    case State::kNotTested:
      return "not_tested";
  }
  return "";
}

State Overall(const std::vector<Check>& checks) {
  State worst = State::kNotTested;
  for (const Check& check : checks) {
    if (check.state == State::kFailed) return State::kFailed;
    if (check.state == State::kUndecided) worst = State::kUndecided;
    if (check.state == State::kPassed && worst == State::kNotTested) worst = State::kPassed;
  }
  return worst;
}

std::vector<Check> CheckDelay(const Answer& healthy, const Answer& delayed, const Delay& delay) {
  std::vector<Check> checks = {CheckHealthy(healthy)};
  if (delayed.refusal != Refusal::kNone) {
    checks.push_back({.name = "who",
                      .state = State::kUndecided,
                      .text = absl::StrCat("no answer with the delay: ", delayed.refusal_text)});
    return checks;
  }
  checks.push_back(CheckWho(healthy, delayed, delay));
  const bool excused = checks.back().state == State::kUndecided;
  const Cause* const input = InputOf(delayed, delay.rank);
  checks.push_back(CheckCause(delayed, delay, input, excused));
  if (input == nullptr) return checks;
  checks.push_back(CheckAmount(delay, *input));
  if (healthy.refusal == Refusal::kNone) checks.push_back(CheckCost(healthy, delayed, *input));
  return checks;
}

ClockSight SightOf(const analysis::Report& report, const std::string& node) {
  ClockSight sight{.node = node};
  for (const analysis::NodeReport& one : report.nodes) {
    if (one.name != node) continue;
    sight.bound_ns = one.bound_ns;
    sight.start = one.start_skew;
    sight.stop = one.stop_skew;
  }
  sight.events = report.clock_events.size();
  if (!report.clock_events.empty()) sight.first_event = report.clock_events.front().text;
  sight.contradictions = analysis::ContradictionsOf(report).proven;
  return sight;
}

std::vector<Check> CheckShift(const ClockSight& before, const ClockSight& after, int64_t shift_ns,
                              const Answer& original, const Answer& shifted) {
  return {CheckNoticed(before, after, shift_ns), CheckTruth(before, after),
          CheckSame(original, shifted)};
}

}  // namespace syncline::selftest
