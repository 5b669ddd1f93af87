// Every event of every stream, decoded, in timeline order.
#include <cerrno>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/merge/cut.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/merge.h"
#include "coordinator/merge/profile_cursor.h"
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

// The streams of all nodes, in the order that decides between equal times.
class Streams {
 public:
  Streams(const OpenedInputs& inputs, timeline::Interval shown) : inputs_(inputs), shown_(shown) {}

  absl::Status Open() {
    for (const timeline::NodeInput& node : inputs_.nodes) {
      SYNCLINE_RETURN_IF_ERROR(OpenTraces(node));
      SYNCLINE_RETURN_IF_ERROR(OpenProfiles(node));
    }
    return absl::OkStatus();
  }
  timeline::StreamMerger* merger() { return &merger_; }
  const std::string& NodeOf(uint32_t source) const { return *node_of_source_[source]; }
  bool IsShown(TimelineTime time) const { return shown_.begin <= time && time < shown_.end; }
  uint64_t undecided() const { return undecided_; }
  bool HasLosses() const {
    for (uint32_t i = 0; i < merger_.size(); ++i) {
      if (!merger_.cursor(i)->losses().empty()) return true;
    }
    return false;
  }

 private:
  absl::Status OpenTraces(const timeline::NodeInput& node) {
    // A little more than is shown: the way back to the trace's clock is rounded.
    constexpr int64_t kSlackNs = 1000;
    const auto clock_ns = [&node](TimelineTime time, int64_t slack_ns) {
      const bool open = time.ns == kUnknownLo || time.ns == kUnknownHi;
      return open ? time.ns : node.placement->ClockNs(time) + slack_ns;
    };
    const int64_t begin_ns = clock_ns(shown_.begin, -kSlackNs);
    const int64_t end_ns = clock_ns(shown_.end, kSlackNs);
    for (TraceReader* reader : node.readers) {
      for (const StreamInfo& stream : reader->streams()) {
        SYNCLINE_ASSIGN_OR_RETURN(auto cursor, reader->Open(stream.index, begin_ns, end_ns));
        merger_.Add(std::move(cursor), node.placement);
        node_of_source_.push_back(&node.name);
      }
    }
    return absl::OkStatus();
  }

  absl::Status OpenProfiles(const timeline::NodeInput& node) {
    if (node.profiles.empty()) return absl::OkStatus();
    profile_placements_.emplace_back(node.wall);
    for (const timeline::ProfileInput& profile : node.profiles) {
      if (profile.reader == nullptr) continue;
      for (const StreamInfo& stream : profile.reader->streams()) {
        SYNCLINE_ASSIGN_OR_RETURN(auto cursor, profile.reader->Open(stream.index));
        merger_.Add(
            std::make_unique<ProfileCursor>(std::move(cursor), node.wall, shown_, &undecided_),
            &profile_placements_.back());
        node_of_source_.push_back(&node.name);
      }
    }
    return absl::OkStatus();
  }

  const OpenedInputs& inputs_;
  timeline::Interval shown_;
  std::deque<ProfilePlacement> profile_placements_;
  timeline::StreamMerger merger_;
  std::vector<const std::string*> node_of_source_;
  uint64_t undecided_ = 0;
};

}  // namespace

absl::StatusOr<EventsResult> PrintEvents(const EventsOptions& options, std::ostream* out) {
  SYNCLINE_RETURN_IF_ERROR(CheckRange(options.range));
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options.input));
  SYNCLINE_RETURN_IF_ERROR(ChooseCut(options.range, &inputs));
  EventsResult result;
  result.incomplete = inputs.incomplete;
  result.complaints = inputs.complaints;
  result.notes = inputs.notes;
  Streams streams(inputs, Shown(options.range));
  SYNCLINE_RETURN_IF_ERROR(streams.Open());
  text::EventText lines(options.format == EventFormat::kText ? text::EventText::Style::kText
                                                             : text::EventText::Style::kJson);
  std::vector<FieldValue> values;
  for (;;) {
    SYNCLINE_ASSIGN_OR_RETURN(const timeline::StreamMerger::Head* head, streams.merger()->Next());
    if (head == nullptr) break;
    if (!streams.IsShown(head->time)) continue;
    if (!head->cursor->Decode(*head->record, &values)) result.incomplete = true;
    lines.Append(
        {head->time, streams.NodeOf(head->source), &head->cursor->stream(), head->record, values});
    ++result.events;
    if (lines.buffer()->size() < kBufferBytes) continue;
    SYNCLINE_ASSIGN_OR_RETURN(const bool read, Flush(lines.buffer(), out));
    if (!read) return result;
  }
  result.incomplete = result.incomplete || streams.HasLosses();
  if (streams.undecided() > 0) {
    result.incomplete = true;
    result.complaints.push_back(absl::StrCat(
        streams.undecided(),
        " events of TensorFlow's profiles are left out: the wall clock by which they are stamped "
        "was set, and where they lie cannot be decided"));
  }
  SYNCLINE_RETURN_IF_ERROR(Flush(lines.buffer(), out).status());
  return result;
}

}  // namespace syncline::merge
