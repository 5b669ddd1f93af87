// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/sampler.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/evidence/recorded_processes.h"
#include "agent/host/cpu_list.h"
#include "common/files.h"
#include "control_block/live_block.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

using control_block::BlockId;
using evidence::Relation;

constexpr int64_t kQueuedNs = 1'000'000;  // from so much on it is worth knowing on which processor
constexpr int64_t kRecordedPauseNs = 450'000'000;  // between readings of whole processes
constexpr int64_t kClockPauseNs = 225'000'000;     // between readings of a CPU's clock
constexpr int kAncestorsMax = 32;
constexpr size_t kNotesMax = 50;
constexpr size_t kDeclaredMax = 100'000;  // lines of processes and threads: a job that forks wildly

std::string TextOf(const std::filesystem::path& path) {
  const SampledFile file(path);
  std::string buffer;
  return std::string(file.Read(&buffer));
}

std::filesystem::path TaskFile(const std::filesystem::path& proc, int32_t pid, int32_t tid,
                               const char* name) {
  return proc / std::to_string(pid) / "task" / std::to_string(tid) / name;
}

}  // namespace

Sampler::Sampler(RuntimeDirectories directories, Clock* clock, SamplerOptions options)
    : directories_(std::move(directories)),
      clock_(clock),
      options_(std::move(options)),
      memory_groups_(options_.groups_max),
      steal_time_(options_.proc, options_.ticks_per_second),
      clocks_(options_.cpus) {}

void Sampler::Note(const std::string& note) {
  if (notes_.size() < kNotesMax && notes_.insert(note).second) evidence::AppendNote(note, &text_);
}

void Sampler::Complain(const std::string& what) {
  if (notes_.contains(what) || notes_.size() >= kNotesMax) return;
  Note(what);
  complaints_.push_back(what);
}

uint32_t Sampler::DeclareProcess(const ProcessEntry& entry, Relation relation,
                                 std::vector<uint32_t> groups) {
  evidence::Process process;
  process.relation = relation;
  process.pid = entry.pid;
  process.parent_pid = entry.parent_pid;
  process.start_ticks = entry.start_ticks;
  if (relation == Relation::kRecorded) {
    process.pid_namespace_inode = static_cast<int64_t>(entry.pid_namespace);
    process.own_pid = entry.own_pid;
  }
  process.uid = entry.uid;
  process.name = entry.name;
  process.groups = std::move(groups);
  evidence::Append(process, &text_);
  return next_process_++;
}

// ---- search

void Sampler::Search() {
  const auto listed = ListProcesses(options_.proc);
  if (!listed.ok()) return;  // what is known already is sampled; the next search may see more
  const std::vector<ProcessEntry>& all = *listed;
  const std::string mountinfo = ProcFile(options_.proc / "self" / "mountinfo");
  mounts_ = ParseMounts(mountinfo);
  memory_groups_.SetMounts(mountinfo);
  FindRecorded(all);
  for (auto& [id, process] : recorded_) {
    OpenFiles(&process);
    FindGroups(&process);
    process.tasks = ListTasks(options_.proc, process.entry, process.tasks);
    FindAllowed(&process);
  }
  // The first threads of all come before the others of one that has very many.
  for (const auto& [id, process] : recorded_) AddTask(process, process.entry.pid, false);
  for (const auto& [id, process] : recorded_) AddWriters(process);
  ChooseBusiest();
  FindOthers(all);
  NoteWhatIsHidden();
}

void Sampler::NoteWhatIsHidden() {
  std::error_code error;
  const bool there = std::filesystem::exists(options_.proc / "self", error);
  if (there && !std::filesystem::exists(options_.proc / "1" / "stat", error)) {
    Note(
        "processes of other users are hidden (/proc is mounted with hidepid): their processor time "
        "is not sampled");
  }
}

void Sampler::FindRecorded(const std::vector<ProcessEntry>& all) {
  const AliveProcesses alive = AliveById(all);
  for (auto it = recorded_.begin(); it != recorded_.end();) {
    it = alive.contains(it->first) ? std::next(it) : recorded_.erase(it);
  }
  for (const auto& [id, found] : RecordedAmong(alive, directories_())) {
    if (recorded_.contains(id) || next_process_ >= kDeclaredMax) continue;
    AddRecorded(*found.entry, found.uid, found.runtime);
  }
}

