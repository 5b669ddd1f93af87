// SPDX-License-Identifier: Apache-2.0
#include "agent/code/code_sampler.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/evidence/proc_text.h"
#include "agent/evidence/recorded_processes.h"
#include "agent/host/proc_links.h"
#include "common/files.h"
#include "evidence/code_samples.h"
#include "evidence/write.h"

namespace syncline::agent {
namespace {

using control_block::BlockId;

constexpr int64_t kChangedPauseNs = 50'000'000;  // between two readings after a change
constexpr int64_t kMapsPauseNs = 500'000'000;    // between two readings of one process's maps
constexpr size_t kComplaintsMax = 50;
constexpr size_t kWatchedMax = 256;         // threads: two descriptors and a ring each
constexpr uint32_t kDeclaredMax = 100'000;  // lines of threads: a program that makes them wildly

size_t WatchedMax(const CodeSamplerOptions& options) {
  return std::min(kWatchedMax, std::max<size_t>(options.threads_max / 2, 1));
}

// 0: not allowed to see.
uint64_t MountsOf(const std::filesystem::path& process) {
  return InodeOfLink(process / "ns" / "mnt", "mnt");
}

CodeOwner OwnerOf(const std::filesystem::path& proc, const ProcessEntry& entry) {
  const std::filesystem::path process = proc / std::to_string(entry.pid);
  CodeOwner owner{.pid = entry.pid, .own_pid = entry.own_pid, .uid = entry.uid};
  owner.mounts = MountsOf(process);
  std::error_code error;
  const bool same_root = std::filesystem::read_symlink(process / "root", error) == "/" && !error;
  if (owner.mounts != MountsOf(proc / "self") || !same_root) {
    owner.root = (process / "root").string();
  }
  return owner;
}

}  // namespace

CodeSampler::CodeSampler(RuntimeDirectories directories, Clock* clock, OpenThreadEvent open,
                         CodeSamplerOptions options, OpenSoftwareRing open_software)
    : directories_(std::move(directories)),
      clock_(clock),
      open_(std::move(open)),
      options_(std::move(options)) {
  if (open_software == nullptr) return;
  software_.emplace(std::move(open_software),
                    SoftwareWatchOptions{.proc = options_.proc,
                                         .threads_max = WatchedMax(options_),
                                         .time_shift_ns = options_.time_shift_ns,
                                         .measure = options_.measure_cost});
}

void CodeSampler::Complain(const std::string& what) {
  if (said_.size() >= kComplaintsMax || !said_.insert(what).second) return;
  evidence::AppendNote(what, &text_);
  complaints_.push_back(what);
}

absl::Status CodeSampler::Probe() {
  auto event = open_(0, true);
  kernel_ = event.ok();
  if (!event.ok()) event = open_(0, false);
  evidence::AppendCodeHead(kCodePeriodNs, kernel_, &text_);
  if (!event.ok()) return event.status();
  if (software_.has_value()) {
    const absl::Status watched = software_->Probe(kernel_, &text_);
    if (!watched.ok()) {
      Complain(absl::StrCat("page faults and switches are not counted, only code is sampled: ",
                            watched.message()));
    }
  }
  return absl::OkStatus();
}

// ---- who is sampled

void CodeSampler::Search() {
  const auto listed = ListProcesses(options_.proc);
  if (!listed.ok()) return;  // the next search may see more
  const std::set<BlockId> alive = FindRecorded(*listed);
  LookForThreads();
  // Zombies, and processes without a control block, still list their threads.
  LetGo([&](const TaskKey&, const Task& task) { return !alive.contains(task.process); });
  std::erase_if(recorded_, [&](const auto& one) { return !alive.contains(one.first); });
}

std::set<BlockId> CodeSampler::FindRecorded(const std::vector<ProcessEntry>& all) {
  std::set<BlockId> found_alive;
  for (const auto& [id, found] : RecordedAmong(AliveById(all), directories_(), users_left_out_)) {
    found_alive.insert(id);
    if (recorded_.contains(id) || recorded_.size() >= options_.processes_max) continue;
    recorded_[id] = {.entry = *found.entry, .owner = OwnerOf(options_.proc, *found.entry)};
  }
  return found_alive;
}

void CodeSampler::LookForThreads() {
  std::set<TaskKey> alive;
  for (auto& [id, process] : recorded_) {
    const int32_t pid = process.entry.pid;
    for (const int32_t tid : ListThreads(options_.proc, pid)) {
      alive.emplace(pid, tid);
      AddTask(id, &process, tid);
    }
  }
  // One that has ended has said all that it will: its ring is given back.
  LetGo([&](const TaskKey& key, const Task&) { return !alive.contains(key); });
}

void CodeSampler::LetGo(const std::function<bool(const TaskKey& key, const Task& task)>& which) {
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    if (!which(it->first, it->second)) {
      ++it;
      continue;
    }
    DrainTask(&it->second);
    if (software_.has_value()) software_->Remove(it->second.index, &text_);
    Finish(it->second);
    it = tasks_.erase(it);
  }
}

