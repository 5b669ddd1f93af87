// SPDX-License-Identifier: Apache-2.0
// Steps of a job that marks none: from the end of one optimizer step to the end of the next.
//
// PyTorch calls the task of an optimizer "Optimizer.step#CLASS.step"; a training loop has one in
// each iteration, after the accumulated gradients. What is called a step here is from one task of
// a thread and name to its next: of a loop that steps two optimizers of one class (or one twice) a
// part of the iteration. No step leads across something that is not known: a hole in the thread's,
// process's or node's lane, or a task that is not whole.
//
// Memory: two instants for each optimizer step. Thread-safety: one thread.
#ifndef SYNCLINE_ANALYSIS_OPTIMIZER_STEPS_H_
#define SYNCLINE_ANALYSIS_OPTIMIZER_STEPS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/report.h"
#include "timeline/sink.h"

namespace syncline::analysis {

class OptimizerSteps {
 public:
  // Is it an optimizer's task?
  static bool Is(std::string_view name);

  // A task for which Is() holds, in any order; `whole`: both its ends were recorded, and no loss
  // may have hit its thread meanwhile.
  void Add(const timeline::Span& span, bool whole);

  // All tasks of one name in one thread.
  struct Series {
    timeline::TrackId track = 0;
    timeline::TextId name = timeline::kNoText;
    uint16_t depth = 0;       // the least of any task
    std::vector<Step> steps;  // by begin; their names are empty
  };
  // Those with a step. `known`: was all of `track` known from the first instant to the second?
  using Known = std::function<bool(timeline::TrackId track, const timeline::Interval&)>;
  std::vector<Series> Take(const Known& known) const;

 private:
  struct End {
    TimelineTime time;
    NodeTime node_time;
    bool whole = true;
  };
  struct Ends {
    uint16_t depth = 0;
    std::vector<End> ends;
  };
  struct Key {
    timeline::TrackId track;
    timeline::TextId category;
    timeline::TextId name;
    auto operator<=>(const Key&) const = default;
  };

  std::map<Key, Ends> series_;
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_OPTIMIZER_STEPS_H_
