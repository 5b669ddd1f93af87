// SPDX-License-Identifier: Apache-2.0
// Which recordings were compared, or why they were not: of any kind of job.
//
// Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_COMPARED_SIDES_H_
#define SYNCLINE_ANALYSIS_WHY_COMPARED_SIDES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace syncline::analysis::why {

// Why two recordings are not compared. Stable: scripts read the names.
enum class Mismatch : uint8_t {
  kNone,
  kNowRefused,  // `why` has no answer for it
  kBeforeRefused,
  kOtherWorldSize,  // more ranks, or fewer; other tasks
  kOtherSteps,      // the judged steps are of another class
  kTooFewSteps,     // to be compared
  kOtherKind,       // a job on devices and one on CPUs, a cut model and one that is none
};
const char* MismatchJsonName(Mismatch mismatch);  // "other_world_size"

struct ComparedSide {
  std::string job;
  int64_t window_ns = 0;
  uint64_t steps = 0;
  std::string step_class;  // "" of a cut model
  size_t ranks = 0;        // of a cut model: partitions
  bool incomplete = false;
  std::optional<uint64_t> lost_events = 0;  // nullopt: lost, but not counted
  uint64_t left_out = 0;                    // of a job on devices: whole steps that are not judged
};

struct ComparedSides {
  Mismatch mismatch = Mismatch::kNone;
  std::string mismatch_text;  // one line
  ComparedSide before;        // of all recordings before together
  ComparedSide now;
  std::vector<ComparedSide> befores;  // each of them

  bool incomplete() const { return before.incomplete || now.incomplete; }
  // Whether the intervals hold how recordings differ without a change: several were before.
  bool drift_known() const { return befores.size() > 1; }

  // Of each recording before.
  std::vector<size_t> steps_before() const;
  uint64_t fewest_steps_before() const;

  // Keeps the first reason.
  void Refuse(Mismatch reason, std::string text) {
    if (mismatch != Mismatch::kNone) return;
    mismatch = reason;
    mismatch_text = std::move(text);
  }
};

// Of two sides of a kind, whose refusal is an enumeration with kNone: whether one of them is
// refused, and then why.
template <class Side, class Comparison>
bool AreRefused(const Side& before, const Side& now, Comparison* comparison) {
  constexpr auto kNone = decltype(now.refusal)::kNone;
  const Side& side = now.refusal != kNone ? now : before;
  if (side.refusal == kNone) return false;
  if (comparison->mismatch != Mismatch::kNone) return true;
  comparison->refusal = side.refusal;
  comparison->mismatch = &side == &now ? Mismatch::kNowRefused : Mismatch::kBeforeRefused;
  comparison->mismatch_text =
      (&side == &now ? "the recording now: " : "the recording before: ") + side.refusal_text;
  return true;
}

// Which sides there are. `check` says of each pair, by Refuse, why it is not compared.
template <class Comparison, class Side, class Check>
Comparison Checked(std::span<const Side> before, const Side& now, const Check& check) {
  Comparison comparison;
  comparison.before = SummaryOf(before.front());
  comparison.now = SummaryOf(now);
  for (const Side& side : before) {
    comparison.befores.push_back(SummaryOf(side));
    check(side, now, &comparison);
  }
  return comparison;
}

// Lost events of several recordings; nullopt: lost, but not counted.
void AddLost(std::optional<uint64_t> of_one, std::optional<uint64_t>* of_all);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_COMPARED_SIDES_H_
