// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_explain.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "analysis/why/cut_path.h"
#include "analysis/why/cut_replay.h"
#include "analysis/why/cut_steps.h"
#include "analysis/why/cut_times.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kOperatorsMax = 20;

// In how much of the given intervals, apart and sorted in each, two of them or more are at once.
int64_t OverlapOf(const std::vector<std::vector<std::pair<int64_t, int64_t>>>& all) {
  std::vector<std::pair<int64_t, int>> turns;
  for (const auto& intervals : all) {
    for (const auto& [begin, end] : intervals) {
      turns.emplace_back(begin, 1);
      turns.emplace_back(end, -1);
    }
  }
  std::sort(turns.begin(), turns.end());
  int open = 0;
  int64_t since_ns = 0;
  int64_t sum_ns = 0;
  for (const auto& [at_ns, turn] : turns) {
    if (open >= 2) sum_ns += at_ns - since_ns;
    open += turn;
    since_ns = at_ns;
  }
  return sum_ns;
}

class Explainer {
 public:
  explicit Explainer(const CutInput& input) : input_(input), paths_(input) {}

  CutAnswer Explain() {
    const CutSteps found = CutStepsOf(input_, paths_);
    answer_.refusal = found.refusal;
    answer_.refusal_text = found.refusal_text;
    answer_.client = found.client;
    answer_.steps = found.judged.size();
    answer_.other_steps = found.other;
    answer_.overlapping_steps = found.overlapping;
    answer_.broken_steps = found.broken;
    if (found.refusal != CutRefusal::kNone) return std::move(answer_);
    steps_ = found.judged;
    Summarise();
    return std::move(answer_);
  }

 private:
  MeanEstimate Estimate(std::span<const int64_t> values) const {
    return Bootstrap(values, BlockOf(steps_.size()));
  }

  struct EdgeFacts {
    int64_t sender_busy_ns = 0;
    int64_t sending_ns = 0;
    int64_t asked_ns = 0;
    int64_t clock_most_ns = 0;
    uint64_t steps = 0;
    std::optional<size_t> last_step;
    std::vector<uint64_t> bytes;
    bool sized = true;
  };

  // Of the path, over all steps.
  struct PartitionFacts {
    int64_t in_operators_ns = 0;
    int64_t idle_ns = 0;
    int64_t sending_busy_ns = 0;
  };

  void Summarise() {
    const CutTimes times = CutTimesOf(input_, steps_);
    answer_.step = Estimate(times.steps);
    answer_.tensors = Estimate(times.tensors);
    answer_.between = Estimate(times.between);
    AddFacts();
    AddPartitions(times);
    AddEdges(times);
    AddSavings();
    AddOperators(times.operators);
    for (const CutStep& step : steps_) AddPath(step.path);
  }

  static bool IsNoWork(const CutPathSpan& span) {
    return !span.from.has_value() && span.name.empty();
  }

  void AddPath(const CutPath& path) {
    const size_t first = answer_.path.size();
    int64_t at_ns = path.end_ns;
    for (const CutPiece& piece : path.pieces) {
      CutPathSpan span;
      span.end_ns = at_ns;
      span.begin_ns = at_ns -= piece.duration_ns;
      span.partition = piece.partition;
      if (IsTensor(piece)) {
        const CutTransfer& transfer = input_.transfers[piece.transfer];
        span.from = transfer.from;
        span.name = input_.edges[transfer.edge].tensor;
      } else if (piece.kind == CutPiece::Kind::kOperator) {
        span.name = input_.names[piece.name];
      }
      // The executor and idle time, which follow each other in slivers, are one.
      if (answer_.path.size() > first && IsNoWork(span) && IsNoWork(answer_.path.back()) &&
          answer_.path.back().partition == span.partition) {
        answer_.path.back().begin_ns = span.begin_ns;
      } else {
        answer_.path.push_back(std::move(span));
      }
    }
    std::reverse(answer_.path.begin() + static_cast<ptrdiff_t>(first), answer_.path.end());
  }

