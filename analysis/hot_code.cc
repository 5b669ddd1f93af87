// SPDX-License-Identifier: Apache-2.0
#include "analysis/hot_code.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "analysis/names.h"

namespace syncline::analysis {
namespace {

using evidence::CodeFrame;
using evidence::CodeSamples;

constexpr double kZ95 = 1.96;

// Calls of the C library that wait, and loops of other libraries.
constexpr std::array<std::string_view, 20> kWaitingFunctions = {"clock_nanosleep",
                                                                "epoll_pwait",
                                                                "epoll_wait",
                                                                "futex_wait",
                                                                "nanosleep",
                                                                "poll",
                                                                "ppoll",
                                                                "pselect",
                                                                "pthread_barrier_wait",
                                                                "pthread_cond_wait",
                                                                "pthread_cond_timedwait",
                                                                "pthread_mutex_lock",
                                                                "pthread_spin_lock",
                                                                "sched_yield",
                                                                "select",
                                                                "sem_timedwait",
                                                                "sem_wait",
                                                                "usleep",
                                                                "uv__io_poll",
                                                                "lll_lock_wait"};
// Of names in C++: a part of them.
constexpr std::array<std::string_view, 6> kWaitingParts = {
    "::WaitForWork(",                    // the thread pools of Eigen and TensorFlow
    "SpinLock::SlowLock(",               // Abseil
    "gloo::transport::tcp::Loop::run(",  // Gloo
    "gloo::transport::uv::",             // Gloo on libuv
    "gomp_team_barrier_wait",            // GCC's OpenMP, where its symbols are there
    "__kmp_wait"};                       // LLVM's and Intel's OpenMP
// The runtime libraries of OpenMP mostly have no symbols for their loops. What they do beside
// waiting is little.
constexpr std::array<std::string_view, 3> kWaitingLibraries = {"libgomp", "libomp", "libiomp"};

// Several of each, as a stack has its innermost frames only.
constexpr std::array<std::string_view, 12> kPageFaults = {
    "asm_exc_page_fault", "exc_page_fault",   "do_user_addr_fault", "handle_mm_fault",
    "__handle_mm_fault",  "handle_pte_fault", "do_anonymous_page",  "do_page_fault",
    "__do_page_fault",    "page_fault",       "do_mem_abort",       "do_translation_fault"};
constexpr std::array<std::string_view, 8> kReleases = {
    "__x64_sys_munmap",    "__arm64_sys_munmap", "__vm_munmap", "do_vmi_munmap",
    "do_vmi_align_munmap", "__do_munmap",        "do_madvise",  "unmap_page_range"};

std::string FileName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos || path.starts_with('[') ? path : path.substr(slash + 1);
}

// What is counted of one function of one task.
struct Counts {
  uint64_t samples = 0;
  uint64_t faults = 0;
  uint64_t releases = 0;
  std::map<std::string, uint64_t> kernel;  // by function
  std::map<std::pair<std::string, int32_t>, uint64_t> lines;
};

using FunctionKey = std::pair<std::string, std::string>;  // function, library

bool AnyKernel(const CodeSamples& code, const std::vector<uint32_t>& stack,
               bool (*is)(std::string_view)) {
  return std::any_of(stack.begin(), stack.end(), [&](uint32_t number) {
    const CodeFrame& frame = code.frames[number];
    return code.modules[frame.module] == evidence::kKernelModule && is(frame.function);
  });
}

void Count(const CodeSamples& code, uint32_t stack_number,
           std::map<FunctionKey, Counts>* functions) {
  const std::vector<uint32_t>& stack = code.stacks[stack_number];
  const CodeFrame& leaf = code.frames[stack[SelfOf(code, stack)]];
  Counts& counts = (*functions)[{leaf.function, FileName(code.modules[leaf.module])}];
  ++counts.samples;
  const CodeFrame& innermost = code.frames[stack.front()];
  if (code.modules[innermost.module] == evidence::kKernelModule) {
    ++counts.kernel[innermost.function];
    counts.faults += AnyKernel(code, stack, IsPageFault) ? 1 : 0;
    counts.releases += AnyKernel(code, stack, IsRelease) ? 1 : 0;
  }
  if (leaf.line > 0) ++counts.lines[{leaf.file, leaf.line}];
}

HotFunction FunctionOf(const FunctionKey& key, const Counts& counts) {
  HotFunction function{.function = key.first, .library = key.second, .samples = counts.samples};
  uint64_t most = 0;
  for (const auto& [name, samples] : counts.kernel) {
    function.kernel_samples += samples;
    if (samples > most && !name.empty()) {
      most = samples;
      function.kernel_function = name;
    }
  }
  function.waiting = IsWaitingCode(key.first, key.second);
  for (const auto& [place, samples] : counts.lines) {
    function.lines.push_back({place.first, place.second, samples});
  }
  std::stable_sort(function.lines.begin(), function.lines.end(),
                   [](const HotLine& a, const HotLine& b) { return a.samples > b.samples; });
  if (function.lines.size() > HotCode::kLinesMax) function.lines.resize(HotCode::kLinesMax);
  return function;
}

void Fill(const std::map<FunctionKey, Counts>& functions, HotTask* task) {
  for (const auto& [key, counts] : functions) {
    task->functions.push_back(FunctionOf(key, counts));
    task->samples += counts.samples;
    task->fault_samples += counts.faults;
    task->release_samples += counts.releases;
    if (task->functions.back().waiting) task->waiting_samples += counts.samples;
  }
  std::stable_sort(
      task->functions.begin(), task->functions.end(),
      [](const HotFunction& a, const HotFunction& b) { return a.samples > b.samples; });
}

// Most samples first. A key: where, domain, name.
template <class Key>
std::vector<HotTask> TasksOf(const std::map<Key, std::map<FunctionKey, Counts>>& counted) {
  std::vector<HotTask> tasks;
  for (const auto& [key, functions] : counted) {
    HotTask& task = tasks.emplace_back();
    std::tie(task.where, task.domain, task.name) = key;
    Fill(functions, &task);
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const HotTask& a, const HotTask& b) { return a.samples > b.samples; });
  return tasks;
}

