// SPDX-License-Identifier: Apache-2.0
// Every event of every stream, decoded, in timeline order.
#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/merge/choose_events.h"
#include "coordinator/merge/cut.h"
#include "coordinator/merge/event_lines.h"
#include "coordinator/merge/event_names.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/ordered_events.h"
#include "coordinator/merge/outputs.h"
#include "export/text/event_text.h"

namespace syncline::merge {
namespace {

// Writes and clears `buffer`; false when nobody reads any more.
absl::StatusOr<bool> Flush(text::TextBuffer* buffer, std::ostream* out) {
  errno = 0;
  out->write(buffer->text().data(), static_cast<std::streamsize>(buffer->size()));
  out->flush();
  buffer->Clear();
  if (out->good()) return true;
  if (errno == EPIPE) return false;
  return ErrnoStatus(errno, "cannot write the events");
}

}  // namespace

absl::StatusOr<EventsResult> PrintEvents(const EventsOptions& options, std::ostream* out) {
  SYNCLINE_RETURN_IF_ERROR(CheckRange(options.range));
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options.input));
  SYNCLINE_RETURN_IF_ERROR(ChooseCut(options.range, &inputs));
  LineOptions lines;
  lines.style = options.format == EventFormat::kText ? text::EventText::Style::kText
                                                     : text::EventText::Style::kJson;
  lines.threads = ThreadsOf(options.threads);
  std::optional<EventNames> names;
  if (TakesNames(options.events, options.raw, inputs)) {
    SYNCLINE_ASSIGN_OR_RETURN(names, EventNames::Find(inputs, lines.threads));
    if (!options.raw) names->MakeTexts(lines.style);
    lines.names = &*names;
  }
  SYNCLINE_RETURN_IF_ERROR(
      ChooseEvents(options.events, &inputs, names.has_value() ? &*names : nullptr));
  lines.shown = Shown(options.range, inputs);
  lines.ids = options.raw ? text::EventText::Ids::kAsRecorded : text::EventText::Ids::kResolved;
  EventsResult result;
  result.incomplete = inputs.incomplete;
  result.complaints = inputs.complaints;
  result.notes = inputs.notes;
  SYNCLINE_ASSIGN_OR_RETURN(
      const LinesWritten written,
      WriteEventLines(inputs, lines, [out](text::TextBuffer* text) { return Flush(text, out); }));
  result.events = written.events;
  if (!written.to_the_end) return result;
  result.incomplete |= !written.is_complete;
  const std::string complaint = UndecidedComplaint(written.undecided);
  if (!complaint.empty()) result.complaints.push_back(complaint);
  return result;
}

}  // namespace syncline::merge
