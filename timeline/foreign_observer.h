// SPDX-License-Identifier: Apache-2.0
// Events of providers that are not ours: instants with all their fields, on the thread that their
// contexts name, or on a lane of their stream.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_FOREIGN_OBSERVER_H_
#define SYNCLINE_TIMELINE_FOREIGN_OBSERVER_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/schema.h"
#include "timeline/sink.h"
#include "timeline/stream_merger.h"
#include "timeline/thread_losses.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class ForeignObserver {
 public:
  ForeignObserver(const NodeContext& context, NodeTables* tables, TrackTable* tracks,
                  ThreadLosses* losses)
      : context_(context), tables_(tables), tracks_(tracks), losses_(losses) {}

  struct Stream {
    uint32_t owner = 0;  // in the tables
    const std::string& name;
  };
  // `head`, which `fields` has decoded, of `stream`.
  void On(const StreamMerger::Head& head, const EventReader& fields, const Stream& stream);

 private:
  struct ClassTexts {
    TextId name = kNoText;
    TextId category = kNoText;  // the provider
  };

  // What its argument is called, without making that anew for every event.
  TextId PathText(const FieldClass& field);
  const ClassTexts& TextsOf(const EventClass& event_class);
  TrackId LaneOf(uint32_t source, const std::string& name);

  const NodeContext& context_;
  NodeTables* tables_;
  TrackTable* tracks_;
  ThreadLosses* losses_;
  std::unordered_map<const FieldClass*, TextId> field_texts_;
  std::unordered_map<const EventClass*, ClassTexts> class_texts_;
  std::vector<TrackId> lanes_;  // by stream
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_FOREIGN_OBSERVER_H_
