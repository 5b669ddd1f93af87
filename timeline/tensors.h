// SPDX-License-Identifier: Apache-2.0
// Tensors that cross a cut of the graph: sends and receives of all processes, matched.
//
// Where TensorFlow cuts a graph it puts a `_Send` on one side of an edge and a `_Recv` on the
// other, which meet by a rendezvous key in a step whose id is the same on all hosts:
//   <send device>;<its incarnation>;<receive device>;<tensor name>;<frame>:<iteration>
//
// What a profile shows of it (level 2 and above):
//   X_S4:_Send {key}                        its step is that of the ExecutorState::Process around
//   it X_S5:_Recv {key}                        level 3 only; when the receive is posted
//   ExecutorState::ProcessAsync::Start      {name: X_S5, step_id}: the receive is posted
//   ExecutorState::ProcessAsync::Done       {name: X_S5, step_id}: the tensor is there
//
// At level 2 a receive is known by its node's name alone. TensorFlow numbers the two nodes that it
// makes for one edge one after the other, from the same prefix, so that X_S5 receives what X_S4
// sends. But level 2 also leaves out sends that TensorFlow's cost model finds cheap.
//
// A loop sends the same edge several times in a step: the k-th send is the k-th receive. Feeds and
// fetches are sends from a device to itself: they are left out.
//
// Memory: one entry per send and receive; an arrow can be drawn only when both ends are known.
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_TENSORS_H_
#define SYNCLINE_TIMELINE_TENSORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/time.h"
#include "timeline/sink.h"

namespace syncline::timeline {

// An edge that was cut. Incarnation: of the sending device; a job that was restarted has another.
struct TensorEdge {
  std::string send_device;
  std::string incarnation;
  std::string receive_device;
  std::string tensor;  // "edge_11_MaxPool2d"
  auto operator<=>(const TensorEdge&) const = default;
};

// Send and receive of one tensor in one step. Times are the wall clocks', as recorded.
struct TensorTransfer {
  TensorEdge edge;
  int64_t step_id = 0;
  uint32_t send_node = 0;
  uint32_t receive_node = 0;
  NodeTime send_begin;
  NodeTime send_end;
  std::optional<NodeTime> posted;  // when the receiver began to wait
  NodeTime received;
  std::optional<uint64_t> bytes;
  bool complete_step = false;
  // Both ends on the timeline; nullopt where the wall clock's steps leave one undecided.
  std::optional<TimelineTime> sent_at;
  std::optional<TimelineTime> received_at;
};

// What became of the ends of one node's processes.
struct TensorEnds {
  uint64_t unmatched_sends = 0;
  uint64_t unmatched_receives = 0;
  // Of those, in steps of which every process was profiled from begin to end: there should be none.
  uint64_t unmatched_sends_in_complete_steps = 0;
  uint64_t unmatched_receives_in_complete_steps = 0;
};

class TensorMatcher {
 public:
  struct Place {  // of an instant
    TrackId track = kNoTrack;
    NodeTime node;
    std::optional<TimelineTime> timeline;
  };

  // A process; `node` is its node's index, `task` as in ProfileInput. Ends of several profiles of
  // one process are given with the same number.
  uint32_t AddProcess(uint32_t node, std::string_view task);

  // `sender` is the node's name in the graph, "X_S4".
  void OnSend(uint32_t process, int64_t step_id, std::string_view sender, std::string_view key,
              const Place& begin, NodeTime end);
  void OnKey(uint32_t process, std::string_view receiver, std::string_view key);
  void OnPosted(uint32_t process, int64_t step_id, std::string_view receiver, NodeTime when);
  void OnReceived(uint32_t process, int64_t step_id, std::string_view receiver, const Place& when,
                  std::optional<uint64_t> bytes);
  // The process worked on the step from `begin` on.
  void OnStep(uint32_t process, int64_t step_id, NodeTime begin);

  struct Matched {
    TensorTransfer transfer;
    TrackId from = kNoTrack;
    TrackId to = kNoTrack;
  };
  struct Result {
    std::vector<Matched> matched;   // by step, edge, order
    std::vector<TensorEnds> nodes;  // by node index
  };
  // Once, after everything was given. With a cut: tensors received in it, and ends of others that
  // lie in it.
  Result Match(const std::optional<Interval>& cut = std::nullopt);

 private:
  struct Process {
    uint32_t node = 0;
    std::string task;
    std::map<std::string, uint32_t, std::less<>> edge_of_receiver;
    std::map<int64_t, NodeTime> steps;
  };
  struct Send {
    uint32_t process = 0;
    Place begin;
    NodeTime end;
  };
  struct Receive {
    uint32_t process = 0;
    Place when;
    std::optional<NodeTime> posted;
    std::optional<uint64_t> bytes;
  };
  using Slot = std::pair<int64_t, uint32_t>;                   // step, edge
  using Waiting = std::tuple<uint32_t, int64_t, std::string>;  // process, step, receiver
  struct Slots {
    std::vector<Send> sends;
    std::vector<Receive> receives;
  };

  // The number of the key's edge; nullopt for feeds, fetches and what is no key.
  std::optional<uint32_t> EdgeOf(std::string_view key);
  std::optional<uint32_t> EdgeOfReceiver(const Process& process, const std::string& receiver) const;
  std::set<int64_t> CompleteSteps() const;
  void MatchSlot(int64_t step_id, uint32_t edge, bool complete, Slots* slots, Result* result) const;
  bool Counts(const Place& end) const {
    return !cut_ || (end.timeline && cut_->Contains(*end.timeline));
  }

  std::optional<Interval> cut_;
  std::vector<Process> processes_;
  std::vector<TensorEdge> edges_;
  std::map<TensorEdge, uint32_t> edge_numbers_;
  std::map<std::string, std::optional<uint32_t>, std::less<>> edge_by_key_;
  std::map<std::string, std::vector<uint32_t>, std::less<>> edges_by_sender_;
  std::map<Slot, Slots> slots_;
  std::map<Waiting, std::vector<NodeTime>> posted_;
  std::map<Waiting, std::vector<Receive>> received_;
};

// "X_S5" -> "X_S4", "X/_5" -> "X/_4": the node that sends what `receiver` receives. Empty when it
// is not named that way.
std::string SenderOf(std::string_view receiver);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_TENSORS_H_
