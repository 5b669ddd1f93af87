// SPDX-License-Identifier: Apache-2.0
// Socket calls: given to the matcher, which sees all nodes.
#include <utility>

#include "timeline/node_builder.h"

namespace syncline::timeline {

// Messages that a task sends or takes hang on its thread; the others on one lane of the process:
// TensorFlow sends from a new thread in every step, and hundreds of lanes would show an arrow each.
TrackId NodeBuilder::MessageTrack(const Here& here) {
  const ThreadSpans& spans = *tracks_.ThreadAt(here.thread).spans;
  if (spans.open_count() > 0) return spans.track();
  Process& process = tracks_.ProcessAt(here.process);
  if (process.sockets != kNoTrack) return process.sockets;
  Track track;
  track.parent = process.track;
  track.kind = TrackKind::kAsync;
  track.name = "sockets";
  track.node = context_.index;
  track.process = tables_.processes()[here.process].key;
  process.sockets = context_.emitter->AddTrack(std::move(track));
  return process.sockets;
}

void NodeBuilder::OnMessage(EventKind kind, const Here& here) {
  const TimelineTime time = here.moment.timeline;
  const bool of_cut = !context_.options.cut.has_value() || context_.options.cut->Contains(time);
  if (!of_cut && kind != EventKind::kConnection) return;
  const uint32_t end =
      matchers_->messages.EndOf(context_.index, here.process, event_.U64(Field::kConnection),
                                context_.node.placement->clock());
  if (kind == EventKind::kConnection) {  // whose it is counts for a cut behind it, too
    matchers_->messages.SetProcess(end, tracks_.ProcessAt(here.process).name);
    matchers_->messages.OnConnection(
        end, {event_.Text(Field::kLocal), static_cast<uint16_t>(event_.U64(Field::kLocalPort))},
        {event_.Text(Field::kRemote), static_cast<uint16_t>(event_.U64(Field::kRemotePort))});
  }
  if (!of_cut) return;
  const uint64_t begin = event_.U64(Field::kBegin);
  const uint64_t bytes = event_.U64(Field::kBytes);
  const TrackId track = MessageTrack(here);
  switch (kind) {
    case EventKind::kConnection:
    case EventKind::kConnectionState:
      matchers_->messages.OnRetransmits(end, event_.U32(Field::kRetransmits));
      break;
    case EventKind::kSend: {
      const Moment since = context_.At(static_cast<int64_t>(event_.U64(Field::kSince)));
      matchers_->messages.OnSend(end, begin, bytes, {since.node.ns, since.timeline}, track);
      break;
    }
    case EventKind::kReceive:
      matchers_->messages.OnReceive(end, begin, bytes, {here.moment.node.ns, time}, track);
      break;
    case EventKind::kDoubt:
      matchers_->messages.OnDoubt(end, event_.U64(Field::kDirection) != 0);
      break;
    default:
      matchers_->messages.OnUnplaced(end, kind == EventKind::kReceiveUnplaced, bytes);
      break;
  }
}

}  // namespace syncline::timeline
