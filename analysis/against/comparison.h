// SPDX-License-Identifier: Apache-2.0
// What changed between recordings of any kind: one now, and one or several before. Every number is
// defined in docs/findings.md.
//
// A row (an operator, a kernel, a collective) is said to have changed where all of this is so:
//
//   1. Its change is at least kLimitPpm of the step (or of a second). What took less than that on
//      both sides cannot have changed by as much, and is not tested.
//   2. 0 lies outside its interval of 95 % (why/changes.h), which holds how steps vary, and with
//      several recordings before also how those differ.
//   3. Many rows are tested, m of them (per second twice: the time in all, and of a call), so that
//      one in twenty would be named by chance: 0 must also lie outside an interval that holds
//      1 - 5 % / m, by Student's t over means of blocks of steps of each side (Bonferroni).
//   4. It is at least some part of what the row took before: kOneDriftPpm with one recording
//      before, as recordings of one job differ by some percent without any change and one
//      recording does not tell by how much; kDriftPpm with several.
//
// Pure, deterministic.
#ifndef SYNCLINE_ANALYSIS_AGAINST_COMPARISON_H_
#define SYNCLINE_ANALYSIS_AGAINST_COMPARISON_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/against/recording_sums.h"
#include "analysis/why/changes.h"

namespace syncline::analysis::against {

// By what was measured of a small PyTorch job that was started anew, on a machine that others used:
// operators differed by up to 28 %, mostly by less than 20 %, and by about 1 % of the step.
inline constexpr int64_t kLimitPpm = 10'000;
inline constexpr int64_t kOneDriftPpm = 200'000;
inline constexpr int64_t kDriftPpm = 50'000;

// Why recordings are not compared. Stable: scripts read the names.
enum class Mismatch : uint8_t { kNone, kOtherRanks, kOtherProgram, kTooShort };
const char* MismatchJsonName(Mismatch mismatch);  // "other_ranks"

struct Summary {
  std::string id;
  std::string detail;
  bool incomplete = false;
  int64_t counted_ns = 0;
  size_t nodes = 0;
  size_t processes = 0;
  bool only_profiles = false;
  size_t ranks = 0;  // 0: none
  size_t steps = 0;  // that operators are added up over; 0: per second
};

struct StepChange {
  std::string name;
  uint64_t marked_by = 1;  // by how many threads now; the k-th steps of all of them are averaged
  size_t steps_before = 0;
  size_t steps_now = 0;
  int64_t median_before_ns = 0;
  int64_t median_now_ns = 0;
  why::Change length;
  bool has_interval = false;  // false: too few steps on a side, and only medians and means are set
  bool changed = false;
};

// Which ranks a row changed on: those with at least half of the mean's change, in its direction.
struct Where {
  size_t changed = 0;
  size_t of = 0;
  size_t most = 0;      // index into Comparison::members: whose change is the largest
  int64_t most_ns = 0;  // by how much, of a step or of a second
};

// Of the main threads' time, mean of all recordings before.
struct ConditionChange {
  Condition::Kind kind = Condition::Kind::kWaiting;
  int64_t before_ppm = 0;
  int64_t now_ppm = 0;
};

struct RowChange {
  RowName name;
  why::Change time;         // of a step or second; mean over ranks, or where there are none, of all
  double calls_before = 0;  // of a step or second, of a rank
  double calls_now = 0;
  enum class State : uint8_t { kSame, kChanged, kAppeared, kVanished };
  State state = State::kSame;
  Where where;
  // Per second: the mean of a call, whose change does not depend on how often it is called; ppm are
  // of what a call took before. nullopt: per step, or too few calls on a side.
  std::optional<why::Change> call;
  bool call_changed = false;
};

struct Comparison {
  Mismatch mismatch = Mismatch::kNone;
  std::string mismatch_text;  // one line
  Summary now;
  std::vector<Summary> befores;
  std::vector<std::string> notes;  // what differs, and yet is compared
  Per per = Per::kSecond;
  std::string step_name;
  std::vector<Member> members;  // that all have; none where they are called otherwise
  std::vector<StepChange> steps;
  std::vector<ConditionChange> conditions;  // that all recordings have
  why::Change period;  // begin of a step to the begin of the next; per second: 0
  size_t tested = 0;   // rows: m
  int64_t limit_ppm = kLimitPpm;
  int64_t own_limit_ppm = kOneDriftPpm;
  std::vector<EdgeChange> edges;
  std::vector<RowChange> rows;  // changed ones first, then by change, the largest first

  bool incomplete() const;
  bool drift_known() const { return befores.size() > 1; }
  size_t changed() const;  // rows, not counting those whose calls alone did
};

// At least one before; all with the same Per, which is kStep only where all have steps.
Comparison Compare(const std::vector<Recording>& before, const Recording& now);

}  // namespace syncline::analysis::against

#endif  // SYNCLINE_ANALYSIS_AGAINST_COMPARISON_H_
