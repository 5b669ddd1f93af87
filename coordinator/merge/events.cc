// Every event of every stream, decoded, in timeline order.
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/merge/choose_events.h"
#include "coordinator/merge/cut.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/ordered_events.h"
#include "export/text/event_text.h"

namespace syncline::merge {
namespace {

constexpr size_t kBufferBytes = 1 << 18;

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
  SYNCLINE_RETURN_IF_ERROR(ChooseEvents(options.events, &inputs));
  EventsResult result;
  result.incomplete = inputs.incomplete;
  result.complaints = inputs.complaints;
  result.notes = inputs.notes;
  OrderedEvents events(inputs, Shown(options.range));
  SYNCLINE_RETURN_IF_ERROR(events.Open());
  text::EventText lines(options.format == EventFormat::kText ? text::EventText::Style::kText
                                                             : text::EventText::Style::kJson);
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const text::EventView* event, events.Next());
    if (event == nullptr) break;
    events.Prepare(lines);
    if (!lines.AppendUndecoded(*event)) lines.Append(events.Decoded());
    ++result.events;
    if (lines.buffer()->size() < kBufferBytes) continue;
    SYNCLINE_ASSIGN_OR_RETURN(const bool read, Flush(lines.buffer(), out));
    if (!read) return result;
  }
  result.incomplete |= !events.IsComplete();
  const std::string complaint = UndecidedComplaint(events.undecided());
  if (!complaint.empty()) result.complaints.push_back(complaint);
  SYNCLINE_RETURN_IF_ERROR(Flush(lines.buffer(), out).status());
  return result;
}

}  // namespace syncline::merge
