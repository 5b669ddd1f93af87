#include "agent/evidence/sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "control_block/live_block.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

using control_block::BlockId;
using evidence::Relation;

constexpr size_t kReadMax = 2048;         // the longest of the files: /proc/PID/stat
constexpr int64_t kQueuedNs = 1'000'000;  // from so much on it is worth knowing on which processor
constexpr int kAncestorsMax = 32;
constexpr size_t kDeclaredMax = 100'000;  // lines of processes and threads: a job that forks wildly

std::string TextOf(const std::filesystem::path& path) {
  const SampledFile file(path);
  std::string text;
  file.Read(&text);
  return text;
}

// A whole file of any length.
std::string AllOf(const std::filesystem::path& path) {
  auto text = ReadFile(path);
  return text.ok() ? *std::move(text) : std::string();
}

std::vector<int32_t> TasksOf(const std::filesystem::path& proc, int32_t pid) {
  std::vector<int32_t> tids;
  std::error_code error;
  for (std::filesystem::directory_iterator it(proc / std::to_string(pid) / "task", error), end;
       !error && it != end; it.increment(error)) {
    int32_t tid = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &tid)) tids.push_back(tid);
  }
  std::sort(tids.begin(), tids.end());
  return tids;
}

std::filesystem::path TaskFile(const std::filesystem::path& proc, int32_t pid, int32_t tid,
                               const char* name) {
  return proc / std::to_string(pid) / "task" / std::to_string(tid) / name;
}

}  // namespace