void CodeSampler::AddTask(const BlockId& id, Recorded* process, int32_t tid) {
  const TaskKey key{process->entry.pid, tid};
  if (process->refused || tasks_.contains(key)) return;
  if (tasks_.size() >= options_.threads_max || next_thread_ >= kDeclaredMax) {
    if (left_out_.size() < kDeclaredMax) left_out_.insert(key);
    return;
  }
  // Its number may be another process's by now.
  const auto now = ReadProcess(options_.proc, key.first);
  if (!now.has_value() || now->start_ticks != process->entry.start_ticks) return;
  auto event = open_(tid, kernel_);
  if (absl::IsNotFound(event.status())) return;  // it has ended
  if (absl::IsPermissionDenied(event.status())) {
    process->refused = true;
    return Complain(absl::StrCat("process ", key.first, " (", process->entry.name,
                                 ") may not be sampled: ", event.status().message()));
  }
  if (!event.ok()) {
    return Complain(absl::StrCat("some threads are not sampled: ", event.status().message()));
  }
  const std::filesystem::path folder =
      options_.proc / std::to_string(key.first) / "task" / std::to_string(tid);
  const ProcessEntry& entry = process->entry;
  if (process->index == UINT32_MAX) {
    process->index = next_process_++;
    evidence::Append(evidence::CodeProcess{entry.pid, entry.start_ticks,
                                           static_cast<int64_t>(entry.pid_namespace), entry.own_pid,
                                           entry.uid, entry.name},
                     &text_);
    process->code = ParseMaps(ProcFile(options_.proc / std::to_string(key.first) / "maps"));
    process->code_read_ns = clock_->MonotonicNs();
  }
  const std::string name = CommIn(folder);
  const int32_t own_tid =
      entry.own_pid == entry.pid ? tid : ParseOwnTid(ProcFile(folder / "status")).value_or(0);
  if (enabled_) (*event)->Enable();
  Task task{next_thread_++, id, *std::move(event)};
  evidence::Append(evidence::CodeThread{process->index, tid, own_tid, clock_->MonotonicNs(), name},
                   &text_);
  const uint32_t number = task.index;
  tasks_.emplace(key, std::move(task));
  WatchToo(number, key);
}

void CodeSampler::WatchToo(uint32_t thread, const TaskKey& key) {
  if (!software_.has_value()) return;
  const absl::Status watched = software_->Add(thread, key.first, key.second);
  if (watched.ok() || absl::IsNotFound(watched)) return;
  Complain(absl::StrCat("page faults and switches of some threads are not counted: ",
                        watched.message()));
}

void CodeSampler::Enable() {
  enabled_ = true;
  for (auto& [key, task] : tasks_) task.event->Enable();
  if (software_.has_value()) software_->Enable(clock_->MonotonicNs());
}

void CodeSampler::Disable() {
  if (!enabled_) return;
  enabled_ = false;
  for (auto& [key, task] : tasks_) task.event->Disable();
  if (software_.has_value()) software_->Disable(clock_->MonotonicNs(), &text_);
  for (auto& [key, task] : tasks_) {
    DrainTask(&task);
    Finish(task);
  }
  tasks_.clear();
  if (!left_out_.empty()) {
    Complain(absl::StrCat(left_out_.size(), " threads were not sampled: at most ",
                          options_.threads_max, " of a node are, those found first"));
  }
  if (software_.has_value() && software_->threads_left_out() > 0) {
    Complain(absl::StrCat("page faults and switches of ", software_->threads_left_out(),
                          " threads were not counted: at most ", WatchedMax(options_),
                          " of a node are watched for them, those found first"));
  }
  if (table_losses_ > 0) {
    Complain(absl::StrCat(table_losses_, " samples are left out: too many different stacks"));
  }
}

