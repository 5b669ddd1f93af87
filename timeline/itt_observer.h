// SPDX-License-Identifier: Apache-2.0
// What ITT's calls beside a thread's own tasks mean: overlapped tasks, frames, user events and
// waits become spans that do not nest, metadata arguments, counters counters; all else instants.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_ITT_OBSERVER_H_
#define SYNCLINE_TIMELINE_ITT_OBSERVER_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "timeline/event_arguments.h"
#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/relation_arrows.h"
#include "timeline/sink.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class IttObserver {
 public:
  // All of it outlives this.
  IttObserver(const NodeContext& context, const NodeTables& tables, TrackTable* tracks,
              RelationArrows* arrows)
      : context_(context),
        tables_(tables),
        tracks_(tracks),
        arrows_(arrows),
        ids_(context.emitter, "id"),
        parent_ids_(context.emitter, "parent id"),
        other_ids_(context.emitter, "other id") {}

  void On(const NodeEvent& event);

 private:
  void OnAsync(const NodeEvent& event);
  void OnFrameSubmit(const NodeEvent& event);
  void OnMetadata(const NodeEvent& event);
  std::vector<Argument> MetadataOf(const NodeEvent& event);
  void OnMarker(const NodeEvent& event);
  void OnCounter(const NodeEvent& event);
  // Of a process, by its number: a counter of this domain and name.
  TrackId AddCounter(uint32_t process, const std::pair<uint32_t, uint32_t>& counter);
  void OnRelation(const NodeEvent& event);
  void OnSync(const NodeEvent& event);
  TextId NameText(const NodeEvent& event, Field field) {
    return tracks_->NameText(event.process, event.fields.U32(field));
  }
  // Without its name and arguments.
  Instant InstantOf(const NodeEvent& event, TrackId track, TextId category) const;

  const NodeContext& context_;
  const NodeTables& tables_;
  TrackTable* tracks_;
  RelationArrows* arrows_;
  IdArguments ids_;
  IdArguments parent_ids_;
  IdArguments other_ids_;
  // By process, then by domain and name.
  std::vector<std::map<std::pair<uint32_t, uint32_t>, TrackId>> counters_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_ITT_OBSERVER_H_
