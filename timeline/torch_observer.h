// SPDX-License-Identifier: Apache-2.0
// What PyTorch's hook (syncline_torch) says, and the tasks by which PyTorch launches and works on
// collectives: given to the matchers, which see all nodes. Sends and receives become spans, and
// where a thread's operators are left out that is a hole.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_TORCH_OBSERVER_H_
#define SYNCLINE_TIMELINE_TORCH_OBSERVER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/collectives.h"
#include "timeline/loss_ledger.h"
#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/track_table.h"
#include "timeline/transfers.h"

namespace syncline::timeline {

class TorchObserver {
 public:
  // All of it outlives this.
  struct Parts {
    const NodeTables& tables;
    TrackTable* tracks = nullptr;
    LossLedger* ledger = nullptr;
    CollectiveMatcher* collectives = nullptr;
    TransferMatcher* transfers = nullptr;
  };

  TorchObserver(const NodeContext& context, const Parts& parts)
      : context_(context), parts_(parts) {}

  void On(const NodeEvent& event);
  // The begin or end of a task, whose name has this text.
  void OnTask(TextId name, const NodeEvent& event);
  // Whether it is known already that OnTask() has nothing to do for this name.
  bool IgnoresTask(TextId name) const {
    return name < task_parts_.size() && task_parts_[name] == TaskPart::kNone;
  }
  // The events of the process are known until then.
  void RecordedUntil(uint32_t process, TimelineTime time);
  // The events of the thread are over.
  void Finish(uint32_t thread) { EndLeftOut(thread, kUnknownHi); }

 private:
  enum class TaskPart : uint8_t { kUnknown, kNone, kLaunch, kWork };

  // The process's number in the matchers of what ranks do together; nullopt: it has none yet.
  std::optional<uint32_t> FindNumber(uint32_t process) const {
    return process < numbers_.size() ? numbers_[process] : std::nullopt;
  }
  uint32_t NumberOf(uint32_t process);
  CollectiveMatcher::Place PlaceOf(const Moment& moment) const;
  void OnGroup(std::string_view group, const NodeEvent& event);
  void OnOperators(const NodeEvent& event);
  void EndLeftOut(uint32_t thread, int64_t end_ns);
  void OnTransferBegin(std::string_view group, const NodeEvent& event);
  void OnTransferEnd(const NodeEvent& event);

  const NodeContext& context_;
  const Parts parts_;
  std::vector<std::optional<uint32_t>> numbers_;   // by process
  std::map<uint32_t, int64_t> left_out_since_ns_;  // by thread: the program's own profiler has it
  // By TextId, of tasks: what they are of a collective, as far as it was looked at.
  std::vector<TaskPart> task_parts_;
  std::unordered_map<TextId, std::string> collective_names_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_TORCH_OBSERVER_H_
