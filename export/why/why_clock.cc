// SPDX-License-Identifier: Apache-2.0
// What is said of how fast processors were clocked.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "export/why/why_sentences.h"

namespace syncline::report {

using analysis::why::Answer;
using analysis::why::SlowerClock;

std::string ClockText(int64_t khz) {
  constexpr double kKhzInGhz = 1e6;
  return absl::StrFormat("%.2f GHz", static_cast<double>(khz) / kKhzInGhz);
}

std::string ClockSentence(const Answer& answer, const SlowerClock& clock) {
  return absl::StrCat("may be a part of it: while its training thread ran, the kernel had the ",
                      "clock of its CPU at ", ClockText(clock.own.khz), " (median of ",
                      clock.own.readings, " readings), ",
                      answer.ranks.size() > 2 ? "those of the others (median)" : "the other rank's",
                      " at ", ClockText(clock.others_khz), "; if its work takes as many cycles as ",
                      "there, that is some ", Ms(clock.more_ns), " ms a step more");
}

}  // namespace syncline::report