void Sampler::AddRecorded(const ProcessEntry& entry, uint32_t uid,
                          const std::filesystem::path& runtime) {
  RecordedProcess process;
  process.entry = entry;
  process.uid = uid;
  process.runtime = runtime;
  FindGroups(&process);
  process.index = DeclareProcess(entry, Relation::kRecorded, process.groups);
  others_.erase(entry.pid);  // it was looked at before it had a control block
  OpenFiles(&process);
  recorded_.emplace(BlockId{entry.pid_namespace, entry.own_pid, entry.start_ticks},
                    std::move(process));
}

// Again and again: no descriptor may have been left when the process was found.
void Sampler::OpenFiles(RecordedProcess* process) const {
  const std::filesystem::path folder = options_.proc / std::to_string(process->entry.pid);
  if (!process->stat.is_open()) process->stat = SampledFile(folder / "stat");
  // Not everybody may: neither open it nor, when the process has become somebody else, read it.
  if (!process->io.is_open()) process->io = SampledFile(folder / "io");
}

// Also of one that is known: it may have been moved.
void Sampler::FindGroups(RecordedProcess* process) {
  const std::string text = ProcFile(options_.proc / std::to_string(process->entry.pid) / "cgroup");
  if (text.empty()) return;
  std::vector<uint32_t> groups;
  const std::vector<CgroupPath> paths = ParseCgroups(text);
  const std::vector<SeenGroup> all_seen = GroupsOf(paths, mounts_);
  for (const CgroupPath& path : paths) {
    // The root limits nothing.
    const bool seen = std::any_of(all_seen.begin(), all_seen.end(), [&](const SeenGroup& one) {
      return one.version == path.version;
    });
    if (!seen && path.path != "/") {
      Note(absl::StrCat("control group \"", path.path, "\" (v", path.version,
                        ") is not visible here: whether it throttles its processes is unknown"));
    }
  }
  for (const SeenGroup& seen : all_seen) {
    if (const auto index = GroupIndex(seen); index.has_value()) groups.push_back(*index);
  }
  const bool declared = recorded_.contains(
      {process->entry.pid_namespace, process->entry.own_pid, process->entry.start_ticks});
  if (groups != process->groups) {
    process->groups = std::move(groups);
    if (declared) evidence::AppendGroups(process->index, process->groups, &text_);
  }
  if (!declared) return;
  std::vector<uint32_t> memory_groups = memory_groups_.Of(text, &text_);
  if (memory_groups == process->memory_groups) return;
  process->memory_groups = std::move(memory_groups);
  evidence::AppendMemoryGroups(process->index, process->memory_groups, &text_);
}

// Again and again: a program may pin itself.
void Sampler::FindAllowed(RecordedProcess* process) {
  CpuSet cpus = AllowedOf(process->tasks, process->entry.pid);
  // The kernel lists also what is switched off.
  const auto online = ParseCpuList(ProcFile(options_.cpus / "online"));
  if (online.has_value() && !online->empty()) {
    std::erase_if(cpus, [&](uint32_t cpu) { return !online->contains(cpu); });
  }
  if (cpus.empty() || cpus == process->allowed_cpus) return;
  evidence::AppendAllowed(process->index, static_cast<uint32_t>(cpus.size()), CpuListOf(cpus),
                          &text_);
  process->allowed_cpus = std::move(cpus);
}

// nullopt: it has no count of throttling, so no quota either (a root, or no controller).
std::optional<uint32_t> Sampler::GroupIndex(const SeenGroup& seen) {
  const auto known = groups_.find(seen.directory);
  if (known != groups_.end()) return known->second.index;
  if (groups_.size() >= options_.groups_max || next_group_ >= kDeclaredMax) return std::nullopt;
  const std::filesystem::path directory = seen.directory;
  GroupEntry group;
  group.version = seen.version;
  group.cpu_stat = SampledFile(directory / "cpu.stat");
  if (!ParseCpuStat(group.cpu_stat.Read(&buffer_)).has_value()) return std::nullopt;
  if (seen.version == 1) {
    group.quota = SampledFile(directory / "cpu.cfs_quota_us");
    group.period = SampledFile(directory / "cpu.cfs_period_us");
  } else {
    group.quota = SampledFile(directory / "cpu.max");
  }
  group.index = next_group_++;
  evidence::Append(evidence::Group{seen.version, seen.path}, &text_);
  return groups_.emplace(seen.directory, std::move(group)).first->second.index;
}