SampledFrame FrameOf(const CodeSamples& code, const CodeFrame& frame) {
  const std::string& module = code.modules[frame.module];
  return {.kind = module == evidence::kKernelModule ? SampledFrame::Kind::kKernel
                                                    : SampledFrame::Kind::kFunction,
          .name = FrameName(code, frame),
          .file = frame.line > 0 ? frame.file : module,
          .line = frame.line};
}

}  // namespace

ThreadKey KeyOf(uint32_t node, const CodeSamples& code, const evidence::CodeThread& thread) {
  const evidence::CodeProcess& process = code.processes[thread.process];
  return {ProcessKey{node, static_cast<uint64_t>(process.pid_namespace_inode), process.own_pid,
                     process.start_ticks},
          thread.own_tid != 0 ? thread.own_tid : thread.tid};
}

size_t SelfOf(const CodeSamples& code, const std::vector<uint32_t>& stack) {
  for (size_t i = 0; i < stack.size(); ++i) {
    if (code.modules[code.frames[stack[i]].module] != evidence::kKernelModule) return i;
  }
  return 0;
}

std::string FrameName(const CodeSamples& code, const CodeFrame& frame) {
  if (!frame.function.empty()) return frame.function;
  std::string library = FileName(code.modules[frame.module]);
  return library.starts_with('[') ? library : "[" + library + "]";
}

