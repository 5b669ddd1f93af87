// SPDX-License-Identifier: Apache-2.0
// A thread's time as an exact partition by its innermost task, and the silences in it: intervals in
// which no operator runs. Pure.
//
//   forward [ conv [ mkldnn ] . relu ]   =>   conv | mkldnn | conv | forward | relu | ...
//
// Worked example: `backward` is silent between two operators while Gloo transfers: that interval is
// a silence; which silences are waits, blocking_sites.h finds out.
#ifndef SYNCLINE_ANALYSIS_WHY_SEGMENTS_H_
#define SYNCLINE_ANALYSIS_WHY_SEGMENTS_H_

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/why/model.h"
#include "analysis/why/task_names.h"

namespace syncline::analysis::why {

inline constexpr NameId kNoTask = 0xffffffff;

struct Segment {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  NameId leaf = kNoTask;   // the innermost task's name; kNoTask: none is open
  bool works = false;      // it is an operator or a primitive
  bool in_loader = false;  // a task that fetches a batch is open
  bool waits = false;      // the innermost task is a wait
};

// From the first task's begin to the last one's end, without gaps. Marks (task_names.h) are no
// tasks here. `buffer`: memory to use, what is in it goes.
std::vector<Segment> SegmentsOf(std::span<const TaskSpan> spans, const TaskNames& names,
                                std::vector<Segment> buffer = {});

// Where the thread is silent, by what it has open and what it did before and does next: code stands
// still in the same places in each step.
struct Site {
  NameId leaf = kNoTask;
  NameId before = kNoTask;
  NameId after = kNoTask;
  auto operator<=>(const Site&) const = default;
};

struct Silence {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  Site site;
  bool is_wait = false;  // the program says so: it is in a wait (task_names.h)
  // Collectives, not transfers, that were entered before its end and not left at its begin, by
  // entry: indices into the rank's collectives.
  std::vector<uint32_t> pending;
};

// Of at least 20 us.
std::vector<Silence> SilencesOf(std::span<const Segment> segments,
                                std::span<const CollectiveEntry> collectives);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_SEGMENTS_H_
