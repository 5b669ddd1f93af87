// SPDX-License-Identifier: Apache-2.0
#include "coordinator/selftest/checks.h"

#include <algorithm>
#include <cstdlib>
#include <set>

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
constexpr int64_t kAmountNs = 300'000;
constexpr int64_t kAmountMostPercent = 25;
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

std::string Sentence(const Answer& answer, const RankFinding& finding) {
  return absl::StrCat(RankName(answer, finding.index),
                      finding.late ? " is late by " : " differs by ", WithInterval(finding.lead),
                      finding.causes.empty()
                          ? std::string("; no cause is named")
                          : absl::StrCat("; cause: ", CauseText(finding.causes.front())));
}

// Of the finding that comes first.
std::string Sentence(const Answer& answer) {
  if (answer.findings.empty()) return "nobody is named";
  const std::vector<const RankFinding*> named = Named(answer);
  return Sentence(answer, named.empty() ? answer.findings.front() : *named.front());
}

Check CheckHealthy(const Answer& healthy) {
  Check check{.name = "nobody"};
  if (healthy.refusal != Refusal::kNone) {
    check.state = State::kUndecided;
    check.text = absl::StrCat("no answer without the delay: ", healthy.refusal_text);
    return check;
  }
  if (healthy.verdict == Verdict::kNotJudged) {
    check.state = State::kUndecided;
    check.text = "without the delay nothing was judged: there is one rank, or no collective";
    return check;
  }
  if (healthy.steps < kStepsPromised) {
    check.state = State::kUndecided;
    check.text = absl::StrCat(healthy.steps, " steps were judged without the delay, fewer than ",
                              kStepsPromised, ": record for longer (--for)");
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
    } else if (!healthy.findings.empty()) {
      absl::StrAppend(&check.text, "; ", Sentence(healthy, healthy.findings.front()), " ", step,
                      ", which accuses nobody");
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

// Something that another program may well do to a rank meanwhile.
bool MayBeOthers(Part part) {
  return part == Part::kWaitingForCpu || part == Part::kThrottled || part == Part::kBlocked;
}

// Named for such things alone.
bool MayBeSo(const RankFinding& finding) {
  return std::all_of(finding.causes.begin(), finding.causes.end(),
                     [](const Cause& cause) { return MayBeOthers(cause.part); });
}

Check CheckWho(const Answer& healthy, const Answer& delayed, const Delay& delay) {
  Check check{.name = "who"};
  const auto is_delayed = [&](const RankFinding* finding) {
    return delayed.ranks[finding->index].rank == delay.rank;
  };
  std::vector<const RankFinding*> others = Named(delayed);
  const auto own = std::find_if(others.begin(), others.end(), is_delayed);
  const RankFinding* const found = own == others.end() ? nullptr : *own;
  if (found != nullptr) others.erase(own);
  if (found != nullptr && found->late && others.empty()) {
    check.state = State::kPassed;
    check.text =
        absl::StrCat(Sentence(delayed, *found), ", and no other rank is named for a cause");
    return check;
  }
  check.text = absl::StrCat("rank ", delay.rank, " was delayed");
  if (!others.empty()) {
    const bool may_be_so = std::all_of(others.begin(), others.end(),
                                       [](const RankFinding* one) { return MayBeSo(*one); });
    const bool excused = found != nullptr || !BelowPromise(healthy, delayed, delay).empty();
    check.state = may_be_so && excused ? State::kUndecided : State::kFailed;
    absl::StrAppend(&check.text, found != nullptr ? " and is named, and also: " : ", but ",
                    Sentence(delayed, *others.front()));
    return check;
  }
  const std::string excuse = BelowPromise(healthy, delayed, delay);
  check.state = excuse.empty() ? State::kFailed : State::kUndecided;
  absl::StrAppend(&check.text, ", but ",
                  found != nullptr           ? "is not called late"
                  : delayed.findings.empty() ? std::string("nobody is named")
                                             : Sentence(delayed, delayed.findings.front()),
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
  const auto before_it = [&](const Cause& cause) {
    return &cause >= input || MayBeOthers(cause.part);
  };
  check.state = first ? State::kPassed
                : std::all_of(late->causes.begin(), late->causes.end(), before_it)
                    ? State::kUndecided  // another program may well take more than the delay
                    : State::kFailed;
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

// What others took of the rank's processor may lie in its loader's time.
int64_t TakenNs(const Answer& answer, int32_t rank) {
  for (const analysis::why::RankSummary& one : answer.ranks) {
    if (one.rank != rank) continue;
    return one.mean[static_cast<size_t>(Part::kWaitingForCpu)] +
           one.mean[static_cast<size_t>(Part::kThrottled)] +
           one.mean[static_cast<size_t>(Part::kBlocked)];
  }
  return 0;
}

Check CheckAmount(const Answer& delayed, const Delay& delay, const Cause& input) {
  const int64_t off_ns = input.amount.est_ns - delay.delay_ns;
  const double off = 100.0 * static_cast<double>(off_ns) / static_cast<double>(delay.delay_ns);
  const int64_t near_ns = std::max(delay.delay_ns * kAmountPercent / 100, kAmountNs);
  // An interval that holds everything says nothing.
  const int64_t wide_ns = std::max(delay.delay_ns * kAmountMostPercent / 100, kAmountNs);
  const int64_t outside_ns = Outside(input.amount, delay.delay_ns);
  const int64_t taken_ns = TakenNs(delayed, delay.rank);
  Check check{.name = "amount", .state = State::kPassed};
  check.text = absl::StrFormat("%s a step are found, where it was delayed by %s ms (%+.1f %%)",
                               WithInterval(input.amount), Ms(delay.delay_ns), off);
  if (outside_ns <= near_ns && std::abs(off_ns) <= wide_ns) return check;
  const bool excused = outside_ns <= near_ns + taken_ns && std::abs(off_ns) <= wide_ns + taken_ns;
  check.state = excused ? State::kUndecided : State::kFailed;
  if (excused) {
    absl::StrAppend(&check.text, "; but others take its processor for ", Ms(taken_ns),
                    " ms of a step: end what else runs there and repeat it");
  }
  return check;
}

bool ShareNode(const Answer& answer) {
  std::set<std::string> nodes;
  for (const analysis::why::RankSummary& rank : answer.ranks) nodes.insert(rank.node);
  return nodes.size() < answer.ranks.size();
}

// By what a step really became longer; something else may have changed between the recordings, so
// that this can confirm COST and not refute it.
Check CheckCost(const Answer& healthy, const Answer& delayed, const Cause& input) {
  const int64_t longer_ns = delayed.mean_step_ns - healthy.mean_step_ns;
  const bool fits = Outside(input.cost, longer_ns) <= healthy.mean_step_ns * kDriftPercent / 100;
  Check check{.name = "cost", .state = fits ? State::kPassed : State::kNotTested};
  check.text = absl::StrCat("COST says that without this cause a step would be shorter by ",
                            WithInterval(input.cost), "; without the delay it was shorter by ",
                            Ms(longer_ns), " ms");
  if (fits) return check;
  absl::StrAppend(
      &check.text, ". These differ by more than ", kDriftPercent,
      " % of the step: something else changed between the recordings, or COST is wrong");
  if (longer_ns < input.cost.est_ns && ShareNode(delayed)) {
    absl::StrAppend(&check.text,
                    " (ranks on one machine compute faster while one of them waits, which COST "
                    "does not know)");
  }
  return check;
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
  } else if (Named(original).empty()) {
    check.state = State::kNotTested;
    check.text = "nobody was named before the clock was made wrong";
  } else {
    check.text = absl::StrCat("with the wrong clock the same is said: ", Sentence(shifted));
  }
  return check;
}

// Whether a shift is so large that messages must show it: half of them arrive within `flight_ns`,
// so that of those in one direction half would be received before they were sent.
std::string Invisible(const ClockSight& before, int64_t shift_ns) {
  if (!before.bound_ns.has_value()) return "how well its clock is known is not told";
  if (!before.flight_ns.has_value()) {
    return "no messages between this node and another were recorded, which could show it";
  }
  if (shift_ns > *before.bound_ns + *before.flight_ns) return "";
  return absl::StrCat("its clock is known to ± ", DurationText(*before.bound_ns),
                      ", and messages take ", DurationText(*before.flight_ns),
                      ": take a --shift larger than both together");
}

// The first event of which there are more than before.
std::string NewEvent(const ClockSight& before, const ClockSight& after) {
  for (const std::string& event : after.events) {
    if (std::count(after.events.begin(), after.events.end(), event) >
        std::count(before.events.begin(), before.events.end(), event)) {
      return event;
    }
  }
  return "";
}

Check CheckNoticed(const ClockSight& before, const ClockSight& after, int64_t shift_ns) {
  Check check{.name = "clock_noticed"};
  check.text =
      absl::StrCat("the clock of ", after.node, " was made wrong by ", DurationText(shift_ns));
  const std::string event = NewEvent(before, after);
  if (after.contradictions > 0 || !event.empty()) {
    check.state = State::kPassed;
    absl::StrAppend(&check.text, ": ",
                    after.contradictions > 0
                        ? absl::StrCat(after.contradictions,
                                       " of the recorded messages contradict the clocks now")
                        : absl::StrCat("a new clock event: ", event));
    return check;
  }
  const std::string invisible = Invisible(before, shift_ns);
  check.state = invisible.empty() ? State::kFailed : State::kUndecided;
  absl::StrAppend(&check.text, ", and nothing says so", invisible.empty() ? "" : "; ", invisible);
  return check;
}

bool Meet(const DurationEstimate& a, const DurationEstimate& b) {
  return a.lo_ns <= b.hi_ns && b.lo_ns <= a.hi_ns;
}

Check CheckTruth(const ClockSight& before, const ClockSight& after, int64_t shift_ns) {
  Check check{.name = "clock_bound"};
  if (after.contradictions > 0) {
    check.state = State::kPassed;
    check.text =
        "the report says that its bounds do not hold, and calls nothing proven across nodes";
    return check;
  }
  const bool known = before.start.has_value() && before.stop.has_value() &&
                     after.start.has_value() && after.stop.has_value();
  const std::string invisible = Invisible(before, shift_ns);
  if (!known || !invisible.empty()) {
    check.state = State::kUndecided;
    check.text = !known ? "when this node began and ended is not known" : invisible;
    return check;
  }
  const bool holds = Meet(*before.start, *after.start) && Meet(*before.stop, *after.stop);
  check.state = holds ? State::kPassed : State::kFailed;
  check.text = absl::StrCat(
      "its bound goes from ± ", DurationText(*before.bound_ns), " to ",
      after.bound_ns.has_value() ? absl::StrCat("± ", DurationText(*after.bound_ns)) : "unknown",
      holds ? " and still allows the truth" : " and EXCLUDES the truth",
      ", at the begin and end of the window");
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

void Complete(const std::string& reason, std::vector<Check>* checks) {
  for (const char* name : kCheckNames) {
    const bool there = std::any_of(checks->begin(), checks->end(),
                                   [&](const Check& check) { return check.name == name; });
    if (!there) checks->push_back({.name = name, .text = reason});
  }
  const auto place = [](const Check& check) {
    return std::find(kCheckNames.begin(), kCheckNames.end(), check.name) - kCheckNames.begin();
  };
  std::sort(checks->begin(), checks->end(),
            [&](const Check& a, const Check& b) { return place(a) < place(b); });
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
  checks.push_back(CheckAmount(delayed, delay, *input));
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
  for (const clocksync::ClockEvent& event : report.clock_events) {
    // Not its text, which has numbers that a shift may change a little.
    sight.events.push_back(absl::StrCat(clocksync::EventName(event), " of ", event.node));
  }
  for (const analysis::MessageRow& row : report.messages.rows) {
    const bool arrives =
        row.receive_node < report.nodes.size() && report.nodes[row.receive_node].name == node;
    const bool leaves =
        row.send_node < report.nodes.size() && report.nodes[row.send_node].name == node;
    if (arrives == leaves || !row.flight.has_value()) continue;
    sight.flight_ns = std::max(sight.flight_ns.value_or(0), row.flight->est_ns);
  }
  sight.contradictions = analysis::ContradictionsOf(report).proven;
  return sight;
}

std::vector<Check> CheckShift(const ClockSight& before, const ClockSight& after, int64_t shift_ns,
                              const Answer& original, const Answer& shifted) {
  if (before.contradictions > 0) {
    return {{.name = "clock_noticed",
             .state = State::kUndecided,
             .text = absl::StrCat(before.contradictions,
                                  " of the recorded messages contradict the clocks as they are: "
                                  "the clocks of these nodes are wrong already, and the report "
                                  "says so")},
            {.name = "clock_bound",
             .state = State::kUndecided,
             .text = "no bound holds without the shift, either"},
            CheckSame(original, shifted)};
  }
  return {CheckNoticed(before, after, shift_ns), CheckTruth(before, after, shift_ns),
          CheckSame(original, shifted)};
}

}  // namespace syncline::selftest
