// SPDX-License-Identifier: Apache-2.0
#include "timeline/net_observer.h"

#include <utility>

namespace syncline::timeline {

// Messages that a task sends or takes hang on its thread; the others on one lane of the process:
// TensorFlow sends from a new thread in every step, and hundreds of lanes would show an arrow each.
TrackId NetObserver::TrackOf(const NodeEvent& event) {
  const ThreadSpans& spans = *tracks_->ThreadAt(event.thread).spans;
  if (spans.open_count() > 0) return spans.track();
  if (event.process >= lanes_.size()) lanes_.resize(event.process + 1, kNoTrack);
  TrackId& lane = lanes_[event.process];
  if (lane != kNoTrack) return lane;
  Track track;
  track.parent = tracks_->ProcessAt(event.process).track;
  track.kind = TrackKind::kAsync;
  track.name = "sockets";
  track.node = context_.index;
  track.process = tables_.processes()[event.process].key;
  lane = context_.emitter->AddTrack(std::move(track));
  return lane;
}

void NetObserver::OnConnection(uint32_t end, const NodeEvent& event) {
  const EventReader& fields = event.fields;
  matcher_->SetProcess(end, tracks_->ProcessAt(event.process).name);
  matcher_->OnConnection(
      end, {fields.Text(Field::kLocal), static_cast<uint16_t>(fields.U64(Field::kLocalPort))},
      {fields.Text(Field::kRemote), static_cast<uint16_t>(fields.U64(Field::kRemotePort))});
}

void NetObserver::On(const NodeEvent& event) {
  const EventReader& fields = event.fields;
  const TimelineTime time = event.at.timeline;
  const bool counted = context_.IsCounted(time);
  if (!counted && event.kind != EventKind::kConnection) return;
  const uint32_t end = matcher_->EndOf(context_.index, event.process,
                                       fields.U64(Field::kConnection), context_.clock);
  // Whose it is counts for a cut behind it, too.
  if (event.kind == EventKind::kConnection) OnConnection(end, event);
  if (!counted) return;
  const uint64_t begin = fields.U64(Field::kBegin);
  const uint64_t bytes = fields.U64(Field::kBytes);
  const TrackId track = TrackOf(event);
  switch (event.kind) {
    case EventKind::kConnection:
    case EventKind::kConnectionState:
      matcher_->OnRetransmits(end, fields.U32(Field::kRetransmits));
      break;
    case EventKind::kSend: {
      const Moment since = context_.At(static_cast<int64_t>(fields.U64(Field::kSince)));
      matcher_->OnSend(end, begin, bytes, {since.node.ns, since.timeline}, track);
      break;
    }
    case EventKind::kReceive:
      matcher_->OnReceive(end, begin, bytes, {event.at.node.ns, time}, track);
      break;
    case EventKind::kDoubt:
      matcher_->OnDoubt(end, fields.U64(Field::kDirection) != 0);
      break;
    default:
      matcher_->OnUnplaced(end, event.kind == EventKind::kReceiveUnplaced, bytes);
      break;
  }
}

}  // namespace syncline::timeline