void CodeSampler::Finish(const Task& task) {
  evidence::Append(evidence::CodeThreadTime{task.index, task.event->OnCpuNs()}, &text_);
}

// ---- samples

void CodeSampler::Drain() {
  for (auto& [key, task] : tasks_) DrainTask(&task);
  if (!software_.has_value()) return;
  int64_t used_ns = 0;
  for (auto& [key, task] : tasks_) {
    const int64_t all_ns = task.event->OnCpuNs();
    used_ns += all_ns - std::exchange(task.used_ns, all_ns);
  }
  software_->Turn(clock_->MonotonicNs(), used_ns, &text_);
}

void CodeSampler::DrainTask(Task* task) {
  const PerfRecords records = task->event->Drain();
  Recorded& process = recorded_.at(task->process);
  bool changed = !records.mapped_ns.empty();
  for (const PerfSample& sample : records.samples) {
    if (changed && sample.time_ns > records.mapped_ns.front()) {
      ReadCodeAgain(records.mapped_ns.back(), &process);
      changed = false;
    }
    Take(sample, task->index, &process);
  }
  if (changed) ReadCodeAgain(records.mapped_ns.back(), &process);
  for (const PerfLoss& loss : records.losses) {
    evidence::Append(
        evidence::CodeLoss{task->index, loss.time_ns + options_.time_shift_ns, loss.count}, &text_);
  }
  if (records.throttled) Complain("the kernel has suspended sampling at times (it was too slow)");
  if (records.damaged) Complain("some records of the kernel cannot be read");
}

// Maps are read anew when an address is not in them, but not all the time.
const MappedCode* CodeSampler::CodeAt(Recorded* process, uint64_t address) {
  const MappedCode* found = FindCode(process->code, address);
  if (found != nullptr) return found;
  const int64_t now_ns = clock_->MonotonicNs();
  if (now_ns - process->code_read_ns < kMapsPauseNs) return nullptr;
  ReadCode(process);
  return FindCode(process->code, address);
}

void CodeSampler::ReadCodeAgain(int64_t mapped_ns, Recorded* process) {
  if (process->code_read_ns > mapped_ns + options_.time_shift_ns) return;
  if (clock_->MonotonicNs() - process->code_read_ns >= kChangedPauseNs) ReadCode(process);
}

void CodeSampler::ReadCode(Recorded* process) {
  process->code_read_ns = clock_->MonotonicNs();
  std::vector<MappedCode> code =
      ParseMaps(ProcFile(options_.proc / std::to_string(process->entry.pid) / "maps"));
  if (!code.empty()) process->code = std::move(code);  // else it has ended
}

void CodeSampler::AddUserFrames(const PerfSample& sample, Recorded* process,
                                std::vector<uint32_t>* frames) {
  for (size_t i = 0; i < sample.user.size(); ++i) {
    // A return address may be the first of the next function, the byte before it never is.
    const uint64_t address = sample.user[i] - (i == 0 ? 0 : 1);
    const MappedCode* const code =
        i == 0 ? CodeAt(process, address) : FindCode(process->code, address);
    if (code != nullptr) {
      frames->push_back(table_.Frame(process->owner, *code, address, &text_));
    } else if (i == 0) {
      frames->push_back(table_.UnknownFrame(address, &text_));
    } else {
      return;  // no frame pointer was here
    }
  }
}

void CodeSampler::Take(const PerfSample& sample, uint32_t thread, Recorded* process) {
  std::vector<uint32_t> frames;
  for (size_t i = 0; i < sample.kernel.size(); ++i) {
    frames.push_back(table_.KernelFrame(sample.kernel[i] - (i == 0 ? 0 : 1), &text_));
  }
  AddUserFrames(sample, process, &frames);
  const bool full = std::count(frames.begin(), frames.end(), UINT32_MAX) > 0;
  const uint32_t stack = full || frames.empty() ? UINT32_MAX : table_.Stack(frames, &text_);
  if (stack == UINT32_MAX) {
    ++table_losses_;
    return;
  }
  evidence::Append(evidence::CodeSample{thread, sample.time_ns + options_.time_shift_ns, stack},
                   &text_);
}

}  // namespace syncline::agent
