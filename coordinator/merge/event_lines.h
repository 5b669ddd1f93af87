// SPDX-License-Identifier: Apache-2.0
// Ordered events as lines, by one thread or by several.
//
// Several share the streams out (StreamShare): each orders its own, makes lines of them and hands
// them over in chunks, and whoever asks takes from the chunks the line that is next of all. So the
// lines are the same for any number of threads. A thread is at most a few MiB ahead.
//
// Memory: the streams' own once, 64 chunks of 256 KiB or, from 32 threads on, two for each thread,
// two more that each has in hand, and what lines have in common, of which all threads keep as much
// as one would alone.
#ifndef SYNCLINE_COORDINATOR_MERGE_EVENT_LINES_H_
#define SYNCLINE_COORDINATOR_MERGE_EVENT_LINES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/merge/event_names.h"
#include "coordinator/merge/inputs.h"
#include "export/text/event_text.h"
#include "timeline/builder.h"

namespace syncline::merge {

struct LinesWritten {
  uint64_t events = 0;
  bool is_complete = true;
  uint64_t undecided = 0;  // OrderedEvents::undecided()
  bool to_the_end = true;  // false: `write` said that it was enough
};

// Writes and clears what is in the buffer; false: nobody reads any more.
using WriteLines = std::function<absl::StatusOr<bool>(text::TextBuffer*)>;

struct LineOptions {
  timeline::Interval shown;
  text::EventText::Style style = text::EventText::Style::kText;
  text::EventText::Ids ids = text::EventText::Ids::kResolved;
  const EventNames* names = nullptr;  // what they are resolved by, and who is wanted by name
  unsigned threads = 1;
};

absl::StatusOr<LinesWritten> WriteEventLines(const OpenedInputs& inputs, const LineOptions& options,
                                             const WriteLines& write);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_EVENT_LINES_H_