// As the process sees its threads. Threads share the last slot of a full block: only it is missing.
std::set<int32_t> Sampler::WritersOf(const RecordedProcess& process) const {
  std::set<int32_t> tids;
  // Not kept open: descriptors are scarcer than the time of a search.
  const ProcessEntry& entry = process.entry;
  const auto live = control_block::LiveBlock::Open(
      process.runtime, {entry.pid_namespace, entry.own_pid, entry.start_ticks}, process.uid);
  if (!live.ok()) return tids;
  const auto block = live->Read();
  if (!block.ok()) return tids;
  for (const control_block::ThreadSlot& slot : block->threads) {
    if (slot.events > 0) tids.insert(slot.tid);
  }
  return tids;
}

void Sampler::AddWriters(const RecordedProcess& process) {
  const std::set<int32_t> writers = WritersOf(process);
  for (const auto& [tid, task] : process.tasks) {
    if (task.transfers || writers.contains(task.own_tid)) AddTask(process, tid, false);
  }
}

void Sampler::AddTask(const RecordedProcess& process, int32_t tid, bool chosen) {
  const TaskKey key{process.entry.pid, tid};
  if (const auto known = tasks_.find(key); known != tasks_.end()) {
    known->second.chosen &= chosen;
    return;
  }
  if (tasks_.size() >= options_.threads_max || next_thread_ >= kDeclaredMax) return;
  Task task;
  task.chosen = chosen;
  task.schedstat = SampledFile(TaskFile(options_.proc, process.entry.pid, tid, "schedstat"));
  const auto stat = ParseSchedStat(task.schedstat.Read(&buffer_));
  if (!stat.has_value()) {
    // Gone; else the kernel has no such file.
    std::error_code ignored;
    if (!task.schedstat.is_open() &&
        std::filesystem::exists(TaskFile(options_.proc, process.entry.pid, tid, "stat"), ignored)) {
      Complain("run-queue time of threads cannot be read (/proc/PID/task/TID/schedstat)");
    }
    return;
  }
  task.on_cpu_ns = task.searched_cpu_ns = stat->on_cpu_ns;
  task.stat = SampledFile(TaskFile(options_.proc, process.entry.pid, tid, "stat"));
  std::string name = ProcFile(TaskFile(options_.proc, process.entry.pid, tid, "comm"));
  while (!name.empty() && name.back() == '\n') name.pop_back();
  const auto seen = process.tasks.find(tid);
  task.index = next_thread_++;
  evidence::Append(evidence::Thread{process.index, tid,
                                    seen == process.tasks.end() ? 0 : seen->second.own_tid, name},
                   &text_);
  tasks_.emplace(key, std::move(task));
}

// Those that are not certain to be sampled, the busiest first. How busy threads are that are not
// open, only the next search can tell.
std::vector<Sampler::BusyTask> Sampler::BusyTasks() {
  std::map<TaskKey, int64_t> seen;
  std::vector<BusyTask> busy;
  for (const auto& [id, process] : recorded_) {
    for (const auto& [tid, seen_task] : process.tasks) {
      const TaskKey key{process.entry.pid, tid};
      if (const auto open = tasks_.find(key); open != tasks_.end()) {
        Task& task = open->second;
        const int64_t grown_ns =
            task.on_cpu_ns - std::exchange(task.searched_cpu_ns, task.on_cpu_ns);
        // One that is open is given up only for one that is clearly busier.
        if (task.chosen) busy.push_back({2 * grown_ns, key, &process});
        continue;
      }
      if (seen.size() >= options_.looked_at_max) continue;
      const auto stat =
          ParseSchedStat(TextOf(TaskFile(options_.proc, process.entry.pid, tid, "schedstat")));
      if (!stat.has_value()) continue;
      seen[key] = stat->on_cpu_ns;
      const auto before = seen_tasks_.find(key);
      if (before == seen_tasks_.end()) continue;
      const int64_t grown_ns = stat->on_cpu_ns - before->second;
      if (grown_ns > kQueuedNs) busy.push_back({grown_ns, key, &process});
    }
  }
  seen_tasks_ = std::move(seen);
  std::sort(busy.begin(), busy.end(), [](const BusyTask& a, const BusyTask& b) {
    return a.grown_ns != b.grown_ns ? a.grown_ns > b.grown_ns : a.key < b.key;
  });
  return busy;
}

void Sampler::ChooseBusiest() {
  std::vector<BusyTask> busy = BusyTasks();
  for (size_t i = options_.busiest_threads; i < busy.size(); ++i) tasks_.erase(busy[i].key);
  if (busy.size() > options_.busiest_threads) busy.resize(options_.busiest_threads);
  for (const BusyTask& one : busy) AddTask(*one.process, one.key.second, true);
}