Share ShareOf(uint64_t part, uint64_t whole) {
  if (whole == 0) return {0, 0, 1};
  const auto n = static_cast<double>(whole);
  const double p = static_cast<double>(part) / n;
  const double z2 = kZ95 * kZ95;
  const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kZ95 / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {p, std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

bool IsWaitingCode(std::string_view function, std::string_view library) {
  for (const std::string_view one : kWaitingLibraries) {
    if (library.starts_with(one)) return true;
  }
  for (const std::string_view part : kWaitingParts) {
    if (function.find(part) != std::string_view::npos) return true;
  }
  function.remove_prefix(std::min(function.find_first_not_of('_'), function.size()));
  return std::find(kWaitingFunctions.begin(), kWaitingFunctions.end(), function) !=
         kWaitingFunctions.end();
}

bool IsPageFault(std::string_view kernel_function) {
  return std::find(kPageFaults.begin(), kPageFaults.end(), kernel_function) != kPageFaults.end();
}

bool IsRelease(std::string_view kernel_function) {
  return std::find(kReleases.begin(), kReleases.end(), kernel_function) != kReleases.end();
}

HotSink::HotSink(std::vector<HotInput> inputs) : inputs_(std::move(inputs)) {
  for (const HotInput& input : inputs_) {
    software_.Add({input.node, &input.code, input.begin_ns, input.end_ns});
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const CodeSamples& code = inputs_[i].code;
    for (const evidence::CodeSample& sample : code.samples) {
      if (!inputs_[i].Counts(sample)) continue;
      const evidence::CodeThread& thread = code.threads[sample.thread];
      Thread& known = threads_[KeyOf(inputs_[i].node, code, thread)];
      known.input = i;
      known.process = code.processes[thread.process].name;
      known.name = thread.name;
      known.samples.push_back({.at_ns = sample.at_ns, .stack = sample.stack, .tasks = {}});
    }
  }
  for (auto& [key, thread] : threads_) {
    std::stable_sort(thread.samples.begin(), thread.samples.end(),
                     [](const Placed& a, const Placed& b) { return a.at_ns < b.at_ns; });
    Process& process = processes_[key.process];
    process.name = thread.process;
    for (Placed& sample : thread.samples) process.samples.emplace_back(&thread, &sample);
  }
  for (auto& [key, process] : processes_) {
    std::stable_sort(
        process.samples.begin(), process.samples.end(),
        [](const auto& a, const auto& b) { return a.second->at_ns < b.second->at_ns; });
  }
}

void HotSink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = text;
}

void HotSink::OnTrack(const timeline::Track& track) {
  software_.OnTrack(track);
  const auto process = processes_.find(track.process);
  if (process == processes_.end()) return;
  if (track.kind == timeline::TrackKind::kProcess) process->second.name = track.name;
  if (track.kind != timeline::TrackKind::kThread) return;
  if (by_track_.size() <= track.id) by_track_.resize(track.id + 1);
  OfTrack& of = by_track_[track.id];
  of.process = &process->second;
  const auto found = threads_.find(ThreadKey{track.process, track.tid});
  if (found == threads_.end()) return;
  found->second.name = track.name;
  of.thread = &found->second;
}

// Of a task that one thread had open: what other threads of its process ran meanwhile.
void HotSink::PlaceMeanwhile(const timeline::Span& span, const OfTrack& of) {
  auto& samples = of.process->samples;
  auto at = std::lower_bound(
      samples.begin(), samples.end(), span.node_begin.ns,
      [](const auto& sample, int64_t begin_ns) { return sample.second->at_ns < begin_ns; });
  for (; at != samples.end() && at->second->at_ns < span.node_end.ns; ++at) {
    if (at->first == of.thread) continue;
    Placed& sample = *at->second;
    const bool first = sample.other == timeline::kNoTrack;
    sample.several |= !first && sample.other != span.track;
    if (!first && (sample.several || sample.meanwhile.depth >= span.depth)) continue;
    sample.other = span.track;
    sample.meanwhile = {span.depth, span.category, span.name};
  }
}

// Spans end before those that they lie in, so that they mostly come from the innermost on; of late
// ones the depth tells.
void HotSink::OnSpanEnd(const timeline::Span& span) {
  software_.OnSpanEnd(span);
  if (span.track >= by_track_.size() || by_track_[span.track].process == nullptr) return;
  PlaceMeanwhile(span, by_track_[span.track]);
  if (by_track_[span.track].thread == nullptr) return;
  Thread& thread = *by_track_[span.track].thread;
  thread.has_tasks = true;
  auto at = std::lower_bound(
      thread.samples.begin(), thread.samples.end(), span.node_begin.ns,
      [](const Placed& sample, int64_t begin_ns) { return sample.at_ns < begin_ns; });
  for (; at != thread.samples.end() && at->at_ns < span.node_end.ns; ++at) {
    auto place = at->tasks.end();
    while (place != at->tasks.begin() && std::prev(place)->depth < span.depth) --place;
    at->tasks.insert(place, {span.depth, span.category, span.name});
  }
}

HotNode HotSink::NodeOf(size_t input) const {
  const HotInput& from = inputs_[input];
  HotNode node{.node = from.node,
               .period_ns = from.code.period_ns,
               .kernel = from.code.kernel,
               .complete = from.code.ended,
               .cost_ns = from.code.cost_ns,
               .notes = from.code.notes};
  for (const auto& [key, thread] : threads_) {
    if (thread.input != input) continue;
    ++node.threads;
    node.samples += thread.samples.size();
  }
  for (const evidence::CodeLoss& loss : from.code.losses) {
    if (loss.at_ns >= from.begin_ns) node.lost += loss.count;
  }
  for (const evidence::CodeThreadTime& time : from.code.thread_times) {
    node.on_cpu_ns += time.on_cpu_ns;
  }
  return node;
}

HotSink::TaskKey HotSink::TaskKeyOf(const Task& task,
                                    std::map<timeline::TextId, std::string>* patterns) const {
  const auto [pattern, added] = patterns->try_emplace(task.name);
  if (added) pattern->second = NamePattern(texts_[task.name]);
  return {HotTask::Where::kTask, texts_[task.category], pattern->second};
}

HotCode HotSink::Take() const {
  HotCode hot;
  for (size_t i = 0; i < inputs_.size(); ++i) hot.nodes.push_back(NodeOf(i));
  std::map<TaskKey, std::map<FunctionKey, Counts>> tasks, helpers;
  std::map<timeline::TextId, std::string> patterns;
  for (const auto& [key, thread] : threads_) {
    const auto outside =
        thread.has_tasks ? HotTask::Where::kOutside : HotTask::Where::kWithoutTasks;
    for (const Placed& sample : thread.samples) {
      TaskKey task{outside, "", ""};
      if (!sample.tasks.empty()) task = TaskKeyOf(sample.tasks.front(), &patterns);
      const CodeSamples& code = inputs_[thread.input].code;
      Count(code, sample.stack, &tasks[task]);
      // A main thread with tasks helps nobody: between two of them it runs the program itself.
      const bool leads = thread.has_tasks && key.tid == key.process.pid;
      if (leads || !sample.tasks.empty()) continue;
      TaskKey meanwhile{HotTask::Where::kOutside, "", ""};
      if (sample.other != timeline::kNoTrack && !sample.several) {
        meanwhile = TaskKeyOf(sample.meanwhile, &patterns);
      }
      Count(code, sample.stack, &helpers[meanwhile]);
    }
  }
  hot.software = software_.Take(texts_);
  hot.tasks = TasksOf(tasks);
  hot.helpers = TasksOf(helpers);
  for (const HotTask& task : hot.tasks) hot.samples += task.samples;
  return hot;
}

SampledStacks HotSink::TakeStacks() const {
  SampledStacks all;
  std::map<SampledFrame, uint32_t> known;
  const auto number_of = [&](SampledFrame frame) {
    const auto [found, added] = known.try_emplace(frame, static_cast<uint32_t>(all.frames.size()));
    if (added) all.frames.push_back(std::move(frame));
    return found->second;
  };
  for (const auto& [key, thread] : threads_) {
    const CodeSamples& code = inputs_[thread.input].code;
    const auto process = processes_.find(key.process);
    SampledThread& made = all.threads.emplace_back();
    made.process = process != processes_.end() ? process->second.name : thread.process;
    made.thread = thread.name;
    made.period_ns = code.period_ns;
    for (const Placed& sample : thread.samples) {
      std::vector<uint32_t>& stack = made.samples.emplace_back();
      for (auto task = sample.tasks.rbegin(); task != sample.tasks.rend(); ++task) {
        stack.push_back(number_of({.kind = SampledFrame::Kind::kTask,
                                   .name = NamePattern(texts_[task->name]),
                                   .file = texts_[task->category]}));
      }
      const std::vector<uint32_t>& functions = code.stacks[sample.stack];
      for (auto frame = functions.rbegin(); frame != functions.rend(); ++frame) {
        stack.push_back(number_of(FrameOf(code, code.frames[*frame])));
      }
    }
  }
  return all;
}

}  // namespace syncline::analysis
