// SPDX-License-Identifier: Apache-2.0
// A merge as it is seen on a terminal while it lasts: one line, which says what is read and goes
// away again; and once, where reading what lies before a cut takes long, that there is a way to
// read less. Nothing of it is shown of a merge that takes a moment.
#ifndef SYNCLINE_COORDINATOR_CLI_MERGE_VIEW_H_
#define SYNCLINE_COORDINATOR_CLI_MERGE_VIEW_H_

#include <cstdint>

#include "coordinator/cli/context.h"
#include "coordinator/merge/merge.h"

namespace syncline::cli {

class MergeView {
 public:
  // `context` outlives it.
  MergeView(const Context* context, const merge::MergeOptions& options)
      : context_(*context),
        may_look_back_(options.range.from.has_value() &&
                       options.look_back.how != merge::LookBack::How::kAtMost),
        begun_ns_(context->clock->RawNs()) {}
  ~MergeView() { Clear(); }
  MergeView(const MergeView&) = delete;
  MergeView& operator=(const MergeView&) = delete;

  void OnProgress(const merge::Progress& progress);

 private:
  void Clear();

  const Context& context_;
  const bool may_look_back_;
  const int64_t begun_ns_;
  int64_t shown_ns_ = 0;
  bool line_ = false;  // stands on the terminal
  bool said_ = false;  // that one may look back
};

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_MERGE_VIEW_H_