Relation Sampler::RelationOf(const ProcessEntry& entry,
                             const std::map<int32_t, const ProcessEntry*>& by_pid) const {
  std::set<int32_t> recorded;
  for (const auto& [id, process] : recorded_) recorded.insert(process.entry.pid);
  const std::string_view name = entry.name;
  if (name == "lttng-sessiond" || name == "lttng-consumerd" || name == "syncline" ||
      name.starts_with("syncline-")) {
    return Relation::kSyncline;
  }
  int32_t pid = entry.pid;
  for (int depth = 0; depth < kAncestorsMax && pid > 1; ++depth) {
    if (pid == options_.own_pid) return Relation::kSyncline;
    if (recorded.contains(pid)) return Relation::kDescendant;
    const auto found = by_pid.find(pid);
    if (found == by_pid.end()) break;
    pid = found->second->parent_pid;
  }
  return Relation::kOther;
}

void Sampler::AddOther(const ProcessEntry& entry,
                       const std::map<int32_t, const ProcessEntry*>& by_pid) {
  if (others_.contains(entry.pid) || next_process_ >= kDeclaredMax) return;
  Other other;
  other.stat = SampledFile(options_.proc / std::to_string(entry.pid) / "stat");
  if (!other.stat.is_open()) return;
  other.index = DeclareProcess(entry, RelationOf(entry, by_pid), {});
  others_.emplace(entry.pid, std::move(other));
}

void Sampler::FindOthers(const std::vector<ProcessEntry>& all) {
  std::set<int32_t> recorded;
  for (const auto& [id, process] : recorded_) recorded.insert(process.entry.pid);
  std::map<int32_t, const ProcessEntry*> by_pid;
  std::map<std::pair<int32_t, uint64_t>, int64_t> seen;
  std::vector<std::pair<int64_t, const ProcessEntry*>> grown;
  for (const ProcessEntry& entry : all) {
    by_pid[entry.pid] = &entry;
    if (recorded.contains(entry.pid) || entry.ended()) continue;
    const auto stat = ParseProcStat(TextOf(options_.proc / std::to_string(entry.pid) / "stat"),
                                    options_.ticks_per_second);
    if (!stat.has_value()) continue;
    const std::pair key{entry.pid, entry.start_ticks};
    seen[key] = stat->cpu_ns;
    const auto before = seen_processes_.find(key);
    // One that began since has used all of it since.
    const bool first_search = seen_processes_.empty();
    const int64_t before_ns = before != seen_processes_.end() ? before->second : 0;
    if (!first_search && stat->cpu_ns > before_ns) {
      grown.emplace_back(stat->cpu_ns - before_ns, &entry);
    }
  }
  seen_processes_ = std::move(seen);
  std::sort(grown.begin(), grown.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second->pid < b.second->pid;
  });
  if (grown.size() > options_.others_max) grown.resize(options_.others_max);
  std::set<int32_t> busy;
  for (const auto& [grown_ns, entry] : grown) busy.insert(entry->pid);
  for (auto it = others_.begin(); it != others_.end();) {
    const bool keep = busy.contains(it->first) ||
                      (others_.size() <= 2 * options_.others_max && by_pid.contains(it->first));
    it = keep ? std::next(it) : others_.erase(it);
  }
  for (const auto& [grown_ns, entry] : grown) AddOther(*entry, by_pid);
}

// ---- rounds

void Sampler::Round() {
  int64_t now_ns = clock_->MonotonicNs();
  ReadTasks(&now_ns);
  ReadRecorded(&now_ns);
  ReadStealTime(&now_ns);
  ReadGroups(&now_ns);
  ReadOthers(&now_ns);
}

