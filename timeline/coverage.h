// SPDX-License-Identifier: Apache-2.0
// When each process of a node was recorded, and why not in the rest of the window: from what the
// processes say themselves (on, off, pause, resume) and from what is known of them.
//
// Coverage ends at `off`, but threads that were inside a call then may still write; so spans are
// clipped when the next interval begins, at the time of `off`.
//
// Coverage is a matter of our own libraries: foreign providers write when they like.
//
// Thread-safety: one thread.
#ifndef SYNCLINE_TIMELINE_COVERAGE_H_
#define SYNCLINE_TIMELINE_COVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "timeline/look_back.h"
#include "timeline/loss_ledger.h"
#include "timeline/node_context.h"
#include "timeline/node_input.h"
#include "timeline/node_tables.h"
#include "timeline/thread_losses.h"
#include "timeline/track_table.h"

namespace syncline::timeline {

class Coverage {
 public:
  struct Process {
    std::vector<ClockInterval> intervals;  // closed ones
    std::vector<size_t> paused_behind;     // those of them that a pause of the program's ended
    std::optional<Moment> pending_end;     // off or pause; stragglers of other threads may follow
    bool pauses = false;                   // it is a pause
    bool end_known = false;
    bool cut_off = false;  // behind the end of the traces it went on, and wrote more
    std::optional<uint64_t> counted_events;
    std::optional<uint64_t> counted_lost;
    std::optional<DurationEstimate> cost;
  };
  // All of it outlives this.
  struct Parts {
    const NodeTables& tables;
    const PartRead& read;
    TrackTable* tracks = nullptr;
    LossLedger* ledger = nullptr;
    ThreadLosses* losses = nullptr;
  };

  Coverage(const NodeContext& context, const Parts& parts) : context_(context), parts_(parts) {}

  // An event, not `off`, of a process that is not covered: another thread may get a word in before
  // the one that writes `on`.
  void Begin(const NodeEvent& event);
  // On, off, pause, resume.
  void On(const NodeEvent& event);

  // What was found of it until then; nothing of a process that was not met.
  const Process& Of(uint32_t process) { return StateOf(process); }

  // Behind the last event, in this order: of each process that is ours,
  void FinishProcess(uint32_t index);
  // of those that have no track: a user whom LTTng was not to record has no buffers in the trace;
  void LoseUntracked();
  // and of the node: its gate may have been closed early, and events may lack silently.
  void FinishNode();

 private:
  Process& StateOf(uint32_t process) {
    if (process >= processes_.size()) processes_.resize(process + 1);
    return processes_[process];
  }
  void Cover(uint32_t process, const Moment& moment);
  void Uncover(uint32_t process, const Moment& moment);
  void ApplyPendingEnd(uint32_t process);
  Moment EndWithoutOff(uint32_t process);
  void LoseInProcess(uint32_t index);
  void PushHoles(uint32_t process);
  void LosePauses(uint32_t process, const ClockInterval& window);
  // The whole window, of a process that covers nothing of it.
  void LoseAll(const KnownProcess& known, const std::string& name, const std::string& why);
  void LoseBehindGate();
  void LoseSilently();

  const NodeContext& context_;
  const Parts parts_;
  std::vector<Process> processes_;  // beside parts_.tables.processes()
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_COVERAGE_H_
