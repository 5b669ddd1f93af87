// SPDX-License-Identifier: Apache-2.0
// Names for `syncline events`: what the ids in events stand for, and which events are wanted by
// name.
//
// Found by a walk of its own ahead of the one that prints, because an announcement may lie behind
// what it names, in another stream, or be lost; the timeline does the same (NodeTables). Where a
// part is printed, the walk is left out if the control blocks name everything in it.
//
// Thread-safe once everything is wanted that shall be: no state.
#ifndef SYNCLINE_COORDINATOR_MERGE_EVENT_NAMES_H_
#define SYNCLINE_COORDINATOR_MERGE_EVENT_NAMES_H_

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/event_filter.h"
#include "coordinator/merge/inputs.h"
#include "export/text/event_text.h"
#include "export/text/id_texts.h"
#include "timeline/node_tables.h"

namespace syncline::merge {

class EventNames {
 public:
  // Nodes without events of ours are not walked through. `inputs` outlive this, and stay where they
  // are; inputs.build.cut is heeded. An error is the readers'.
  static absl::StatusOr<EventNames> Find(const OpenedInputs& inputs, unsigned threads);

  // For lines of this style.
  void MakeTexts(text::EventText::Style style);
  // nullptr: nothing is known, or no texts were made.
  const text::IdTexts* TextsOf(uint32_t node, size_t reader) const;

  // Whether a name that an event may have (a task, a marker, a counter, a collective, ...; not a
  // domain) is so, and is in a table of names.
  bool Knows(std::string_view pattern) const;
  // Every such name, those too that travel in the events themselves: takes another walk.
  absl::StatusOr<std::set<std::string>> All() const;
  // Events whose field `name` is so ("*" for any characters) are wanted from now on.
  void Want(std::string pattern);
  bool WantsAny() const { return !wanted_.MatchesAll(); }
  // Whether there may be wanted ones in the class.
  bool MayWant(const EventClass& event_class) const;
  // Decides of an event of one reader whether it is wanted, by the name of its class or its own.
  EventLook LookOf(uint32_t node, size_t reader) const;

 private:
  const OpenedInputs* inputs_ = nullptr;
  std::vector<timeline::NodeTables> tables_;  // by node
  std::deque<text::NodeIdTexts> texts_;       // likewise, once they are made
  std::vector<std::string> patterns_;
  EventPatterns wanted_;
};

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_EVENT_NAMES_H_
