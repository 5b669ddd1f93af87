// Every event of every stream, decoded, in timeline order.
#include <cerrno>
#include <utility>

#include "common/status.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "export/text/event_text.h"
#include "timeline/stream_merger.h"

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

absl::StatusOr<EventsResult> PrintEvents(const InputOptions& options, EventFormat format,
                                         std::ostream* out) {
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options));
  EventsResult result;
  result.incomplete = inputs.incomplete;
  result.complaints = inputs.complaints;
  result.notes = inputs.notes;
  timeline::StreamMerger merger;
  std::vector<const std::string*> node_of_source;
  for (const timeline::NodeInput& node : inputs.nodes) {
    for (TraceReader* reader : node.readers) {
      for (const StreamInfo& stream : reader->streams()) {
        SYNCLINE_ASSIGN_OR_RETURN(auto cursor, reader->Open(stream.index));
        merger.Add(std::move(cursor), node.placement);
        node_of_source.push_back(&node.name);
      }
    }
  }
  text::EventText lines(format == EventFormat::kText ? text::EventText::Style::kText
                                                     : text::EventText::Style::kJson);
  std::vector<FieldValue> values;
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const timeline::StreamMerger::Head* head, merger.Next());
    if (head == nullptr) break;
    if (!head->cursor->Decode(*head->record, &values)) result.incomplete = true;
    const text::EventView event{head->time, *node_of_source[head->source], &head->cursor->stream(),
                                head->record, values};
    lines.Append(event);
    ++result.events;
    if (lines.buffer()->size() < kBufferBytes) continue;
    SYNCLINE_ASSIGN_OR_RETURN(const bool read, Flush(lines.buffer(), out));
    if (!read) return result;
  }
  for (uint32_t i = 0; i < merger.size(); ++i) {
    result.incomplete = result.incomplete || !merger.cursor(i)->losses().empty();
  }
  SYNCLINE_RETURN_IF_ERROR(Flush(lines.buffer(), out));
  return result;
}

}  // namespace syncline::merge
