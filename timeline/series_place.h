// SPDX-License-Identifier: Apache-2.0
// Where series that come beside a node's traces lie on the timeline: under the track of their
// process, or of the node.
//
// Thread-safety: plain values; one thread.
#ifndef SYNCLINE_TIMELINE_SERIES_PLACE_H_
#define SYNCLINE_TIMELINE_SERIES_PLACE_H_

#include <cstdint>
#include <map>
#include <optional>

#include "common/identity.h"
#include "timeline/sink.h"

namespace syncline::timeline {

class Placement;

struct SeriesPlace {
  uint32_t node = 0;
  Placement* placement = nullptr;  // of the series' clock
  TrackId node_track = kNoTrack;
  const std::map<ProcessKey, TrackId>* processes = nullptr;
  bool keys_without_node = false;  // BuildOptions::keys_without_node

  // Puts `track` under `process`, whose key.node is filled in; under the node where there is none,
  // or it has no track.
  void Put(const std::optional<ProcessKey>& process, Track* track) const {
    track->parent = node_track;
    track->node = node;
    if (!process.has_value()) return;
    ProcessKey key = *process;
    key.node = keys_without_node ? 0 : node;
    const auto found = processes->find(key);
    if (found == processes->end()) return;
    track->parent = found->second;
    track->process = key;
  }
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_SERIES_PLACE_H_
