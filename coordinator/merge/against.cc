// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/against.h"

#include <vector>

#include "analysis/against/sum_sink.h"
#include "common/status.h"
#include "coordinator/merge/inputs.h"
#include "timeline/builder.h"

namespace syncline::merge {

using analysis::against::Per;
using analysis::against::Recording;
using analysis::against::SumSink;

absl::StatusOr<Recording> ReadSums(const ReportOptions& options, const analysis::Report& report,
                                   Per per) {
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options.input));
  Recording recording = analysis::against::RecordingOf(report, per);
  recording.redacted = inputs.recording.has_value() && inputs.recording->redacted;
  SumSink sums(report, &recording);
  const std::vector<timeline::TimelineSink*> sinks = {&sums};
  SYNCLINE_RETURN_IF_ERROR(timeline::BuildTimeline(inputs.nodes, inputs.build, sinks).status());
  return recording;
}

}  // namespace syncline::merge
