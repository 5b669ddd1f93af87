// SPDX-License-Identifier: Apache-2.0
// Socket calls (syncline_net): given to the matcher, which sees all nodes.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_NET_OBSERVER_H_
#define SYNCLINE_TIMELINE_NET_OBSERVER_H_

#include <vector>

#include "timeline/messages.h"
#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class NetObserver {
 public:
  NetObserver(const NodeContext& context, const NodeTables& tables, TrackTable* tracks,
              MessageMatcher* matcher)
      : context_(context), tables_(tables), tracks_(tracks), matcher_(matcher) {}

  void On(const NodeEvent& event);

 private:
  TrackId TrackOf(const NodeEvent& event);
  void OnConnection(uint32_t end, const NodeEvent& event);

  const NodeContext& context_;
  const NodeTables& tables_;
  TrackTable* tracks_;
  MessageMatcher* matcher_;
  std::vector<TrackId> lanes_;  // by process, of those that have one
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_NET_OBSERVER_H_
