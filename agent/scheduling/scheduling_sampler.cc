// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/scheduling_sampler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/evidence/proc_text.h"
#include "agent/evidence/recorded_processes.h"
#include "evidence/scheduling.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

using control_block::BlockId;

constexpr size_t kProcessesMax = 4096;
constexpr uint32_t kDeclaredMax = 1'000'000;  // lines of threads: a program that makes them wildly
constexpr uint64_t kFew = 1000;               // one missing event in so many turns is not said
constexpr int64_t kLateNs = 1'000'000;        // a record may be on its way into its ring
// The inode of the machine's own PID namespace (PROC_PID_INIT_INO).
constexpr uint64_t kMachinePids = 0xEFFFFFFC;

// What a thread does now, by its line `stat`.
SchedulingDiary::Look LookAt(const std::filesystem::path& folder) {
  const std::string text = ProcFile(folder / "stat");
  const size_t end = text.rfind(") ");
  const auto stat = ParseProcStat(text, 100);
  if (end == std::string::npos || end + 2 >= text.size() || !stat.has_value()) return {};
  return {.state = text[end + 2], .cpu = std::max(0, stat->cpu)};
}

}  // namespace

SchedulingSampler::SchedulingSampler(RuntimeDirectories directories, Clock* clock,
                                     SchedulingSamplerOptions options)
    : directories_(std::move(directories)),
      clock_(clock),
      options_(std::move(options)),
      time_shift_ns_(TimeNamespaceShiftNs(options_.proc)),
      diary_(ForDiary()) {}

absl::Status SchedulingSampler::Open() {
  auto events = options_.open(options_.events);
  if (events.ok()) events_ = *std::move(events);
  return events.status();
}

void SchedulingSampler::Begin() {
  // Those that are there before it watches: whoever is found later may have begun later.
  std::vector<std::pair<Recorded*, int32_t>> there;
  for (auto& [id, process] : recorded_) {
    for (const int32_t tid : ListThreads(options_.proc, process.entry.pid)) {
      there.emplace_back(&process, tid);
    }
  }
  events_->Enable();
  const int64_t now_ns = clock_->MonotonicNs();
  evidence::AppendSchedulingHead(now_ns, &text_);
  diary_.Begin(now_ns, events_->Cpus());
  for (const auto& [process, tid] : there) AddTask(process, tid, now_ns);
}

void SchedulingSampler::FindProcesses() {
  const auto listed = ListProcesses(options_.proc);
  if (!listed.ok()) return;  // the next search may see more
  std::set<BlockId> alive;
  for (const auto& [id, found] :
       RecordedAmong(AliveById(*listed), directories_(), users_left_out_)) {
    alive.insert(id);
    if (recorded_.contains(id) || recorded_.size() >= kProcessesMax) continue;
    recorded_[id] = {.entry = *found.entry};
  }
  std::erase_if(recorded_, [&](const auto& one) { return !alive.contains(one.first); });
}

void SchedulingSampler::Search() {
  FindProcesses();
  LookForThreads();
}

void SchedulingSampler::LookForThreads() {
  std::set<TaskKey> alive;
  for (auto& [id, process] : recorded_) {
    const int32_t pid = process.entry.pid;
    for (const int32_t tid : ListThreads(options_.proc, pid)) {
      alive.emplace(tid, pid);
      const auto known = tasks_.find(tid);
      if (known != tasks_.end() && known->second == pid) continue;
      AddTask(&process, tid, clock_->MonotonicNs());
    }
  }
  std::erase_if(tasks_, [&](const auto& task) { return !alive.contains(TaskKey(task)); });
}

DiaryOptions SchedulingSampler::ForDiary() {
  return {
      .same_numbers = OwnPidNamespace(options_.proc) == kMachinePids,
      .process_name = [this](int32_t pid) { return CommIn(options_.proc / std::to_string(pid)); },
      .declare = [this](int32_t pid, int32_t tid, const std::string& name,
                        std::string* text) { return DeclareMet(pid, tid, name, text); }};
}

void SchedulingSampler::AddTask(Recorded* process, int32_t tid, int64_t at_ns) {
  if (tasks_.size() >= options_.threads_max || next_thread_ >= kDeclaredMax) {
    too_many_ = true;
    return;
  }
  const std::filesystem::path folder =
      options_.proc / std::to_string(process->entry.pid) / "task" / std::to_string(tid);
  SchedulingDiary::Look look = LookAt(folder);
  look.at_ns = clock_->MonotonicNs();
  const uint32_t index = Declare(process, tid, CommIn(folder), &text_);
  diary_.AddThread(index, tid, at_ns, look);
}