void Sampler::ReadTasks(int64_t* now_ns) {
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    Task& task = it->second;
    const auto stat = ParseSchedStat(task.schedstat.Read(&buffer_));
    const int64_t until_ns = clock_->MonotonicNs();
    if (!stat.has_value()) {  // it has ended
      it = tasks_.erase(it);
      *now_ns = until_ns;
      continue;
    }
    evidence::ThreadSample sample{task.index,         *now_ns, until_ns, stat->on_cpu_ns,
                                  stat->run_queue_ns, -1};
    *now_ns = until_ns;
    const auto [pid, tid] = it->first;
    const bool queued =
        task.run_queue_ns >= 0 && stat->run_queue_ns - task.run_queue_ns > kQueuedNs;
    if (queued || tid == pid) {
      const auto more = ParseProcStat(task.stat.Read(&buffer_), options_.ticks_per_second);
      if (more.has_value() && queued) sample.cpu = more->cpu;
      if (more.has_value() && tid == pid) {
        sample.state = more->state;
        sample.major_faults = more->major_faults;
        sample.minor_faults = more->minor_faults;
        const bool runs = more->state == 'R' && *now_ns - task.clock_read_ns >= kClockPauseNs;
        if (runs) sample.clock_khz = clocks_.KhzOf(more->cpu);
        if (runs) task.clock_read_ns = *now_ns;
      }
      *now_ns = clock_->MonotonicNs();
    }
    task.run_queue_ns = stat->run_queue_ns;
    task.on_cpu_ns = stat->on_cpu_ns;
    evidence::Append(sample, &text_);
    ++it;
  }
}

// All their threads together, also those that are not sampled one by one.
void Sampler::ReadRecorded(int64_t* now_ns) {
  if (*now_ns - recorded_read_ns_ < kRecordedPauseNs) return;
  recorded_read_ns_ = *now_ns;
  for (const auto& [id, process] : recorded_) {
    const auto stat = ParseProcStat(process.stat.Read(&buffer_), options_.ticks_per_second);
    const int64_t until_ns = clock_->MonotonicNs();
    const int64_t at_ns = std::exchange(*now_ns, until_ns);
    if (!stat.has_value()) continue;  // it has ended
    evidence::ProcessSample sample{process.index, at_ns, until_ns, stat->cpu_ns, -1, stat->threads};
    sample.read_bytes = ParseReadBytes(process.io.Read(&buffer_)).value_or(-1);
    *now_ns = clock_->MonotonicNs();
    evidence::AppendRecorded(sample, &text_);
  }
  memory_groups_.Read(clock_, now_ns, &text_);
}

void Sampler::ReadStealTime(int64_t* now_ns) {
  if (recorded_.empty() || !steal_time_.Read(clock_, now_ns)) return;
  for (auto& [id, process] : recorded_) {
    if (process.allowed_cpus.empty()) continue;
    const CpuTimes grown = steal_time_.GrownOn(process.allowed_cpus);
    process.cpu_times.busy_ns += grown.busy_ns;
    process.cpu_times.stolen_ns += grown.stolen_ns;
    evidence::Append(
        evidence::StealSample{process.index, steal_time_.at_ns(), steal_time_.until_ns(),
                              process.cpu_times.busy_ns, process.cpu_times.stolen_ns},
        &text_);
  }
}

void Sampler::ReadGroups(int64_t* now_ns) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    GroupEntry& group = it->second;
    const auto stat = ParseCpuStat(group.cpu_stat.Read(&buffer_));
    const int64_t until_ns = clock_->MonotonicNs();
    if (!stat.has_value()) {  // it was removed
      it = groups_.erase(it);
      continue;
    }
    evidence::GroupSample sample{
        group.index, *now_ns, until_ns, stat->periods, stat->throttled_periods, stat->throttled_ns};
    if (group.version == 1) {
      const auto quota = ParseMicroseconds(group.quota.Read(&buffer_));
      const auto period = ParseMicroseconds(group.period.Read(&buffer_));
      sample.quota_ns = quota.value_or(-1) > 0 ? *quota * 1000 : -1;
      sample.period_ns = std::max<int64_t>(0, period.value_or(0)) * 1000;
    } else if (const auto quota = ParseCpuMax(group.quota.Read(&buffer_)); quota.has_value()) {
      sample.quota_ns = quota->quota_ns;
      sample.period_ns = quota->period_ns;
    }
    *now_ns = clock_->MonotonicNs();
    evidence::Append(sample, &text_);
    ++it;
  }
}

void Sampler::ReadOthers(int64_t* now_ns) {
  for (auto it = others_.begin(); it != others_.end();) {
    const auto stat = ParseProcStat(it->second.stat.Read(&buffer_), options_.ticks_per_second);
    const int64_t until_ns = clock_->MonotonicNs();
    if (!stat.has_value()) {
      it = others_.erase(it);
      *now_ns = until_ns;
      continue;
    }
    evidence::Append(
        evidence::ProcessSample{it->second.index, *now_ns, until_ns, stat->cpu_ns, stat->cpu},
        &text_);
    *now_ns = until_ns;
    ++it;
  }
}

}  // namespace syncline::agent
