// SPDX-License-Identifier: Apache-2.0
// What the tracers of devices say (syncline_device): a call of a thread that asks a device for
// something, and later, from any thread, what the device did and when.
//
// Below the process there is a group per device with a lane per queue; what overlaps on one queue
// goes to a further lane of it. Each span has the task that was open in the calling thread as its
// operator, and an arrow leads from the call to it. All of it is kept until the walk is over,
// because what a device did comes late and in no order.
//
// Memory: one entry per call and per piece of work. Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_DEVICE_OBSERVER_H_
#define SYNCLINE_TIMELINE_DEVICE_OBSERVER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "timeline/device_call.h"
#include "timeline/device_work.h"
#include "timeline/loss_ledger.h"
#include "timeline/node_context.h"
#include "timeline/node_tables.h"
#include "timeline/sink.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class DeviceObserver {
 public:
  DeviceObserver(const NodeContext& context, const NodeTables& tables, TrackTable* tracks,
                 LossLedger* ledger)
      : context_(context), tables_(tables), tracks_(tracks), ledger_(ledger) {}

  void On(const NodeEvent& event);
  // Once, after the last event: pushes everything. Of each process that has any.
  std::vector<ProcessDevices> Finish();

 private:
  struct Work {
    uint32_t device = 0;  // these three are ids of names
    uint32_t queue = 0;
    uint32_t name = 0;
    uint8_t kind = 0;
    uint64_t launch = 0;
    uint64_t bytes = 0;
    uint64_t bound_ns = 0;
    Moment begin;
    Moment end;
  };
  struct Missing {
    uint64_t count = 0;
    ClockInterval when;
  };
  struct Process {
    std::unordered_map<uint64_t, DeviceCall> launches;  // by number
    std::vector<Work> work;
    // By the id of a text that says whose, or why.
    std::map<uint32_t, Missing> lost;
    std::map<uint32_t, ClockInterval> untraced;
  };

  void OnLaunch(const NodeEvent& event, Process* process);
  void OnWork(const NodeEvent& event, Process* process);
  void OnTracing(const NodeEvent& event, Process* process);
  // `of`: the id of a text that says whose.
  void Lost(const NodeEvent& event, uint32_t of, uint64_t count, Process* process);
  const std::string& Name(uint32_t process, uint32_t id);
  void PushAll(uint32_t index, Process* process);
  void PushSpan(uint32_t index, const Work& work, const DeviceCall* launch, TrackId lane);
  void Lose(uint32_t index, std::string_view whose, const Loss& loss);
  void LoseAll(uint32_t index, const Process& process);
  void LoseAllCalls(uint32_t index, const Process& process);
  ProcessDevices Devices(uint32_t index, const Process& process);

  const NodeContext& context_;
  const NodeTables& tables_;
  TrackTable* tracks_;
  LossLedger* ledger_;
  std::map<uint32_t, Process> processes_;                       // by their numbers in NodeTables
  std::map<std::pair<uint32_t, uint32_t>, std::string> names_;  // by process and id
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_DEVICE_OBSERVER_H_
