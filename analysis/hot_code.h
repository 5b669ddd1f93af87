// SPDX-License-Identifier: Apache-2.0
// Which code ran under each task: samples of the threads' stacks (evidence/code_samples.h), each
// counted for the innermost task that was open on its thread at its time.
//
// A sample stands for one period of processor time. A function's self time is what was sampled
// while it was the innermost function of the program; what the kernel did for it in a call or a
// page fault is counted for it, and also apart. Of the functions above it nothing is said: most
// libraries are built without what it takes to know them.
#ifndef SYNCLINE_ANALYSIS_HOT_CODE_H_
#define SYNCLINE_ANALYSIS_HOT_CODE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/software_events.h"
#include "common/identity.h"
#include "evidence/code_samples.h"
#include "timeline/sink.h"

namespace syncline::analysis {

struct HotLine {
  std::string file;
  int32_t line = 0;
  uint64_t samples = 0;
};

struct HotFunction {
  std::string function;  // empty: no symbol covers it
  std::string library;   // the file's name without its directory, or in brackets what is no file
  uint64_t samples = 0;
  uint64_t kernel_samples = 0;  // of them: while the kernel worked for it
  std::string kernel_function;  // where most of these were; empty: not known
  bool waiting = false;         // it only waits (IsWaitingCode)
  std::vector<HotLine> lines;   // of the source, where known; most samples first, kLinesMax
};

struct HotTask {
  using Where = TaskWhere;
  Where where = Where::kTask;
  std::string domain;
  std::string name;  // numbers in it shown as "#"
  uint64_t samples = 0;
  uint64_t waiting_samples = 0;
  uint64_t fault_samples = 0;          // in a page fault (IsPageFault)
  uint64_t release_samples = 0;        // giving memory back to the system (IsRelease)
  std::vector<HotFunction> functions;  // most samples first
};

// Of a node that was to be sampled.
struct HotNode {
  uint32_t node = 0;  // index into Report::nodes
  int64_t period_ns = 0;
  bool kernel = false;    // also what the kernel did; else such moments have no sample
  bool complete = false;  // the agent has ended it in good order
  uint64_t threads = 0;   // that have samples
  uint64_t samples = 0;   // in the window
  uint64_t lost = 0;
  int64_t on_cpu_ns = 0;  // of all threads while they were sampled, by the kernel's count
  int64_t cost_ns = -1;   // processor time that the agent took for it; -1: unknown
  std::vector<std::string> notes;
};

struct HotCode {
  static constexpr size_t kLinesMax = 5;
  std::vector<HotNode> nodes;
  std::vector<HotTask> tasks;  // most samples first
  // Once more the samples with no task open on their own thread, by what their process did
  // meanwhile: the innermost task of the one thread of it that had any open. kOutside: no thread
  // had, or several.
  std::vector<HotTask> helpers;
  uint64_t samples = 0;
  SoftwareReport software;
};

// The part of `whole`, with the interval that holds the true one in 19 of 20 cases (Wilson's), as
// far as samples are independent of what ran.
struct Share {
  double est = 0;
  double lo = 0;
  double hi = 0;
};
Share ShareOf(uint64_t part, uint64_t whole);

// Whether what runs there only waits for other threads or messages: by a list
// (docs/hot-code.md).
bool IsWaitingCode(std::string_view function, std::string_view library);

// Whether a function of the kernel is a part of each page fault, or of each call that gives memory
// back (munmap, madvise). By names of Linux 4.19 to 6.18, x86-64 and 64-bit ARM.
bool IsPageFault(std::string_view kernel_function);
bool IsRelease(std::string_view kernel_function);

// As the timeline's tracks know the thread.
ThreadKey KeyOf(uint32_t node, const evidence::CodeSamples& code,
                const evidence::CodeThread& thread);

// The place in `stack` of the innermost frame of the program, behind which the kernel works for it;
// the kernel's own where there is no other.
size_t SelfOf(const evidence::CodeSamples& code, const std::vector<uint32_t>& stack);

// Its function; of no symbol its library, in brackets.
std::string FrameName(const evidence::CodeSamples& code, const evidence::CodeFrame& frame);

// One node's samples, and the part of them that counts.
struct HotInput {
  uint32_t node = 0;
  evidence::CodeSamples code;
  int64_t begin_ns = 0;  // of the node's trace clock
  int64_t end_ns = 0;

  bool Counts(const evidence::CodeSample& sample) const {
    return begin_ns <= sample.at_ns && sample.at_ns < end_ns;
  }
};

// One thread's samples as stacks, for a flame graph: the tasks that were open, then the functions.
struct SampledThread {
  std::string process;  // as its track is called
  std::string thread;
  int64_t period_ns = 0;                       // of processor time: what a sample stands for
  std::vector<std::vector<uint32_t>> samples;  // in order of time; of frames, the outermost first
};
struct SampledFrame {
  enum class Kind : uint8_t { kTask, kFunction, kKernel };
  Kind kind = Kind::kTask;
  std::string name;  // of tasks: numbers in it shown as "#"; of no symbol: the library in brackets
  std::string file;  // of the source, else the library's path; of tasks: the domain
  int32_t line = 0;  // 0: not known
  friend auto operator<=>(const SampledFrame&, const SampledFrame&) = default;
};
struct SampledStacks {
  std::vector<SampledFrame> frames;
  std::vector<SampledThread> threads;
};

// Memory: all samples, with the tasks that were open. Not copied: it points into itself.
class HotSink final : public timeline::SpanSink {
 public:
  explicit HotSink(std::vector<HotInput> inputs);
  HotSink(const HotSink&) = delete;
  HotSink& operator=(const HotSink&) = delete;
  HotSink(HotSink&&) = default;  // what maps and vectors hold stays where it is

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanEnd(const timeline::Span& span) override;

  HotCode Take() const;
  SampledStacks TakeStacks() const;

 private:
  struct Task {
    uint16_t depth = 0;
    timeline::TextId category = timeline::kNoText;
    timeline::TextId name = timeline::kNoText;
  };
  struct Placed {
    int64_t at_ns = 0;
    uint32_t stack = 0;
    std::vector<Task> tasks;  // that were open, the innermost first
    // The innermost task of the other thread of the process that had one open.
    timeline::TrackId other = timeline::kNoTrack;
    bool several = false;  // several others had
    Task meanwhile;
  };
  struct Thread {
    size_t input = 0;
    std::string process;
    std::string name;
    bool has_tasks = false;
    std::vector<Placed> samples;  // by time
  };
  struct Process {
    std::string name;  // as its track is called
    // Of all its threads, by time.
    std::vector<std::pair<const Thread*, Placed*>> samples;
  };
  struct OfTrack {
    Thread* thread = nullptr;    // nullptr: not sampled
    Process* process = nullptr;  // nullptr: none of its threads is
  };
  using TaskKey = std::tuple<HotTask::Where, std::string, std::string>;

  HotNode NodeOf(size_t input) const;
  TaskKey TaskKeyOf(const Task& task, std::map<timeline::TextId, std::string>* patterns) const;
  static void PlaceMeanwhile(const timeline::Span& span, const OfTrack& of);

  std::vector<HotInput> inputs_;
  std::map<ThreadKey, Thread> threads_;
  std::map<ProcessKey, Process> processes_;
  std::vector<OfTrack> by_track_;
  std::vector<std::string> texts_{""};
  SoftwarePlaces software_;
};

}  // namespace syncline::analysis

#endif  // SYNCLINE_ANALYSIS_HOT_CODE_H_