SampledFile::SampledFile(const std::filesystem::path& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

SampledFile::~SampledFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string_view SampledFile::Read(std::string* buffer) const {
  if (fd_ < 0) return {};
  buffer->resize(kReadMax);
  const ssize_t bytes = ::pread(fd_, buffer->data(), buffer->size(), 0);
  buffer->resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return *buffer;
}

Sampler::Sampler(RuntimeDirectories directories, Clock* clock, SamplerOptions options)
    : directories_(std::move(directories)), clock_(clock), options_(std::move(options)) {}

void Sampler::Note(const std::string& note) {
  if (notes_.size() < 50 && notes_.insert(note).second) evidence::AppendNote(note, &text_);
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
  const std::vector<ProcessEntry> all = ListProcesses(options_.proc);
  mounts_ = ParseMounts(AllOf(options_.proc / "self" / "mountinfo"));
  FindRecorded(all);
  for (auto& [id, process] : recorded_) {
    FindGroups(&process);
    FindTasks(process);
  }
  AddBusiest();
  FindOthers(all);
}

void Sampler::FindRecorded(const std::vector<ProcessEntry>& all) {
  std::map<BlockId, const ProcessEntry*> alive;
  for (const ProcessEntry& entry : all) {
    if (!entry.ended()) alive[{entry.pid_namespace, entry.own_pid, entry.start_ticks}] = &entry;
  }
  for (auto it = recorded_.begin(); it != recorded_.end();) {
    it = alive.contains(it->first) ? std::next(it) : recorded_.erase(it);
  }
  for (const auto& [uid, runtime] : directories_()) {
    const auto blocks = control_block::ListBlocks(runtime, uid);
    if (!blocks.ok()) continue;
    for (const BlockId& id : *blocks) {
      const auto found = alive.find(id);
      // A control block is easily named like another user's process.
      if (found == alive.end() || found->second->uid != uid || recorded_.contains(id)) continue;
      if (next_process_ < kDeclaredMax) AddRecorded(*found->second, uid, runtime);
    }
  }
}

void Sampler::AddRecorded(const ProcessEntry& entry, uint32_t uid,
                          const std::filesystem::path& runtime) {
  RecordedProcess process{entry, 0, uid, runtime, {}};
  FindGroups(&process);
  process.index = DeclareProcess(entry, Relation::kRecorded, process.groups);
  others_.erase(entry.pid);  // it was looked at before it had a control block
  recorded_.emplace(BlockId{entry.pid_namespace, entry.own_pid, entry.start_ticks},
                    std::move(process));
}

// Also of one that is known: it may have been moved.
void Sampler::FindGroups(RecordedProcess* process) {
  const std::string text = AllOf(options_.proc / std::to_string(process->entry.pid) / "cgroup");
  if (text.empty()) return;
  std::vector<uint32_t> groups;
  for (const SeenGroup& seen : GroupsOf(ParseCgroups(text), mounts_)) {
    if (const auto index = GroupIndex(seen); index.has_value()) groups.push_back(*index);
  }
  if (groups == process->groups) return;
  process->groups = std::move(groups);
  if (recorded_.contains(
          {process->entry.pid_namespace, process->entry.own_pid, process->entry.start_ticks})) {
    evidence::AppendGroups(process->index, process->groups, &text_);
  }
}

// nullopt: it has no count of throttling, so no quota either (a root, or no controller).
std::optional<uint32_t> Sampler::GroupIndex(const SeenGroup& seen) {
  const auto known = groups_.find(seen.directory);
  if (known != groups_.end()) return known->second.index;
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

std::set<int32_t> Sampler::WritersOf(const RecordedProcess& process) const {
  std::set<int32_t> tids;
  const BlockId id{process.entry.pid_namespace, process.entry.own_pid, process.entry.start_ticks};
  const auto live = control_block::LiveBlock::Open(process.runtime, id, process.uid);
  if (!live.ok()) return tids;
  const auto block = live->Read();
  if (!block.ok()) return tids;
  for (const control_block::ThreadSlot& slot : block->threads) {
    if (slot.events > 0) tids.insert(slot.tid);
  }
  return tids;
}

int32_t Sampler::OwnTid(const RecordedProcess& process, int32_t tid) const {
  if (process.entry.own_pid == process.entry.pid) return tid;  // one namespace
  const std::string status = AllOf(TaskFile(options_.proc, process.entry.pid, tid, "status"));
  return ParseOwnTid(status).value_or(0);
}

void Sampler::AddTask(const RecordedProcess& process, int32_t tid) {
  const TaskKey key{process.entry.pid, tid};
  if (tasks_.contains(key) || tasks_.size() >= options_.threads_max ||
      next_thread_ >= kDeclaredMax) {
    return;
  }
  Task task;
  task.schedstat = SampledFile(TaskFile(options_.proc, process.entry.pid, tid, "schedstat"));
  if (!ParseSchedStat(task.schedstat.Read(&buffer_)).has_value()) {
    // Gone, or the kernel does not count (CONFIG_SCHED_INFO).
    if (task.schedstat.is_open() && !buffer_.empty()) {
      Note("the kernel counts no run-queue time (schedstat)");
    }
    return;
  }
  task.stat = SampledFile(TaskFile(options_.proc, process.entry.pid, tid, "stat"));
  std::string name = AllOf(TaskFile(options_.proc, process.entry.pid, tid, "comm"));
  while (!name.empty() && name.back() == '\n') name.pop_back();
  task.index = next_thread_++;
  evidence::Append(evidence::Thread{process.index, tid, OwnTid(process, tid), name}, &text_);
  seen_tasks_.erase(key);
  tasks_.emplace(key, std::move(task));
}

// The first thread and those that wrote events; how busy the others are is noted down.
void Sampler::FindTasks(const RecordedProcess& process) {
  const std::vector<int32_t> tids = TasksOf(options_.proc, process.entry.pid);
  const std::set<int32_t> writers = WritersOf(process);
  for (const int32_t tid : tids) {
    const bool first = tid == process.entry.pid;
    if (first || (!writers.empty() && writers.contains(OwnTid(process, tid)))) {
      AddTask(process, tid);
    }
  }
}

void Sampler::AddBusiest() {
  std::map<TaskKey, int64_t> seen;
  std::vector<std::pair<int64_t, std::pair<const RecordedProcess*, int32_t>>> grown;
  for (const auto& [id, process] : recorded_) {
    for (const int32_t tid : TasksOf(options_.proc, process.entry.pid)) {
      const TaskKey key{process.entry.pid, tid};
      if (tasks_.contains(key) || seen.size() >= options_.looked_at_max) continue;
      const auto stat =
          ParseSchedStat(TextOf(TaskFile(options_.proc, process.entry.pid, tid, "schedstat")));
      if (!stat.has_value()) continue;
      seen[key] = stat->on_cpu_ns;
      const auto before = seen_tasks_.find(key);
      if (before == seen_tasks_.end()) continue;
      const int64_t grown_ns = stat->on_cpu_ns - before->second;
      if (grown_ns > kQueuedNs) grown.push_back({grown_ns, {&process, tid}});
    }
  }
  seen_tasks_ = std::move(seen);
  std::sort(grown.begin(), grown.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second.second < b.second.second;
  });
  for (size_t i = 0; i < std::min(grown.size(), options_.busiest_threads); ++i) {
    AddTask(*grown[i].second.first, grown[i].second.second);
  }
}

Relation Sampler::RelationOf(const ProcessEntry& entry,
                             const std::map<int32_t, const ProcessEntry*>& by_pid) const {
  std::set<int32_t> recorded;
  for (const auto& [id, process] : recorded_) recorded.insert(process.entry.pid);
  if (entry.name == "lttng-sessiond" || entry.name == "lttng-consumerd") return Relation::kSyncline;
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
    if (task.run_queue_ns >= 0 && stat->run_queue_ns - task.run_queue_ns > kQueuedNs) {
      const auto where = ParseProcStat(task.stat.Read(&buffer_), options_.ticks_per_second);
      if (where.has_value()) sample.cpu = where->cpu;
      *now_ns = clock_->MonotonicNs();
    }
    task.run_queue_ns = stat->run_queue_ns;
    evidence::Append(sample, &text_);
    ++it;
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
