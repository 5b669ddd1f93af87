// SPDX-License-Identifier: Apache-2.0
// From the scheduler's events of all CPUs to the turns of the recorded threads
// (evidence/scheduling.h): a state for each thread of the machine, because any of them may have had
// the CPU that a recorded one waited for. Pure but for the names of processes.
//
// What is true at the beginning is told by each thread's first event: who is woken was asleep, who
// gets a CPU was ready, who leaves one ran. Behind a loss it begins anew.
//
// Kernels fail to report some events without saying so (a virtual machine's did not report any in
// the context of its idle task). Each CPU's switches are a chain: where one does not begin with
// whom the last one ended, what both of them did since is not known. Who comes back without a
// wake-up has paused until then; waiting for a CPU may be a part of it. Both are counted.
//
// Threads have the machine's numbers in the events; what the agent calls them (it may be in a PID
// namespace) is learned when they leave a CPU.
//
// Not thread-safe.
#ifndef SYNCLINE_AGENT_SCHEDULING_SCHEDULING_DIARY_H_
#define SYNCLINE_AGENT_SCHEDULING_SCHEDULING_DIARY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/scheduling/scheduler_records.h"
#include "evidence/scheduling.h"

namespace syncline::agent {

struct DiaryOptions {
  bool same_numbers = true;  // the agent sees the machine's own numbers of threads
  // What a process is called; empty: not known.
  std::function<std::string(int32_t pid)> process_name = [](int32_t) { return std::string(); };
  // A thread of that process was met that was not added: its line into `text`, if it is to be
  // recorded, and the line's number.
  using Declare = std::function<std::optional<uint32_t>(
      int32_t pid, int32_t tid, const std::string& name, std::string* text)>;
  Declare declare = [](int32_t, int32_t, const std::string&, std::string*) {
    return std::optional<uint32_t>();
  };
};

// Of recorded threads.
struct MissedEvents {
  uint64_t turns = 0;     // that were seen
  uint64_t switches = 0;  // began or ended a turn, and were not reported
  uint64_t wakeups = 0;
};

class SchedulingDiary {
 public:
  explicit SchedulingDiary(DiaryOptions options) : options_(std::move(options)) {}

  // Before the first event: all of these CPUs from `at_ns` on are seen.
  void Begin(int64_t at_ns, std::set<int32_t> cpus);
  // What /proc says of a thread, read at `at_ns`: 'S', 'D', 'T' or 'R'; '?': unknown.
  struct Look {
    char state = '?';
    int32_t cpu = 0;
    int64_t at_ns = 0;
  };
  // `index`: of its line, which stands before all that refers to it. It was there at `at_ns`. Its
  // turns are written from now on.
  void AddThread(uint32_t index, int32_t tid, int64_t at_ns, const Look& look);
  // In the order of their times.
  void Take(const SchedulerEvent& event);
  // Of which /proc is to be asked before End, by the agent's numbers.
  std::vector<int32_t> Unsure() const;
  // What all threads do until then. `looks`: of those that are unsure.
  void End(int64_t at_ns, const std::map<int32_t, Look>& looks);

  std::string TakeText() { return std::exchange(text_, {}); }
  const MissedEvents& missed() const { return missed_; }

 private:
  enum class State : uint8_t { kUnknown, kPaused, kReady, kRunning };