  void AddFacts() {
    partitions_.resize(input_.partitions.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (const CutPiece& piece : steps_[i].path.pieces) {
        if (IsTensor(piece)) {
          AddTensor(piece, i);
        } else if (piece.kind == CutPiece::Kind::kIdle) {
          partitions_[piece.partition].idle_ns += piece.duration_ns;
        } else if (piece.kind == CutPiece::Kind::kOperator) {
          partitions_[piece.partition].in_operators_ns += piece.duration_ns;
        }
      }
    }
  }

  void AddPartitions(const CutTimes& times) {
    const auto count = static_cast<int64_t>(steps_.size());
    std::vector<int64_t> busy(input_.partitions.size());
    int64_t overlap_ns = 0;
    for (const CutStep& step : steps_) overlap_ns += AddBusy(step, &busy);
    answer_.overlap_ns = overlap_ns / count;
    for (size_t p = 0; p < input_.partitions.size(); ++p) {
      CutPartitionSummary& summary = answer_.partitions.emplace_back();
      summary.task = input_.partitions[p].task;
      summary.node = input_.partitions[p].node;
      const auto found = times.partitions.find(p);
      if (found != times.partitions.end()) summary.path = Estimate(found->second);
      summary.operators_ns = partitions_[p].in_operators_ns / count;
      summary.idle_ns = partitions_[p].idle_ns / count;
      summary.busy_ns = busy[p] / count;
      summary.sending_busy_ns = partitions_[p].sending_busy_ns / count;
    }
  }

  void AddEdges(const CutTimes& times) {
    answer_.clock_ns = 0;
    for (const auto& [edge, values] : times.edges) {
      const int64_t most_ns = edges_[edge].clock_most_ns;
      if (most_ns == INT64_MAX) answer_.clock_ns.reset();
      if (answer_.clock_ns.has_value()) answer_.clock_ns = std::max(*answer_.clock_ns, most_ns);
      AddEdge(edge, values, times.clocks.at(edge));
    }
    const auto more = [](const auto& a, const auto& b) { return a.path.est_ns > b.path.est_ns; };
    std::stable_sort(answer_.edges.begin(), answer_.edges.end(), more);
  }

  // Adds, by partition, how long each worked in the step; how long two of them or more did at once.
  int64_t AddBusy(const CutStep& step, std::vector<int64_t>* busy) const {
    std::vector<std::vector<std::pair<int64_t, int64_t>>> at_work;
    for (const size_t p : step.partitions) {
      const CutStepTimes& times = input_.partitions[p].steps.at(step.id);
      at_work.push_back(paths_.Busy(p, times.begin_ns, *times.end_ns));
      for (const auto& [begin, end] : at_work.back()) (*busy)[p] += end - begin;
    }
    return OverlapOf(at_work);
  }

  // In how much of the tensor's way its sender worked.
  int64_t SenderBusyNs(const CutTransfer& transfer) const {
    int64_t sum_ns = 0;
    for (const auto& [begin, end] :
         paths_.Busy(transfer.from, WayOf(transfer).begin_ns, transfer.received_ns)) {
      sum_ns += end - begin;
    }
    return sum_ns;
  }

  void AddTensor(const CutPiece& piece, size_t step) {
    const CutTransfer& transfer = input_.transfers[piece.transfer];
    EdgeFacts& facts = edges_[transfer.edge];
    const int64_t busy_ns = SenderBusyNs(transfer);
    partitions_[transfer.from].sending_busy_ns += busy_ns;
    facts.sender_busy_ns += busy_ns;
    if (piece.kind == CutPiece::Kind::kAsked) {
      // On the receiver's clock alone; that it had been sent by then is by both.
      const int64_t since_ns = WayOf(transfer).begin_ns - transfer.sent_ns;
      if (since_ns > transfer.clock_ns.value_or(INT64_MAX)) facts.asked_ns += piece.duration_ns;
    } else {
      facts.sending_ns += std::min(transfer.sending_ns, std::max<int64_t>(piece.duration_ns, 0));
    }
    facts.clock_most_ns = std::max(facts.clock_most_ns, transfer.clock_ns.value_or(INT64_MAX));
    if (facts.last_step != step) ++facts.steps;
    facts.last_step = step;
    facts.sized = facts.sized && transfer.bytes.has_value();
    if (transfer.bytes.has_value()) facts.bytes.push_back(*transfer.bytes);
  }

