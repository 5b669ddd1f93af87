// SPDX-License-Identifier: Apache-2.0
// One of two recordings of a job on devices that are compared: times of its judged steps, by rank
// and kernel. Pure.
#ifndef SYNCLINE_ANALYSIS_WHY_DEVICE_SIDE_H_
#define SYNCLINE_ANALYSIS_WHY_DEVICE_SIDE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/why/device_model.h"

namespace syncline::analysis::why {

// What tells kernels apart: grid and block stand for their sizes ("" of a kernel without).
struct KernelName {
  std::string name;
  std::string size;
  auto operator<=>(const KernelName&) const = default;
};

// Series have one value a judged step.
struct DeviceSide {
  struct Rank {
    int32_t rank = -1;
    std::vector<DevicePartTable> tables;  // each adds up to the step
    // Own work, as the device shows it: the step without exposed communication. A program's time is
    // no part of it, which a profile may not show to be waiting.
    std::vector<int64_t> own_ns;
  };
  // Launched in the judged steps, of all ranks.
  struct Kernel {
    std::vector<int64_t> ns;
    uint64_t count = 0;
  };

  DeviceRefusal refusal = DeviceRefusal::kNone;
  std::string refusal_text;
  bool incomplete = false;
  std::optional<uint64_t> lost_events = 0;  // nullopt: lost, but not counted
  std::string job;
  int64_t window_ns = 0;
  std::vector<std::string> notes;  // what to know of the evidence, one line each
  int32_t world_size = -1;         // ranks of the job, also of those not here; -1: not said
  uint64_t steps = 0;              // judged: of the class with the most time
  uint64_t left_out = 0;           // of other classes, and those that not all ranks have
  // Collectives run on the host (Gloo): waiting for another rank looks like waiting for the
  // program.
  bool host_collectives = false;
  uint64_t collectives = 0;  // kernels of collectives in each: what a class is
  std::vector<Rank> ranks;   // by rank
  std::map<KernelName, Kernel> kernels;
};

DeviceSide DeviceSideOf(std::span<const DeviceRank> ranks);

// Several recordings as one: their steps one after the other. At least one; none is refused, and
// all have the same ranks.
DeviceSide Pooled(std::span<const DeviceSide> sides);

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_DEVICE_SIDE_H_
