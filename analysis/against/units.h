// SPDX-License-Identifier: Apache-2.0
// What the sums of two recordings are made per: a step of the program, or, where it marks none, a
// second of the recording. Pure.
//
// Units are what a comparison resamples, so a recording has no more than kUnitsMax of them: of
// more steps, several that follow each other are one unit. A step is here all from its begin to the
// begin of the next one, with the pause behind it, so that nothing that the program does between
// steps is left out; the last step has no next one, and is left out.
#ifndef SYNCLINE_ANALYSIS_AGAINST_UNITS_H_
#define SYNCLINE_ANALYSIS_AGAINST_UNITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "timeline/sink.h"

namespace syncline::analysis::against {

enum class Per : uint8_t { kStep, kSecond };

inline constexpr size_t kUnitsMax = 600;
// Of fewer steps on a side no interval is worth printing: four blocks of three (why/statistics.h).
inline constexpr size_t kStepsLeast = 12;

// When all ranks were recorded; of profiles without a recording, when any of them was.
std::vector<timeline::Interval> CoverageOf(const Report& report);

// Steps, each to the begin of the next, that all ranks were recorded in.
struct Periods {
  std::string name;                           // "train_step"; "" where there are none
  std::vector<timeline::Interval> intervals;  // in order, none touching into the next
};
// By the steps that the report is about; else by those that a profile has of its device.
Periods PeriodsOf(const Report& report);

struct Units {
  Per per = Per::kSecond;
  std::vector<timeline::Interval> intervals;  // in order, disjoint
  std::vector<int64_t> lengths_ns;            // of each, without pauses of the recording
  int64_t steps = 0;                          // of a unit; 0: of equal parts of the time
  int64_t part_ns = 0;                        // of those, how long one is

  size_t size() const { return intervals.size(); }
  // The unit in which `time` lies; `hint`: where the last one was found.
  std::optional<size_t> At(TimelineTime time, size_t* hint) const;
  // Of what is added up over a unit: of a step, or of a second.
  int64_t PerOne(int64_t sum) const;
  // How many steps or seconds all units are.
  double Ones() const;
};
Units UnitsOf(const Report& report, Per per);

}  // namespace syncline::analysis::against

#endif  // SYNCLINE_ANALYSIS_AGAINST_UNITS_H_
