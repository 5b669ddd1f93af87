// SPDX-License-Identifier: Apache-2.0
// One node's events, in time order, turned into tracks, spans, instants, counters and holes. This
// is the walk, and its own are the tasks, which nearly all events are; what other events mean is
// known by the observers of their providers, which it hands them to.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_NODE_BUILDER_H_
#define SYNCLINE_TIMELINE_NODE_BUILDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "timeline/builder.h"
#include "timeline/collectives.h"
#include "timeline/coverage.h"
#include "timeline/device_collective_observer.h"
#include "timeline/device_observer.h"
#include "timeline/event_arguments.h"
#include "timeline/foreign_observer.h"
#include "timeline/itt_observer.h"
#include "timeline/look_back.h"
#include "timeline/loss_ledger.h"
#include "timeline/messages.h"
#include "timeline/net_observer.h"
#include "timeline/node_context.h"
#include "timeline/node_input.h"
#include "timeline/node_tables.h"
#include "timeline/profile_collectives.h"
#include "timeline/relation_arrows.h"
#include "timeline/schema.h"
#include "timeline/shown_events.h"
#include "timeline/stream_merger.h"
#include "timeline/thread_losses.h"
#include "timeline/thread_spans.h"
#include "timeline/torch_observer.h"
#include "timeline/track_table.h"
#include "timeline/transfers.h"

namespace syncline::timeline {

// What is matched between nodes.
struct Matchers {
  explicit Matchers(MessageMatcher::Options options) : messages(options) {}
  TensorMatcher tensors;
  MessageMatcher messages;
  CollectiveMatcher collectives;
  ProfileCollectives profile_collectives;
  TransferMatcher transfers;
};

class NodeBuilder {
 public:
  NodeBuilder(const NodeInput& node, uint32_t index, const BuildOptions& options, Emitter* emitter,
              SharedTracks* shared, Matchers* matchers);
  absl::StatusOr<NodeResult> Build();

 private:
  using Process = TrackTable::Process;
  using Thread = TrackTable::Thread;
  static constexpr uint32_t kNoNumber = UINT32_MAX;
  // Threads of a stream by the keys that its events name them by: some take turns on a CPU.
  struct KnownKey {
    uint32_t key = 0;
    uint32_t thread = kNoNumber;
  };
  static constexpr size_t kKnownKeys = 8;
  struct Source {
    uint32_t owner = 0;
    std::string name;
    size_t doubted = 0;                      // of the stream's losses, by DoubtTasks()
    uint64_t loads = 0;                      // of the stream, when it was last asked for losses
    std::array<KnownKey, kKnownKeys> known;  // by the key's last bits
  };

  absl::Status OpenStreams();
  void Dispatch(const StreamMerger::Head& head);
  void Handle(const NodeEvent& event);
  void OnTask(const NodeEvent& event);
  // What Dispatch() does of nearly all tasks, in short: they are plain, of a known thread, and
  // follow on what was found. False, and nothing was done, where there is more to it than its
  // thread's stack.
  bool FollowTask(const StreamMerger::Head& head);
  bool FollowNames(const PlainTask& task, const Process& process, ThreadSpans::Task* span) const;
  // By its number in the tables.
  uint32_t ThreadOf(uint32_t source, uint32_t thread_key);
  void Finish();
  NodeResult TakeResult();

  // Of a stream, as its cursor tells them.
  void UpdateLosses(uint32_t source);
  // The same, if there may be new ones.
  void UpdateLossesOf(uint32_t source) {
    if (sources_[source].loads == merger_.loads(source)) return;
    sources_[source].loads = merger_.loads(source);
    UpdateLosses(source);
  }
  // Tells the arrows of what the streams lost until then, also where a stream has no event since.
  void DoubtTasks(int64_t time_ns);

  const NodeContext context_;
  ShownEvents events_;
  Matchers* matchers_;
  NodeTables tables_;
  PartRead read_;
  NodeResult result_;
  TrackTable tracks_;
  LossLedger ledger_;
  ThreadLosses losses_;
  Coverage coverage_;
  ForeignObserver foreign_;
  NetObserver net_;
  TorchObserver torch_;
  DeviceObserver devices_;
  DeviceCollectiveObserver device_collectives_;
  RelationArrows arrows_;
  IttObserver itt_;
  StreamMerger merger_;
  EventReader event_;
  IdArguments ids_;
  IdArguments parent_ids_;
  std::vector<Source> sources_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_NODE_BUILDER_H_
