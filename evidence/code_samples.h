// SPDX-License-Identifier: Apache-2.0
// Which code the recorded threads ran: samples of their stacks, one for each period of processor
// time that a thread used. The agent takes them (agent/code) and writes them as text
// (docs/recording-format.md, "nodes/NODE/evidence/code.txt"); this reads it back.
//
// All times are ns of the node's CLOCK_MONOTONIC, the clock of its traces. Frames and stacks are
// written once and referred to by number, by the order of their lines.
//
// Thread-safety: plain values, no state.
#ifndef SYNCLINE_EVIDENCE_CODE_SAMPLES_H_
#define SYNCLINE_EVIDENCE_CODE_SAMPLES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "evidence/software_events.h"

namespace syncline::evidence {

inline constexpr char kCodeFileName[] = "code.txt";  // in nodes/NODE/evidence
inline constexpr char kCodeHead[] = "syncline-code 1";
// What is no file has a name in brackets: that of the kernel, and of memory that code was written
// into at run time.
inline constexpr char kKernelModule[] = "[kernel]";
inline constexpr char kGeneratedModule[] = "[generated code]";
inline constexpr char kUnknownModule[] = "[unknown]";

struct CodeProcess {
  int32_t pid = 0;  // as the agent sees it
  uint64_t start_ticks = 0;
  int64_t pid_namespace_inode = 0;  // these two: as its control block is named
  int32_t own_pid = 0;
  uint32_t uid = 0;
  std::string name;  // its comm
};

struct CodeThread {
  uint32_t process = 0;  // index into CodeSamples::processes
  int32_t tid = 0;       // as the agent sees it
  int32_t own_tid = 0;   // as the process sees it; 0: unknown
  int64_t from_ns = 0;   // sampled from then on
  std::string name;      // its comm
};

// An address: so far into a file; of [kernel] and other memory the address itself.
struct CodeFrame {
  uint32_t module = 0;  // index into CodeSamples::modules
  uint64_t offset = 0;
  std::string function;  // empty: no symbol covers it
  std::string file;      // of the source; empty: no debug information
  int32_t line = 0;
};

struct CodeSample {
  uint32_t thread = 0;
  int64_t at_ns = 0;
  uint32_t stack = 0;
};

// Samples that the kernel could not hand over.
struct CodeLoss {
  uint32_t thread = 0;
  int64_t at_ns = 0;  // when it was found
  uint64_t count = 0;
};

// What a thread used while it was sampled, by the kernel's own count.
struct CodeThreadTime {
  uint32_t thread = 0;
  int64_t on_cpu_ns = 0;
};

struct CodeSamples {
  int64_t period_ns = 0;  // of processor time, between two samples of a thread
  bool kernel = false;    // also what the kernel did for it; else such moments have no sample
  std::vector<CodeProcess> processes;
  std::vector<CodeThread> threads;
  std::vector<std::string> modules;  // paths of files, as the processes see them, or kKernel...
  std::vector<CodeFrame> frames;
  std::vector<std::vector<uint32_t>> stacks;  // of frames, the innermost first; never empty
  std::vector<CodeSample> samples;
  std::vector<CodeLoss> losses;
  std::vector<CodeThreadTime> thread_times;
  SoftwareEvents software;
  int64_t cost_ns = -1;  // processor time of the agent while it sampled; -1: unknown
  std::vector<std::string> notes;
  bool ended = false;
  uint64_t damaged_lines = 0;
};

// InvalidArgument: no samples of a version that is known. Lines that are cut or damaged are left
// out and counted. What refers to something refers to what is there.
absl::StatusOr<CodeSamples> ParseCodeSamples(std::string_view text);

// Each appends one line.
void AppendCodeHead(int64_t period_ns, bool kernel, std::string* out);
void Append(const CodeProcess& process, std::string* out);
void Append(const CodeThread& thread, std::string* out);
void AppendModule(std::string_view module, std::string* out);
// Without what it is called: that is known only at the end.
void Append(const CodeFrame& frame, std::string* out);
void AppendStack(const std::vector<uint32_t>& frames, std::string* out);
void Append(const CodeSample& sample, std::string* out);
void Append(const CodeLoss& loss, std::string* out);
void Append(const CodeThreadTime& time, std::string* out);
// `frame` is called so.
struct CodeSymbol {
  uint32_t frame = 0;
  std::string function;
  std::string file;
  int32_t line = 0;
};
void Append(const CodeSymbol& symbol, std::string* out);
void AppendCost(int64_t cost_ns, std::string* out);

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_CODE_SAMPLES_H_