  void AddEdge(size_t edge, std::span<const int64_t> values, std::optional<int64_t> clock_ns) {
    const auto count = static_cast<int64_t>(steps_.size());
    EdgeFacts& facts = edges_[edge];
    CutEdgeSummary& summary = answer_.edges.emplace_back();
    summary.edge = input_.edges[edge];
    summary.steps = facts.steps;
    summary.path = Estimate(values);
    summary.sending_ns = facts.sending_ns / count;
    summary.sender_busy_ns = facts.sender_busy_ns / count;
    summary.asked_ns = facts.asked_ns / count;
    if (clock_ns.has_value()) summary.clock_ns = *clock_ns / count;
    if (!facts.sized || facts.bytes.empty()) return;
    const auto middle = facts.bytes.begin() + static_cast<ptrdiff_t>(facts.bytes.size() / 2);
    std::nth_element(facts.bytes.begin(), middle, facts.bytes.end());
    summary.bytes = *middle;
  }

  // By replay of each step.
  void AddSavings() {
    std::map<int64_t, std::vector<size_t>> transfers;
    for (size_t i = 0; i < input_.transfers.size(); ++i) {
      transfers[input_.transfers[i].step].push_back(i);
    }
    std::vector<CutReplay> replays;
    std::vector<int64_t> ends;
    for (const CutStep& step : steps_) {
      const CutReplay& replay = replays.emplace_back(input_, paths_, step.id, transfers[step.id]);
      ends.push_back(replay.EndWith({}));
      answer_.replay_error_ns =
          std::max(answer_.replay_error_ns, std::abs(ends.back() - step.path.end_ns));
    }
    const auto saved = [&](const CutChange& change) {
      std::vector<int64_t> values;
      for (size_t i = 0; i < replays.size(); ++i) {
        values.push_back(ends[i] - replays[i].EndWith(change));
      }
      return Estimate(values);
    };
    answer_.tensors_saved = saved({.no_tensors = true});
    for (size_t p = 0; p < answer_.partitions.size(); ++p) {
      answer_.partitions[p].saved = saved({.half_work = p});
    }
    std::set<std::pair<size_t, size_t>> directions;
    for (const CutEdgeSummary& one : answer_.edges) directions.emplace(one.edge.from, one.edge.to);
    for (const auto& direction : directions) {
      answer_.directions.push_back(
          {direction.first, direction.second, saved({.no_direction = direction})});
    }
    std::stable_sort(answer_.directions.begin(), answer_.directions.end(),
                     [](const CutDirectionSummary& a, const CutDirectionSummary& b) {
                       return a.saved.est_ns > b.saved.est_ns;
                     });
  }

  void AddOperators(const std::map<std::pair<size_t, NameId>, std::vector<int64_t>>& operators) {
    std::vector<std::pair<int64_t, std::pair<size_t, NameId>>> by_time;
    for (const auto& [key, values] : operators) by_time.emplace_back(-MeanOf(values), key);
    std::sort(by_time.begin(), by_time.end());
    for (size_t i = 0; i < std::min(kOperatorsMax, by_time.size()); ++i) {
      const auto& key = by_time[i].second;
      const std::vector<int64_t>& values = operators.at(key);
      CutOperatorSummary& summary = answer_.operators.emplace_back();
      summary.name = input_.names[key.second];
      summary.partition = key.first;
      summary.steps = static_cast<uint64_t>(
          std::count_if(values.begin(), values.end(), [](int64_t ns) { return ns != 0; }));
      summary.path = Estimate(values);
    }
  }

  const CutInput& input_;
  const CutPaths paths_;
  CutAnswer answer_;
  std::span<const CutStep> steps_;
  std::vector<PartitionFacts> partitions_;
  std::map<size_t, EdgeFacts> edges_;
};

}  // namespace

CutAnswer ExplainCut(const CutInput& input) { return Explainer(input).Explain(); }

}  // namespace syncline::analysis::why
