// SPDX-License-Identifier: Apache-2.0
// What the kernel did to the recorded threads: page faults, switches away from a processor, and
// changes of processor, each with its time. The agent takes them beside the code samples
// (agent/code) and writes them into the same file (docs/recording-format.md,
// "nodes/NODE/evidence/code.txt").
//
// Thread-safety: plain values, no state.
#ifndef SYNCLINE_EVIDENCE_SOFTWARE_EVENTS_H_
#define SYNCLINE_EVIDENCE_SOFTWARE_EVENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syncline::evidence {

class Words;

enum class SoftwareKind : uint8_t {
  kMinorFault,  // a page was mapped, nothing was read for it
  kMajorFault,  // a page was read from storage
  kBlocked,     // it left the processor because it waited for something
  kPreempted,   // it could have run on, or gave its turn away (sched_yield)
  kMoved,       // it began to run on another processor than it had left
};
inline constexpr size_t kSoftwareKinds = 5;

struct SoftwareEvent {
  uint32_t thread = 0;  // index into CodeSamples::threads
  int64_t at_ns = 0;    // of the node's CLOCK_MONOTONIC
  SoftwareKind kind = SoftwareKind::kMinorFault;
  uint64_t count = 0;   // all of its kind since the one before
  int64_t away_ns = 0;  // of a switch, until the thread ran again; 0: not seen
};

// Records of a thread that the kernel could not hand over, found then: switches, mostly.
struct SoftwareLoss {
  uint32_t thread = 0;
  int64_t at_ns = 0;
  uint64_t count = 0;
};

// The kernel's own counts of a thread (/proc), from when it was found until the window's end.
struct SoftwareTotals {
  uint32_t thread = 0;
  uint64_t minor_faults = 0;
  uint64_t major_faults = 0;
  uint64_t blocked = 0;
  uint64_t preempted = 0;
};

// How much of the window they were watched in, and what that cost the threads by the agent's
// measure of what one costs.
struct SoftwareWatched {
  int64_t watched_ns = 0;
  int64_t all_ns = 0;
  int64_t cost_ns = 0;
  int64_t until_ns = 0;  // they were watched until then, of the node's CLOCK_MONOTONIC
};

struct SoftwareEvents {
  bool known = false;   // they were asked for, and the kernel allowed it
  bool kernel = false;  // faults in the kernel's own work for the thread, too
  std::vector<SoftwareEvent> events;
  std::vector<SoftwareLoss> losses;
  std::vector<SoftwareTotals> totals;
  std::optional<SoftwareWatched> watched;  // nullopt: the agent did not end in good order
};

// A line of the file whose first word was `kind`. nullopt: it is none of these; false: it is
// damaged. `threads`: how many there are.
std::optional<bool> TakeSoftwareLine(char kind, size_t threads, Words* words,
                                     SoftwareEvents* events);

// Each appends one line.
void AppendSoftwareHead(bool kernel, std::string* out);
void Append(const SoftwareEvent& event, std::string* out);
void Append(const SoftwareLoss& loss, std::string* out);
void Append(const SoftwareTotals& totals, std::string* out);
void Append(const SoftwareWatched& watched, std::string* out);

}  // namespace syncline::evidence

#endif  // SYNCLINE_EVIDENCE_SOFTWARE_EVENTS_H_