  // Of a thread, or of all short-lived processes of a name.
  struct Spent {
    int32_t key = 0;
    int32_t tid = 0;
    evidence::Who who;  // kUnknown: to be asked for by `tid`
    int64_t ns = 0;
  };
  struct Task {
    State state = State::kUnknown;
    bool seen = false;        // it has had an event since watching began
    bool guessed = false;     // what it did before its first event is told by that alone
    bool recorded = false;    // `thread` is one of recorded_
    bool wake_early = false;  // it was woken before it had left its CPU
    evidence::Pause pause = evidence::Pause::kUnknown;
    int32_t pid = 0;  // as the agent sees it; 0: unknown
    int32_t tid = 0;
    int32_t parent_pid = 0;  // of a process that began meanwhile
    uint32_t thread = 0;
    uint32_t other = UINT32_MAX;  // its line
    int32_t cpu = 0;
    ThreadName name{};
    evidence::Who waker;
    evidence::Who early_waker;  // with wake_early
    int64_t early_ns = 0;       // likewise
    int64_t pause_from_ns = 0;
    int64_t ready_from_ns = 0;
    int64_t run_from_ns = 0;
    int64_t counted_ns = 0;    // up to here who had the CPU is in `spent`
    std::vector<Spent> spent;  // while it is ready
  };
  struct Recorded {
    uint32_t index = 0;
    int64_t at_ns = 0;  // it was there then
    Look look;
    bool seen = false;  // since the beginning, or the last loss
  };
  // Was ready on a CPU until it was moved to another one.
  struct Moved {
    int32_t tid = 0;
    int64_t ready_from_ns = 0;  // which of its waits it was
    int64_t from_ns = 0;
    int64_t until_ns = 0;
  };
  struct Cpu {
    int32_t current = 0;  // below 0: not known
    int64_t since_ns = 0;
    std::vector<int32_t> waiting;  // recorded threads that are ready
    std::vector<Moved> moved;      // since its last switch
  };

  Task& TaskOf(int32_t tid);
  Cpu& CpuOf(int32_t number);
  // Learns what the agent calls the current thread.
  void Learn(int32_t machine_tid, int32_t pid, int32_t tid);
  void Declare(const Task& task);
  void Begun(const SchedulerEvent& event);
  void Switch(const SchedulerEvent& event);
  // `chained`: nothing on this CPU was missed since it got it.
  void Leave(int32_t tid, const SchedulerEvent& event, bool chained);
  // Of one that runs or is ready: what it does from now on is not known.
  void LoseSight(int32_t tid, Task* task);
  void Enter(int32_t tid, const SchedulerEvent& event);
  void Wake(const SchedulerEvent& event);
  void Move(const SchedulerEvent& event);
  void Lose(const SchedulerEvent& event);
  // Adds up who had the CPU since its last switch, of all that waited for it until then.
  void CountWaiting(Cpu* cpu, int64_t at_ns);
  void Charge(const Cpu& cpu, int64_t from_ns, int64_t until_ns, Task* task);
  void MakeReady(int32_t tid, Task* task, int32_t cpu, int64_t at_ns);
  void StopWaiting(int32_t tid, const Task& task);
  // What its first event tells of the time before, if that agrees with its state then.
  void Guess(const Recorded& thread, evidence::Turn* turn) const;
  // It is on a CPU of which no event comes.
  bool IsBlindOn(int32_t cpu) const { return !watched_.empty() && !watched_.contains(cpu); }
  // The turn as it is at this time; forgets who had the CPU.
  void Write(Task* task, int64_t at_ns);
  void Flush(int64_t at_ns, const std::map<int32_t, Look>& looks);
  std::vector<evidence::Taker> Takers(Task* task);
  evidence::Who WhoIs(int32_t tid);
  // A process that began meanwhile, with all of its name that one parent made.
  evidence::Who ShortLived(const Task& task);
  uint32_t AddOther(const evidence::OtherThread& other);

  const DiaryOptions options_;
  std::string text_;
  std::set<int32_t> watched_;  // CPUs; empty: all
  int64_t begin_ns_ = 0;
  int64_t last_ns_ = 0;   // of the last event
  int64_t from_ns_ = 0;   // watched from then on without a loss
  int64_t blind_ns_ = 0;  // events before that are behind a loss
  uint32_t others_ = 0;
  MissedEvents missed_;
  std::map<std::pair<std::string, int32_t>, evidence::Who> short_lived_;  // by name and parent
  absl::flat_hash_map<int32_t, Task> tasks_;                              // by the machine's number
  absl::flat_hash_map<int32_t, Recorded> recorded_;                       // by the agent's number
  std::vector<Cpu> cpus_;
};

}  // namespace syncline::agent

#endif  // SYNCLINE_AGENT_SCHEDULING_SCHEDULING_DIARY_H_