std::optional<uint32_t> SchedulingSampler::DeclareMet(int32_t pid, int32_t tid,
                                                      const std::string& name, std::string* text) {
  for (auto& [id, process] : recorded_) {
    if (process.entry.pid != pid) continue;
    too_many_ |= tasks_.size() >= options_.threads_max || next_thread_ >= kDeclaredMax;
    if (too_many_) return std::nullopt;
    if (!name.empty()) return Declare(&process, tid, name, text);
    const std::filesystem::path folder =
        options_.proc / std::to_string(pid) / "task" / std::to_string(tid);
    return Declare(&process, tid, CommIn(folder), text);
  }
  return std::nullopt;
}

uint32_t SchedulingSampler::Declare(Recorded* process, int32_t tid, const std::string& name,
                                    std::string* text) {
  const ProcessEntry& entry = process->entry;
  if (process->index == UINT32_MAX) {
    process->index = next_process_++;
    evidence::Append(evidence::ProcessIdentity{entry.pid, entry.start_ticks,
                                               static_cast<int64_t>(entry.pid_namespace),
                                               entry.own_pid, entry.name},
                     text);
  }
  int32_t own_tid = tid;
  if (entry.own_pid != entry.pid) {
    own_tid = ParseOwnTid(ProcFile(options_.proc / std::to_string(entry.pid) / "task" /
                                   std::to_string(tid) / "status"))
                  .value_or(0);
  }
  evidence::Append(evidence::ScheduledThread{process->index, tid, own_tid, name}, text);
  tasks_.insert_or_assign(tid, entry.pid);
  return next_thread_++;
}

double SchedulingSampler::Drain() {
  CpuDrain drain = events_->Drain([this] { return PerfNowNs(); });
  const double fullest = drain.fullest;
  const int64_t complete_ns = drain.complete_ns + time_shift_ns_;
  Keep(std::move(drain));
  TakeReady(complete_ns - kLateNs);
  return fullest;
}

void SchedulingSampler::TakeReady(int64_t until_ns) {
  // Each CPU's are in order already; what is sorted is small, not the events.
  std::vector<std::pair<int64_t, uint32_t>> order;
  order.reserve(waiting_.size());
  for (const SchedulerEvent& event : waiting_) {
    order.emplace_back(event.at_ns, static_cast<uint32_t>(order.size()));
  }
  std::sort(order.begin(), order.end());
  std::vector<SchedulerEvent> left;
  for (const auto& [at_ns, index] : order) {
    if (at_ns < until_ns) {
      diary_.Take(waiting_[index]);
    } else {
      left.push_back(waiting_[index]);
    }
  }
  waiting_ = std::move(left);
  text_ += diary_.TakeText();
}

void SchedulingSampler::Keep(CpuDrain drain) {
  damaged_ |= drain.damaged;
  for (SchedulerEvent& event : drain.events) {
    event.at_ns += time_shift_ns_;
    if (event.kind == SchedulerEvent::Kind::kLoss) event.until_ns += time_shift_ns_;
  }
  waiting_.insert(waiting_.end(), drain.events.begin(), drain.events.end());
}

void SchedulingSampler::End() {
  Drain();
  std::map<int32_t, SchedulingDiary::Look> looks;
  for (const int32_t tid : diary_.Unsure()) {
    const auto task = tasks_.find(tid);
    if (task == tasks_.end()) continue;
    SchedulingDiary::Look& look = looks[tid];
    look = LookAt(options_.proc / std::to_string(task->second) / "task" / std::to_string(tid));
    look.at_ns = clock_->MonotonicNs();
  }
  const int64_t end_ns = clock_->MonotonicNs();
  events_->Disable();
  Keep(events_->Drain([this] { return PerfNowNs(); }));
  TakeReady(end_ns);
  diary_.End(end_ns, looks);
  text_ += diary_.TakeText();
  NoteMissed();
  if (damaged_) complaints_.emplace_back("some records of the kernel cannot be read");
  if (too_many_) {
    complaints_.push_back(absl::StrCat("threads are missing: at most ", options_.threads_max,
                                       " of a node are watched"));
  }
}

void SchedulingSampler::NoteMissed() {
  const MissedEvents& missed = diary_.missed();
  const auto is_much = [&](uint64_t count) { return count > missed.turns / kFew; };
  if (is_much(missed.switches)) {
    evidence::AppendNote(
        absl::StrCat("the kernel did not report ", missed.switches, " switches of these threads (",
                     missed.turns, " turns were seen): what they did meanwhile is unknown"),
        &text_);
  }
  if (is_much(missed.wakeups)) {
    evidence::AppendNote(
        absl::StrCat("the kernel did not report ", missed.wakeups, " wake-ups of these threads (",
                     missed.turns,
                     " turns were seen): waiting for a CPU behind them counts as sleep"),
        &text_);
  }
}

}  // namespace syncline::agent
