// SPDX-License-Identifier: Apache-2.0
// Made-up steps of a model that is cut in two: client and worker, whose critical path is known.
#ifndef SYNCLINE_ANALYSIS_WHY_TESTING_FAKE_CUT_H_
#define SYNCLINE_ANALYSIS_WHY_TESTING_FAKE_CUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "analysis/why/cut_model.h"

namespace syncline::analysis::why {

// What a step is made of.
struct CutTimings {
  int64_t forward_ns = 4'000'000;  // of the client
  int64_t way_ns = 1'000'000;      // of x
  int64_t remote_ns = 6'000'000;   // of the worker
  int64_t between_ns = 1'000'000;
};

// Of each step, ms: 0-4 the client computes and sends x, which is there at 5; until 11 the worker
// computes and sends y, which is there at 12; until 14 the client computes; then nothing.
class FakeCut {
 public:
  static constexpr int64_t kMs = 1'000'000;
  enum Name : NameId {
    kNone,
    kForward,
    kRemote,
    kBackward,
    kSendX,
    kReceiveX,
    kSendY,
    kReceiveY,
    kBatch
  };
  static constexpr int64_t kPlainStepNs = 15 * kMs;

  explicit FakeCut(size_t steps = 60, const CutTimings& timings = {}) : timings_(timings) {
    input_.names = {"", "forward", "remote", "backward", "x/_1", "x/_2", "y/_3", "y/_4", "batch"};
    input_.receives = {false, false, false, false, false, true, false, true, false};
    for (const char* task : {"/job:client/replica:0/task:0", "/job:worker/replica:0/task:0"}) {
      CutPartition& partition = input_.partitions.emplace_back();
      partition.task = task;
      partition.node = "n";
      partition.lanes.resize(2);  // operators; what comes from the network
      partition.covered = {{0, static_cast<int64_t>(steps + 1) * step_ns()}};
    }
    input_.edges = {{"x", 0, 1}, {"y", 1, 0}};
    for (size_t i = 0; i < steps; ++i) AddStep(static_cast<int64_t>(i));
    input_.partitions[0].steps[static_cast<int64_t>(steps)] = {
        static_cast<int64_t>(steps) * step_ns(), std::nullopt, 0};
  }

  CutInput& input() { return input_; }

  // One span of a lane.
  void Add(size_t partition, size_t lane, int64_t begin_ns, int64_t end_ns, NameId name,
           CutKind kind, uint16_t depth = 0) {
    input_.partitions[partition].lanes[lane].push_back(
        {begin_ns, end_ns, begin_ns, name, kind, depth});
  }

 private:
  int64_t step_ns() const {
    return timings_.forward_ns + timings_.way_ns + timings_.remote_ns + kMs + 2 * kMs +
           timings_.between_ns;
  }

  void AddStep(int64_t id) {
    const int64_t at = id * step_ns();
    const int64_t sent_x = at + timings_.forward_ns;
    const int64_t there_x = sent_x + timings_.way_ns;
    const int64_t sent_y = there_x + timings_.remote_ns;
    const int64_t there_y = sent_y + kMs;
    const int64_t end = there_y + 2 * kMs;
    input_.partitions[0].steps[id] = {at, end, 0};
    input_.partitions[1].steps[id] = {at, sent_y, 0};
    Add(0, 0, at, sent_x, kForward, CutKind::kOperator);
    Add(0, 0, sent_x, sent_x + 1000, kSendX, CutKind::kOperator);
    Add(0, 0, sent_x + 1000, sent_x + 2000, kReceiveY, CutKind::kAsked);
    Add(1, 0, at, at + 1000, kReceiveX, CutKind::kAsked);
    Receive(1, there_x, kReceiveX);
    Add(1, 0, there_x + 10, sent_y, kRemote, CutKind::kOperator);
    Add(1, 0, sent_y, sent_y + 1000, kSendY, CutKind::kOperator);
    Receive(0, there_y, kReceiveY);
    Add(0, 0, there_y + 10, end, kBackward, CutKind::kOperator);
    AddTransfer(id, 0, sent_x, there_x, at);
    AddTransfer(id, 1, sent_y, there_y, sent_x + 1000);
  }

  void Receive(size_t partition, int64_t at_ns, NameId name) {
    Add(partition, 1, at_ns, at_ns + 20, name, CutKind::kDone);
    Add(partition, 1, at_ns + 5, at_ns + 10, kNone, CutKind::kReady, 1);
  }

  void AddTransfer(int64_t step, size_t edge, int64_t sent_ns, int64_t received_ns,
                   int64_t posted_ns) {
    CutTransfer transfer;
    transfer.step = step;
    transfer.edge = edge;
    transfer.from = input_.edges[edge].from;
    transfer.to = input_.edges[edge].to;
    transfer.sent_ns = transfer.sent_recorded_ns = sent_ns;
    transfer.sending_ns = 1000;
    transfer.received_ns = transfer.received_recorded_ns = received_ns;
    transfer.posted_recorded_ns = posted_ns;
    transfer.clock_ns = 100;
    input_.transfers.push_back(transfer);
  }

  const CutTimings timings_;
  CutInput input_;
};

}  // namespace syncline::analysis::why

#endif  // SYNCLINE_ANALYSIS_WHY_TESTING_FAKE_CUT_H_
