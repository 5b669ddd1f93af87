// SPDX-License-Identifier: Apache-2.0
// The values of `syncline why` for jobs whose ranks compute on devices, and whose collectives are
// kernels there: what is given, and the answer.
//
// A rank that comes late to a collective spends little time in its kernel, and all others spend
// more: the device's own work is its step without exposed communication. Own work is that, or the
// program's own time where it is longer: a device that waits for other ranks does not show how slow
// its program is. Both are measured by the rank's own clock; how far two clocks are apart does not
// matter. The definitions: docs/findings.md.
// Thread-safety: plain values.
#ifndef SYNCLINE_ANALYSIS_WHY_DEVICE_MODEL_H_
#define SYNCLINE_ANALYSIS_WHY_DEVICE_MODEL_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/why/held_back.h"
#include "analysis/why/model.h"
#include "timeline/device_work.h"

namespace syncline::analysis::why {

// Below that many judged steps no rank is called late.
inline constexpr uint64_t kDeviceStepsMin = 5;

// What is known of a rank.
struct DeviceRank {
  int32_t rank = -1;
  std::string source;                                 // what it was read from: "rank3"
  int32_t world_size = -1;                            // as the rank says it; -1: it does not
  const timeline::ProcessDevices* devices = nullptr;  // outlives the call
  // By Syncline, and steps of its optimizer have names by which they can be paired
  // (device_steps.h); false: a profile that the job's own profiler wrote.
  bool recorded = false;
};

// Where a device's time goes. They add up to its step exactly.
enum class DevicePart : uint8_t {
  kComputing,
  kCopies,      // and nothing else ran
  kInput,       // idle: nothing was launched while the program waited for a batch of a DataLoader
  kLaunch,      // idle: nothing was launched, for any other reason
  kNotStarted,  // idle: launched, and not started
  kUnknown,     // idle: the launch is not in the profile
  kCommunication,  // kernels of collectives, and none that computes
};
inline constexpr size_t kDeviceParts = 7;
using DevicePartTable = std::array<int64_t, kDeviceParts>;  // ns, by DevicePart
const char* DevicePartName(DevicePart part);                // "waiting for a launch"
const char* DevicePartJsonName(DevicePart part);            // "launch"

struct DeviceRankSummary {
  int32_t rank = -1;
  std::string source;
  std::string device;
  DevicePartTable mean{};  // of a step; adds up to mean_step_ns
  int64_t mean_step_ns = 0;
  int64_t mean_own_ns = 0;      // own work
  int64_t mean_program_ns = 0;  // the program's step without waiting for the device
};

// A kernel of one name and size (grid and block), on one rank compared with the median of the
// others.
struct KernelDifference {
  std::string name;
  double own_count = 0;  // a step
  double others_count = 0;
  int64_t own_ns = 0;  // one of them, mean; 0: it has none
  int64_t others_ns = 0;
  int64_t excess_ns = 0;  // a step: kernels added up, also where they overlap
};

// How a rank's kernels differ from those of the others: what they take longer in all, a step.
struct KernelWork {
  int64_t longer_ns = 0;    // kernels that the others have as often, of the same name and size
  int64_t more_ns = 0;      // kernels that they have less often, or not at all
  double longer_part = 0;   // by how much of their time those of the same name and size are longer
  bool sizes_known = true;  // false: told apart by their names alone
  // Both add up to about what its kernels take longer than the others'. Not where each has kernels
  // of sizes of its own, as with batches of many lengths.
  bool is_comparable = true;
  std::vector<KernelDifference> kernels;  // the largest excess first

  bool is_more_work() const { return more_ns > longer_ns; }
};

struct DeviceCause {
  DevicePart part = DevicePart::kComputing;
  // Of the rank, less the others' median, a step. Input and launches: of the program's time,
  // because the devices of ranks that wait for others find their launches ready.
  MeanEstimate amount;
  int64_t own_ns = 0;              // of the rank itself, a step
  std::optional<KernelWork> work;  // kComputing
};

struct DeviceFinding {
  size_t index = 0;                 // of the rank, in DeviceAnswer::ranks
  MeanEstimate lead;                // own work, less the others' median
  uint64_t most_in = 0;             // steps in which no rank has more own work
  std::vector<DeviceCause> causes;  // the largest first
  // Where it takes longer for the same kernels: what held its device back more than the others'.
  std::vector<DeviceHeldBack> held_back;
  int64_t unexplained_ns = 0;  // of the lead, a step: what the causes leave
  // Its device waits so much longer for launches, a step, and its program's own time does not show
  // it: that is no cause; 0: not so.
  int64_t unseen_launch_ns = 0;
  int64_t cost_ns =
      0;  // a step: by how much the longest own work would be shorter without the lead
};

enum class DeviceVerdict : uint8_t {
  kNotJudged,  // one rank, or no collective
  kNobody,     // no rank is late
  kLate,       // `findings` name ranks
  kUndecided,  // too few steps, or they differ too much
};
const char* DeviceVerdictJsonName(DeviceVerdict verdict);  // "nobody"

// Why there is no answer. Stable: scripts read the names.
enum class DeviceRefusal : uint8_t {
  kNone,
  kNoDeviceWork,
  kNoSteps,          // without ProfilerStep# steps of two ranks cannot be paired
  kNoRank,           // which rank a file is of is not known
  kSeveralDevices,   // a rank computes on more than one
  kHostCollectives,  // Gloo's: waiting for a peer looks like waiting for the program
  kPeerToPeer,       // ranks of a pipeline do different work
  kRanksDisagree,    // no step has as many collectives on all ranks
};
const char* DeviceRefusalJsonName(DeviceRefusal refusal);  // "host_collectives"

struct DeviceAnswer {
  DeviceRefusal refusal = DeviceRefusal::kNone;
  std::string refusal_text;  // one line: what is wrong, and what would be needed
  bool recorded = false;     // by Syncline; false: from profiles
  bool incomplete = false;   // answered, but something is missing in what was given

  int32_t world_size = -1;               // ranks of the job, also of those not here; -1: not said
  uint64_t steps = 0;                    // judged
  uint64_t unpaired_steps = 0;           // that not all ranks have, or not with as many collectives
  int64_t mean_step_ns = 0;              // over ranks and steps
  std::vector<DeviceRankSummary> ranks;  // by rank
  DeviceVerdict verdict = DeviceVerdict::kNotJudged;
  bool collectives = false;              // the steps have any
  bool host_collectives = false;         // of one rank alone: they run on the host
  std::vector<DeviceFinding> findings;   // the largest lead first
  std::optional<DeviceFinding> closest;  // without findings: the rank with most own work
  // A step, where several are late: what all their leads cost together; else 0.
  int64_t joint_cost_ns = 0;
  // A step: what it costs that another rank has the most own work from step to step; 0: little.
  int64_t rotating_ns = 0;
  std::vector<DevicePart> everybody;  // that take >= 15 % of the step on every rank; by size
  std::vector<std::string> notes;     // what to know of the evidence, one line each
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_DEVICE_MODEL_H_
