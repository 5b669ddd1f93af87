// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/scheduling_diary.h"

#include <algorithm>
#include <cstring>

#include "agent/scheduling/thread_pause.h"

namespace syncline::agent {
namespace {

using evidence::Pause;
using evidence::Who;

constexpr size_t kSpentMax = 32;        // takers of one wait that are told apart
constexpr uint32_t kOthersMax = 65536;  // lines of other threads
constexpr int32_t kCpusMax = 8192;
constexpr int64_t kEarlyNs = 50'000;  // from a wake-up until the thread has left its CPU
constexpr int32_t kNobodyKnown = -1;  // who has a CPU

std::string NameOf(const ThreadName& name) {
  return {name.data(), ::strnlen(name.data(), name.size())};
}

}  // namespace

void SchedulingDiary::Begin(int64_t at_ns, std::set<int32_t> cpus) {
  begin_ns_ = from_ns_ = at_ns;
  watched_ = std::move(cpus);
}

void SchedulingDiary::AddThread(uint32_t index, int32_t tid, int64_t at_ns, const Look& look) {
  // A thread that had its number before has ended: what is known of that one is not this one's.
  recorded_.insert_or_assign(tid,
                             Recorded{.index = index, .at_ns = at_ns, .look = look, .seen = false});
  if (options_.same_numbers) Learn(tid, 0, tid);
}

SchedulingDiary::Task& SchedulingDiary::TaskOf(int32_t tid) {
  const auto [found, made] = tasks_.try_emplace(tid);
  if (made && options_.same_numbers) Learn(tid, 0, tid);
  return found->second;
}

SchedulingDiary::Cpu& SchedulingDiary::CpuOf(int32_t number) {
  const auto index = static_cast<size_t>(std::clamp(number, 0, kCpusMax - 1));
  if (index >= cpus_.size()) {
    // Who was there first is told by the first switch.
    cpus_.resize(index + 1,
                 Cpu{.current = kNobodyKnown, .since_ns = from_ns_, .waiting = {}, .moved = {}});
  }
  return cpus_[index];
}

void SchedulingDiary::Learn(int32_t machine_tid, int32_t pid, int32_t tid) {
  if (tid <= 0) return;
  Task& task = tasks_[machine_tid];
  const bool new_process = pid > 0 && task.pid != pid;
  if (pid > 0) task.pid = pid;
  auto found = recorded_.find(tid);
  if (found == recorded_.end() && new_process) {
    task.tid = tid;
    Declare(task);
    found = recorded_.find(tid);
  }
  const bool recorded = found != recorded_.end();
  if (task.tid == tid && task.recorded == recorded &&
      (!recorded || task.thread == found->second.index)) {
    return;
  }
  task.tid = tid;
  task.recorded = recorded;
  if (recorded) task.thread = found->second.index;
}

void SchedulingDiary::Declare(const Task& task) {
  const auto index = options_.declare(task.pid, task.tid, NameOf(task.name), &text_);
  if (!index.has_value()) return;
  // It is not known to have been there at the beginning.
  recorded_.insert_or_assign(
      task.tid, Recorded{.index = *index, .at_ns = INT64_MAX, .look = {}, .seen = false});
}

void SchedulingDiary::Begun(const SchedulerEvent& event) {
  if (!options_.same_numbers) return;  // it is met when it leaves a CPU
  Task& task = tasks_[event.tid];
  StopWaiting(event.tid, task);  // one that had its number before, whose end was not reported
  task = {};
  const auto old = recorded_.find(event.tid);
  if (old != recorded_.end() && old->second.at_ns < event.at_ns) recorded_.erase(old);
  task.seen = true;  // what it did before it began is nothing
  // It is made ready at once, on a CPU that no event tells.
  task.state = State::kReady;
  task.cpu = event.cpu;
  task.pause_from_ns = task.ready_from_ns = task.counted_ns = event.at_ns;
  if (event.seen_pid != event.parent_pid) {
    // Whoever was there before the window: what it started may have ended when it is asked for.
    const auto parent = tasks_.find(event.parent_pid);
    const bool young = parent != tasks_.end() && parent->second.parent_pid > 0;
    const int32_t older = young ? parent->second.parent_pid : event.parent_pid;
    task.parent_pid = older;
  }
  Learn(event.tid, event.seen_pid, event.tid);
}

void SchedulingDiary::Take(const SchedulerEvent& event) {
  if (event.kind == SchedulerEvent::Kind::kLoss) {
    Lose(event);
    return;
  }
  if (event.at_ns < blind_ns_ || event.at_ns < from_ns_) return;
  last_ns_ = std::max(last_ns_, event.at_ns);
  if (event.kind == SchedulerEvent::Kind::kFork) {
    Begun(event);
    return;
  }
  if (event.kind == SchedulerEvent::Kind::kSwitch && event.tid > 0 && event.name[0] != 0) {
    TaskOf(event.tid).name = event.name;  // a program that it executed has given it another one
  }
  if (event.current_tid > 0) Learn(event.current_tid, event.seen_pid, event.seen_tid);
  if (event.kind == SchedulerEvent::Kind::kSwitch) Switch(event);
  if (event.kind == SchedulerEvent::Kind::kWake) Wake(event);
  if (event.kind == SchedulerEvent::Kind::kMove) Move(event);
}

void SchedulingDiary::Switch(const SchedulerEvent& event) {
  Cpu& cpu = CpuOf(event.cpu);
  const int32_t before = cpu.current;
  const bool chained = before < 0 || before == event.tid;
  // Of a CPU's first event it is known who had it until now; where events are missing it is not.
  cpu.current = chained ? event.tid : kNobodyKnown;
  CountWaiting(&cpu, event.at_ns);
  if (!chained && before > 0) {
    const auto found = tasks_.find(before);
    const bool ran = found != tasks_.end() && found->second.state == State::kRunning &&
                     found->second.cpu == event.cpu;
    if (ran) LoseSight(before, &found->second);  // it has left the CPU, and when is not known
  }
  if (event.tid != 0) Leave(event.tid, event, chained);
  if (event.next_tid != 0) Enter(event.next_tid, event);
  Cpu& after = CpuOf(event.cpu);
  after.current = event.next_tid;
  after.since_ns = event.at_ns;
}

void SchedulingDiary::LoseSight(int32_t tid, Task* task) {
  if (task->recorded) ++missed_.switches;
  if (task->state == State::kReady) {
    StopWaiting(tid, *task);
    task->spent.clear();
    Write(task, task->ready_from_ns);
  } else {
    Write(task, task->run_from_ns);
  }
  task->state = State::kUnknown;
  task->guessed = task->wake_early = false;
}

void SchedulingDiary::Leave(int32_t tid, const SchedulerEvent& event, bool chained) {
  Task& task = TaskOf(tid);
  const bool followed = chained && task.state == State::kRunning && task.cpu == event.cpu;
  if (!followed) {
    const bool first = chained && !task.seen;
    if (!first && task.recorded) ++missed_.switches;
    StopWaiting(tid, task);
    task.spent.clear();
    if (task.state == State::kReady) Write(&task, task.ready_from_ns);
    task.guessed = first;
    const int64_t from_ns = first ? from_ns_ : event.at_ns;
    task.pause_from_ns = task.ready_from_ns = task.run_from_ns = from_ns;
    task.pause = Pause::kUnknown;
    task.waker = {};
    task.wake_early = false;
  }
  task.seen = true;
  task.cpu = event.cpu;
  task.state = State::kRunning;
  Write(&task, event.at_ns);
  if (IsDead(event.state)) {
    if (task.recorded) recorded_.erase(task.tid);
    tasks_.erase(tid);
    return;
  }
  task.pause = PauseOf(event.state);
  task.pause_from_ns = event.at_ns;
  task.waker = {};
  task.guessed = false;
  if (task.pause == Pause::kPreempted) {
    MakeReady(tid, &task, event.cpu, event.at_ns);
  } else {
    task.state = State::kPaused;
    // A wake-up that came right before it had left is this pause's if none follows.
    task.wake_early &= event.at_ns - task.early_ns <= kEarlyNs;
  }
}

void SchedulingDiary::Enter(int32_t tid, const SchedulerEvent& event) {
  Task& task = TaskOf(tid);
  if (task.state == State::kRunning) LoseSight(tid, &task);  // elsewhere, as far as was seen
  StopWaiting(tid, task);
  task.name = event.next_name;
  if (task.state == State::kUnknown) {
    task.guessed = !task.seen;
    task.pause = Pause::kUnknown;
    task.pause_from_ns = task.ready_from_ns = task.seen ? event.at_ns : from_ns_;
    task.waker = {};
  } else if (task.state == State::kPaused) {
    if (task.recorded && !task.wake_early) ++missed_.wakeups;
    task.ready_from_ns = task.wake_early ? task.pause_from_ns : event.at_ns;
    if (task.wake_early) task.waker = task.early_waker;
  }
  task.seen = true;
  task.wake_early = false;
  task.state = State::kRunning;
  task.run_from_ns = event.at_ns;
  task.cpu = event.cpu;
}

void SchedulingDiary::Wake(const SchedulerEvent& event) {
  Task& task = TaskOf(event.tid);
  const Who waker = event.interrupt ? Who{Who::Kind::kInterrupt, 0}
                    : task.recorded ? WhoIs(event.current_tid)
                                    : Who{};
  if (task.state == State::kRunning) {
    task.wake_early = true;
    task.early_waker = waker;
    task.early_ns = event.at_ns;
    return;
  }
  if (task.state == State::kReady) {
    if (task.pause == Pause::kPreempted) return;
    LoseSight(event.tid, &task);  // it has run and slept meanwhile
  }
  if (task.state == State::kUnknown) {
    task.guessed = !task.seen;
    task.pause = Pause::kUnknown;
    task.pause_from_ns = task.seen ? event.at_ns : from_ns_;
  }
  task.seen = true;
  task.wake_early = false;
  task.waker = waker;
  MakeReady(event.tid, &task, event.to_cpu, event.at_ns);
  if (IsBlindOn(event.to_cpu)) LoseSight(event.tid, &task);
}

void SchedulingDiary::Move(const SchedulerEvent& event) {
  const auto found = tasks_.find(event.tid);
  if (found == tasks_.end()) return;
  Task& task = found->second;
  if (task.state != State::kReady || task.cpu == event.to_cpu) return;
  // Who has had the CPU since its last switch its next one confirms.
  if (task.recorded) {
    CpuOf(task.cpu).moved.push_back({event.tid, task.ready_from_ns, task.counted_ns, event.at_ns});
  }
  StopWaiting(event.tid, task);
  const int64_t ready_from_ns = task.ready_from_ns;
  MakeReady(event.tid, &task, event.to_cpu, event.at_ns);
  task.ready_from_ns = ready_from_ns;
  if (IsBlindOn(event.to_cpu)) LoseSight(event.tid, &task);
}

void SchedulingDiary::MakeReady(int32_t tid, Task* task, int32_t cpu, int64_t at_ns) {
  task->state = State::kReady;
  task->ready_from_ns = at_ns;
  task->counted_ns = at_ns;
  task->cpu = std::clamp(cpu, 0, kCpusMax - 1);
  if (!task->recorded) return;
  std::vector<int32_t>& waiting = CpuOf(task->cpu).waiting;
  if (std::find(waiting.begin(), waiting.end(), tid) == waiting.end()) waiting.push_back(tid);
}

void SchedulingDiary::StopWaiting(int32_t tid, const Task& task) {
  if (task.state == State::kReady && task.recorded) std::erase(CpuOf(task.cpu).waiting, tid);
}

void SchedulingDiary::CountWaiting(Cpu* cpu, int64_t at_ns) {
  for (const int32_t tid : cpu->waiting) {
    const auto found = tasks_.find(tid);
    if (found == tasks_.end()) continue;
    Charge(*cpu, found->second.counted_ns, at_ns, &found->second);
    if (cpu->current < 0) continue;
    found->second.counted_ns = std::max(found->second.counted_ns, at_ns);
  }
  for (const Moved& moved : std::exchange(cpu->moved, {})) {
    const auto found = tasks_.find(moved.tid);
    if (found == tasks_.end() || found->second.ready_from_ns != moved.ready_from_ns) continue;
    const State state = found->second.state;
    if (state != State::kReady && state != State::kRunning) continue;
    Charge(*cpu, moved.from_ns, moved.until_ns, &found->second);
  }
}

void SchedulingDiary::Charge(const Cpu& cpu, int64_t from_ns, int64_t until_ns, Task* task) {
  from_ns = std::max(from_ns, cpu.since_ns);
  if (cpu.current < 0 || until_ns <= from_ns) return;
  Spent now{.key = -cpu.current, .tid = cpu.current, .who = {}, .ns = until_ns - from_ns};
  if (const auto found = tasks_.find(cpu.current); found != tasks_.end()) {
    const Task& current = found->second;
    if (current.parent_pid > 0 && !current.recorded) {  // it may have ended when it is asked for
      now.who = ShortLived(current);
      if (now.who.kind == Who::Kind::kUnknown) return;
      now.key = INT32_MIN + static_cast<int32_t>(now.who.index);
    }
  }
  for (Spent& spent : task->spent) {
    if (spent.key != now.key) continue;
    spent.ns += now.ns;
    return;
  }
  if (task->spent.size() < kSpentMax) task->spent.push_back(now);
}

void SchedulingDiary::Lose(const SchedulerEvent& event) {
  const int64_t from_ns = std::max(begin_ns_, event.at_ns);
  const int64_t until_ns = std::max(from_ns, event.until_ns);
  if (until_ns > from_ns || event.count > 0) {
    evidence::Append(evidence::SchedulingLoss{from_ns, until_ns, event.count}, &text_);
  }
  if (until_ns == from_ns || until_ns <= blind_ns_) return;
  if (from_ns >= blind_ns_) Flush(std::max(from_ns, last_ns_), {});
  blind_ns_ = event.until_ns;
  from_ns_ = event.until_ns;
  for (auto& [tid, task] : tasks_) {
    task.state = State::kUnknown;
    task.seen = task.wake_early = false;
    task.spent.clear();
  }
  for (auto& [tid, thread] : recorded_) {
    thread.seen = false;
    thread.look = {};
  }
  for (Cpu& cpu : cpus_)
    cpu = {.current = kNobodyKnown, .since_ns = from_ns_, .waiting = {}, .moved = {}};
}

void SchedulingDiary::Guess(const Recorded& thread, evidence::Turn* turn) const {
  const bool ran_all_along = turn->run_from_ns() == from_ns_;
  const bool ready_all_along = turn->ready_from_ns() == from_ns_;
  const int64_t first_ns = ran_all_along     ? turn->until_ns
                           : ready_all_along ? turn->run_from_ns()
                                             : turn->ready_from_ns();
  // Nothing has happened to it until then, so it did all the time what it did when it was read.
  const bool known = thread.at_ns <= from_ns_ && thread.look.at_ns < first_ns;
  const char state = known ? thread.look.state : '?';
  if (!ran_all_along && !ready_all_along) {
    turn->pause = PauseOf(state);
    return;
  }
  if (state == 'R') return;
  // It did something else at first: events are missing, or it began later.
  if (ran_all_along) turn->ran_ns = 0;
  turn->pause = PauseOf(state);
  turn->pause_ns = turn->pause == Pause::kUnknown ? 0 : turn->ready_ns;
  turn->ready_ns = 0;
}

void SchedulingDiary::Write(Task* task, int64_t at_ns) {
  const auto found = recorded_.find(task->tid);
  if (!task->recorded || found == recorded_.end()) return;
  Recorded& thread = found->second;
  const bool ran = task->state == State::kRunning;
  const bool ready = ran || task->state == State::kReady;
  evidence::Turn turn{.thread = task->thread, .until_ns = at_ns, .cpu = task->cpu};
  const int64_t run_from_ns = ran ? task->run_from_ns : at_ns;
  const int64_t ready_from_ns = ready ? task->ready_from_ns : at_ns;
  turn.ran_ns = at_ns - run_from_ns;
  turn.ready_ns = run_from_ns - ready_from_ns;
  turn.pause_ns = ready_from_ns - task->pause_from_ns;
  turn.pause = task->pause;
  if (task->guessed) Guess(thread, &turn);
  if (ran && turn.ran_ns > 0) ++missed_.turns;
  turn.waker = task->waker;
  thread.seen = true;
  const std::vector<evidence::Taker> takers = Takers(task);
  if (turn.from_ns() < at_ns) evidence::Append(turn, takers, &text_);
}

std::vector<evidence::Taker> SchedulingDiary::Takers(Task* task) {
  std::vector<Spent> spent = std::exchange(task->spent, {});
  std::sort(spent.begin(), spent.end(), [](const Spent& a, const Spent& b) { return a.ns > b.ns; });
  std::vector<evidence::Taker> takers;
  for (const Spent& one : spent) {
    if (takers.size() >= evidence::kTakersMax) break;
    const Who who = one.who.kind != Who::Kind::kUnknown ? one.who : WhoIs(one.tid);
    if (who.kind != Who::Kind::kUnknown) takers.push_back({who, one.ns});
  }
  return takers;
}

Who SchedulingDiary::WhoIs(int32_t tid) {
  if (tid == 0) return {Who::Kind::kIdle, 0};
  const auto found = tasks_.find(tid);
  if (found == tasks_.end()) return {};
  Task& task = found->second;
  if (task.recorded) return {Who::Kind::kThread, task.thread};
  if (task.parent_pid > 0) return ShortLived(task);
  if (task.other == UINT32_MAX && others_ < kOthersMax) {
    evidence::OtherThread other{.pid = task.pid, .tid = task.tid != 0 ? task.tid : tid};
    other.name = NameOf(task.name);
    if (task.pid > 0) other.process_name = options_.process_name(task.pid);
    if (other.name.empty()) other.name = other.process_name;
    task.other = AddOther(other);
  }
  return task.other == UINT32_MAX ? Who{} : Who{Who::Kind::kOther, task.other};
}

Who SchedulingDiary::ShortLived(const Task& task) {
  const std::string name = NameOf(task.name);
  const auto known = short_lived_.find({name, task.parent_pid});
  if (known != short_lived_.end()) return known->second;
  if (others_ >= kOthersMax) return {};
  const uint32_t line = AddOther({.pid = task.parent_pid,
                                  .tid = 0,
                                  .name = name,
                                  .process_name = options_.process_name(task.parent_pid)});
  return short_lived_[{name, task.parent_pid}] = {Who::Kind::kOther, line};
}

uint32_t SchedulingDiary::AddOther(const evidence::OtherThread& other) {
  evidence::Append(other, &text_);
  return others_++;
}

void SchedulingDiary::Flush(int64_t at_ns, const std::map<int32_t, Look>& looks) {
  // That somebody has a CPU only its next switch confirms: nobody is said to have had it since its
  // last one, and of who runs /proc is asked.
  std::vector<int32_t> written;
  for (const auto& [tid, task] : tasks_) {
    if (task.recorded && task.state != State::kUnknown) written.push_back(tid);
  }
  std::sort(written.begin(), written.end());
  for (const int32_t tid : written) {
    Task& task = tasks_.at(tid);
    const auto found = looks.find(task.tid);
    const Look look = found != looks.end() ? found->second : Look{};
    if (task.state == State::kRunning) {
      const bool runs = look.state == 'R' && look.cpu == task.cpu && look.at_ns >= task.run_from_ns;
      Write(&task, runs ? at_ns : task.run_from_ns);
    } else if (task.state == State::kReady) {
      Write(&task, std::max(task.ready_from_ns, task.counted_ns));  // who is called R may also run
    } else if (looks.empty() || PauseOf(look.state) != Pause::kUnknown) {
      Write(&task, at_ns);
    }
  }
}

std::vector<int32_t> SchedulingDiary::Unsure() const {
  std::vector<int32_t> tids;
  for (const auto& [tid, thread] : recorded_) {
    if (!thread.seen && thread.at_ns <= from_ns_) tids.push_back(tid);
  }
  for (const auto& [tid, task] : tasks_) {
    if (task.recorded && task.state != State::kUnknown) tids.push_back(task.tid);
  }
  std::sort(tids.begin(), tids.end());
  tids.erase(std::unique(tids.begin(), tids.end()), tids.end());
  return tids;
}

void SchedulingDiary::End(int64_t at_ns, const std::map<int32_t, Look>& looks) {
  if (at_ns <= from_ns_) return;
  Flush(at_ns, looks);
  std::vector<std::pair<int32_t, uint32_t>> quiet;
  for (const auto& [tid, thread] : recorded_) {
    if (!thread.seen && thread.at_ns <= from_ns_) quiet.emplace_back(tid, thread.index);
  }
  std::sort(quiet.begin(), quiet.end());
  for (const auto& [tid, index] : quiet) {
    const auto look = looks.find(tid);
    if (look == looks.end()) continue;
    // 'R' may be running or ready: which of them is not known.
    evidence::Turn turn{.thread = index, .until_ns = at_ns, .pause_ns = at_ns - from_ns_};
    turn.pause = PauseOf(look->second.state);
    if (turn.pause != Pause::kUnknown) evidence::Append(turn, {}, &text_);
  }
}

}  // namespace syncline::agent
