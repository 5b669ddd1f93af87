// SPDX-License-Identifier: Apache-2.0
// What NCCL says of its collectives (syncline_device:collective_call and :collective): a thread
// asks for one, and later, from any thread, when the device worked at it.
//
// Below the process there is a group, with a lane per communicator; what overlaps goes to a further
// lane of it. Each span has the task that was open in the calling thread as its operator, and an
// arrow leads from the call to it. Spans of a communicator whose device's clock cannot be placed
// are not drawn: that is a loss. All of it is kept until the walk is over.
//
// Memory: one entry per call and collective. Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_DEVICE_COLLECTIVE_OBSERVER_H_
#define SYNCLINE_TIMELINE_DEVICE_COLLECTIVE_OBSERVER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "timeline/device_call.h"
#include "timeline/device_collectives.h"
#include "timeline/loss_ledger.h"
#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/sink.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class DeviceCollectiveObserver {
 public:
  DeviceCollectiveObserver(const NodeContext& context, const NodeTables& tables, TrackTable* tracks,
                           LossLedger* ledger)
      : context_(context), tables_(tables), tracks_(tracks), ledger_(ledger) {}

  void On(const NodeEvent& event);
  // Once, after the last event: pushes everything. Of each process that has any.
  std::vector<ProcessCollectives> Finish();

 private:
  struct Collective {
    Communicator communicator;
    uint32_t name = 0;         // these two are ids of names
    uint32_t description = 0;  // how it is done
    uint64_t call = 0;
    uint32_t peer = 0;
    DeviceCollective facts;
  };
  struct Process {
    std::unordered_map<uint64_t, DeviceCall> calls;  // by number
    std::vector<Collective> collectives;
    uint64_t impossible = 0;
  };

  ProcessCollectives TakeAll(uint32_t index, Process* process);
  void PushLanes(uint32_t index, TrackId group, std::span<const Collective> collectives,
                 const Process& process);
  void PushSpan(uint32_t index, const Collective& collective, const Process& process, TrackId lane);
  void Lose(uint32_t index, const std::string& of, uint64_t count, const char* why);
  std::string Name(uint32_t index, uint32_t id) const;

  const NodeContext& context_;
  const NodeTables& tables_;
  TrackTable* tracks_;
  LossLedger* ledger_;
  std::map<uint32_t, Process> processes_;  // by their numbers in NodeTables
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_DEVICE_COLLECTIVE_OBSERVER_H_
