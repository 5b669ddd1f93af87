// SPDX-License-Identifier: Apache-2.0
// How far the clocks of several profiles are apart, by the collectives that they show in common.
//
// Where everybody waits for everybody, a rank's kernel does not end before every other's has begun,
// whatever their clocks say; a rooted one binds only from or to its root, a transfer from its
// sender. Each gives a limit of the difference of two clocks, as a message does; the model made of
// them is clocksync's, for wall clocks whose rates may change at any time
// (BuildOptions::wall_clocks).
//
// What contradicts itself gives no model: files of two runs show the same groups and numbers. So do
// collectives that lie more than a second apart.
//
// Pure.
#ifndef SYNCLINE_COORDINATOR_MERGE_FILE_CLOCKS_H_
#define SYNCLINE_COORDINATOR_MERGE_FILE_CLOCKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clocksync/clock_model.h"
#include "coordinator/merge/file_collectives.h"

namespace syncline::merge {

// Of two hosts' wall clocks. ntpd slews by no more; what slews by more breaks it.
inline constexpr int64_t kFileRatePpb = 500'000;

struct ComparedClocks {
  std::unique_ptr<clocksync::ClockModel> model;  // nullptr: nothing tells, or it contradicts itself
  std::string contradiction;
  uint32_t reference = 0;  // a node
  int64_t zero_ns = 0;     // what its clock reads at timeline zero
  uint64_t binding = 0;    // collectives and transfers that say something of two nodes' clocks
};

struct FileNode {
  std::string name;
  int64_t begin_ns = 0;  // of its files, by its clock
};

// Files belong to `nodes`. Timeline zero is where the first of them begins.
ComparedClocks CompareClocks(const std::vector<FileNode>& nodes,
                             const std::vector<FileKernels>& files,
                             const MatchedCollectives& matched);

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_FILE_CLOCKS_H_
