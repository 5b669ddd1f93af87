// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_explain.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analysis/why/cut_path.h"
#include "analysis/why/cut_replay.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kSelectionDivisor = 10;  // of all steps, at most one in so many is left out
constexpr size_t kOperatorsMax = 20;

// A step that all partitions that began it ended, and the begin of the next one.
struct Step {
  int64_t id = 0;
  int64_t begin_ns = 0;  // of the first partition that began it
  int64_t next_ns = 0;
  std::vector<size_t> partitions;
  CutPath path;
  int64_t duration_ns() const { return next_ns - begin_ns; }
};

// What ran: names of operators, and how often, by partition.
using Class = std::map<std::pair<size_t, NameId>, uint32_t>;

bool IsCovered(const CutPartition& partition, int64_t begin_ns, int64_t end_ns) {
  return std::any_of(partition.covered.begin(), partition.covered.end(), [&](const auto& piece) {
    return piece.first <= begin_ns && end_ns <= piece.second;
  });
}

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

// What is not known to have ended went on until its piece of the profile ends.
int64_t CoveredUntil(const CutPartition& partition, int64_t at_ns) {
  for (const auto& [begin_ns, end_ns] : partition.covered) {
    if (begin_ns <= at_ns && at_ns < end_ns) return end_ns;
  }
  return at_ns;
}

class Explainer {
 public:
  explicit Explainer(const CutInput& input) : input_(input), paths_(input) {}

  CutAnswer Explain() {
    if (Refuse()) return std::move(answer_);
    FindClient();
    FindSteps();
    ChooseClass();
    if (RefuseSelection()) return std::move(answer_);
    answer_.steps = steps_.size();
    Summarise();
    return std::move(answer_);
  }

 private:
  void Refused(CutRefusal refusal, std::string text) {
    answer_.refusal = refusal;
    answer_.refusal_text = std::move(text);
  }

  bool Refuse() {
    if (input_.transfers.empty()) {
      Refused(CutRefusal::kNoTensors,
              "a TensorFlow job none of whose tensors crossed between two processes that were "
              "profiled at level 2 or above. Explained are models that are cut into partitions (an "
              "in-graph master and its workers), with all of their processes recorded; `syncline "
              "report` shows what was recorded, and why a process was not profiled");
      return true;
    }
    std::set<std::string> tasks;
    bool any_step = false;
    for (const CutPartition& partition : input_.partitions) {
      any_step |= !partition.steps.empty();
      if (partition.task.empty() || tasks.insert(partition.task).second) continue;
      Refused(CutRefusal::kSeveralJobs,
              absl::StrCat("two processes are ", partition.task,
                           ": several TensorFlow jobs were recorded, or one was started again "
                           "meanwhile; record one at a time"));
      return true;
    }
    if (!any_step) {
      Refused(CutRefusal::kNoSteps,
              "no step of a TensorFlow session began in the window (RunGraph). Explained are "
              "programs that run a graph by a session; functions that are called on other "
              "processes are not explained yet");
    }
    return !any_step;
  }

  // Steps begin in the process of the session's client: its partition is told first.
  void FindClient() {
    std::map<int64_t, std::pair<int64_t, size_t>> first;  // by id
    std::map<int64_t, size_t> partitions;
    for (size_t i = 0; i < input_.partitions.size(); ++i) {
      for (const auto& [id, times] : input_.partitions[i].steps) {
        const std::pair<int64_t, size_t> one(times.begin_ns, i);
        const auto [known, is_new] = first.try_emplace(id, one);
        if (!is_new) known->second = std::min(known->second, one);
        ++partitions[id];
      }
    }
    std::vector<size_t> counts(input_.partitions.size());
    for (const auto& [id, begin] : first) {
      begins_.emplace_back(begin.first, id);
      if (partitions[id] > 1) ++counts[begin.second];
    }
    std::sort(begins_.begin(), begins_.end());
    answer_.client =
        static_cast<size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    const auto& of_client = input_.partitions[answer_.client].steps;
    for (const auto& [id, count] : partitions) others_ += count > 1 && !of_client.contains(id);
  }

  // Of a partition, steps during which it began no other.
  std::set<int64_t> StepsAlone(const CutPartition& partition) const {
    std::vector<std::pair<int64_t, int64_t>> begins;
    for (const auto& [id, times] : partition.steps) begins.emplace_back(times.begin_ns, id);
    std::sort(begins.begin(), begins.end());
    std::set<int64_t> alone;
    int64_t latest_ns = INT64_MIN;
    for (size_t i = 0; i < begins.size(); ++i) {
      const auto& [begin_ns, id] = begins[i];
      const int64_t end_ns =
          partition.steps.at(id).end_ns.value_or(CoveredUntil(partition, begin_ns));
      const int64_t next_ns = i + 1 < begins.size() ? begins[i + 1].first : INT64_MAX;
      if (begin_ns >= latest_ns && end_ns <= next_ns) alone.insert(id);
      latest_ns = std::max(latest_ns, end_ns);
    }
    return alone;
  }

  void FindSteps() {
    std::vector<std::set<int64_t>> alone;
    for (const CutPartition& one : input_.partitions) alone.push_back(StepsAlone(one));
    const CutPartition& client = input_.partitions[answer_.client];
    for (size_t i = 0; i + 1 < begins_.size(); ++i) {
      Step step;
      std::tie(step.begin_ns, step.id) = begins_[i];
      step.next_ns = begins_[i + 1].first;
      bool whole = client.steps.contains(step.id) && IsCovered(client, step.begin_ns, step.next_ns);
      for (size_t p = 0; p < input_.partitions.size(); ++p) {
        const auto& steps = input_.partitions[p].steps;
        const auto found = steps.find(step.id);
        if (found == steps.end()) continue;
        step.partitions.push_back(p);
        if (whole && !alone[p].contains(step.id)) {
          ++answer_.overlapping_steps;
          whole = false;
        }
        whole = whole && found->second.end_ns.has_value();
      }
      if (!whole || step.partitions.size() < 2) continue;
      step.path = paths_.Of(step.id);
      if (!step.path.whole) {
        ++answer_.broken_steps;
        continue;
      }
      classes_[ClassOf(step)].push_back(std::move(step));
    }
  }

  Class ClassOf(const Step& step) const {
    Class made;
    for (const size_t p : step.partitions) {
      const CutPartition& partition = input_.partitions[p];
      const CutStepTimes& times = partition.steps.at(step.id);
      for (const std::vector<CutSpan>& lane : partition.lanes) {
        auto span = std::partition_point(lane.begin(), lane.end(), [&](const CutSpan& one) {
          return one.begin_ns < times.begin_ns;
        });
        for (; span != lane.end() && span->begin_ns < *times.end_ns; ++span) {
          if (span->kind == CutKind::kOperator) ++made[{p, span->name}];
        }
      }
    }
    return made;
  }

  // The class with the most time.
  void ChooseClass() {
    int64_t most_ns = -1;
    size_t all = 0;
    for (auto& [made, steps] : classes_) {
      all += steps.size();
      int64_t sum_ns = 0;
      for (const Step& step : steps) sum_ns += step.duration_ns();
      if (sum_ns <= most_ns) continue;
      most_ns = sum_ns;
      chosen_ = &steps;
    }
    if (chosen_ != nullptr) steps_ = std::span<const Step>(*chosen_);
    answer_.other_steps = all - steps_.size();
  }

  // Steps that can be explained must not be a selection of all.
  bool RefuseSelection() {
    size_t whole = 0;
    for (const auto& [made, steps] : classes_) whole += steps.size();
    const uint64_t overlapping = answer_.overlapping_steps;
    if (others_ * kSelectionDivisor > whole + others_) {
      Refused(CutRefusal::kSeveralClients,
              absl::StrCat(others_,
                           " steps do not begin in the process in which the most do: jobs with a "
                           "client in each worker (parameter servers) are not explained yet"));
    } else if (overlapping * kSelectionDivisor > whole + overlapping) {
      Refused(CutRefusal::kStepsOverlap,
              absl::StrCat(overlapping,
                           " steps began while another one ran on the same partition: such steps "
                           "are not explained yet"));
    } else if (answer_.broken_steps * kSelectionDivisor > whole + answer_.broken_steps) {
      Refused(CutRefusal::kPathUnknown,
              absl::StrCat("of ", answer_.broken_steps,
                           " steps it was not recorded where a tensor came from, or what an "
                           "operator waited for: record with --tf-profiler-level 3 (the default), "
                           "and all processes of the job"));
    } else if (steps_.size() < kStepsMin && whole >= kStepsMin) {
      answer_.steps = steps_.size();
      Refused(
          CutRefusal::kStepsDiffer,
          absl::StrCat("of ", whole, " whole steps at most ", steps_.size(),
                       " ran the same operators, as often, and ", kStepsMin,
                       " are needed: steps that differ (loops of varying length, other sessions "
                       "in these processes) are not explained yet"));
    } else if (steps_.size() < kStepsMin) {
      answer_.steps = steps_.size();
      Refused(CutRefusal::kTooFewSteps,
              absl::StrCat(steps_.size(), " whole steps of one class were recorded, ", kStepsMin,
                           " are needed: record for longer"));
    }
    return answer_.refusal != CutRefusal::kNone;
  }

  MeanEstimate Estimate(std::span<const int64_t> values) const {
    return Bootstrap(values, BlockOf(steps_.size()));
  }

  // Sums of pieces, one a step, by what they are of.
  template <class Key>
  struct Sums {
    std::map<Key, std::vector<int64_t>> values;

    void Add(const Key& key, size_t step, size_t all, int64_t ns) {
      auto [found, is_new] = values.try_emplace(key);
      if (is_new) found->second.resize(all);
      found->second[step] += ns;
    }
  };

  struct EdgeFacts {
    int64_t sender_busy_ns = 0;
    int64_t sending_ns = 0;
    int64_t asked_ns = 0;
    std::optional<int64_t> clock_ns = 0;
    int64_t clock_most_ns = 0;
    uint64_t steps = 0;
    std::optional<size_t> last_step;
    std::vector<uint64_t> bytes;
    bool sized = true;
  };

  void Summarise() {
    const size_t all = steps_.size();
    std::vector<int64_t> durations;
    std::vector<int64_t> tensors(all);
    std::vector<int64_t> between;
    Sums<size_t> partitions;
    Sums<size_t> edges;
    Sums<std::pair<size_t, NameId>> operators;
    std::map<size_t, EdgeFacts> facts;
    std::vector<int64_t> in_operators(input_.partitions.size());
    std::vector<int64_t> idle(input_.partitions.size());
    std::vector<int64_t> busy(input_.partitions.size());
    int64_t overlap_ns = 0;
    answer_.partitions.resize(input_.partitions.size());
    answer_.clock_ns = 0;
    for (size_t i = 0; i < all; ++i) {
      const Step& step = steps_[i];
      int64_t left_ns = step.duration_ns();
      for (const CutPiece& piece : step.path.pieces) {
        left_ns -= piece.duration_ns;
        if (piece.kind == CutPiece::Kind::kTensor || piece.kind == CutPiece::Kind::kAsked) {
          const CutTransfer& transfer = input_.transfers[piece.transfer];
          tensors[i] += piece.duration_ns;
          edges.Add(transfer.edge, i, all, piece.duration_ns);
          const int64_t busy_ns = SenderBusyNs(transfer);
          answer_.partitions[transfer.from].sending_busy_ns += busy_ns;
          facts[transfer.edge].sender_busy_ns += busy_ns;
          AddFacts(transfer, piece, i, &facts[transfer.edge]);
          continue;
        }
        partitions.Add(piece.partition, i, all, piece.duration_ns);
        if (piece.kind == CutPiece::Kind::kIdle) idle[piece.partition] += piece.duration_ns;
        if (piece.kind != CutPiece::Kind::kOperator) continue;
        in_operators[piece.partition] += piece.duration_ns;
        operators.Add({piece.partition, piece.name}, i, all, piece.duration_ns);
      }
      durations.push_back(step.duration_ns());
      between.push_back(left_ns);
      overlap_ns += AddBusy(step, &busy);
    }
    answer_.step = Estimate(durations);
    answer_.tensors = Estimate(tensors);
    answer_.between = Estimate(between);
    const auto count = static_cast<int64_t>(all);
    answer_.overlap_ns = overlap_ns / count;
    for (size_t p = 0; p < input_.partitions.size(); ++p) {
      CutPartitionSummary& summary = answer_.partitions[p];
      summary.task = input_.partitions[p].task;
      summary.node = input_.partitions[p].node;
      const auto found = partitions.values.find(p);
      if (found != partitions.values.end()) summary.path = Estimate(found->second);
      summary.operators_ns = in_operators[p] / count;
      summary.idle_ns = idle[p] / count;
      summary.busy_ns = busy[p] / count;
      summary.sending_busy_ns /= count;
    }
    for (const auto& [edge, values] : edges.values) {
      const int64_t most_ns = facts[edge].clock_most_ns;
      if (most_ns == INT64_MAX) answer_.clock_ns.reset();
      if (answer_.clock_ns.has_value()) answer_.clock_ns = std::max(*answer_.clock_ns, most_ns);
      AddEdge(edge, values, std::move(facts[edge]));
    }
    AddSavings();
    AddOperators(operators.values);
    const auto more = [](const auto& a, const auto& b) { return a.path.est_ns > b.path.est_ns; };
    std::stable_sort(answer_.edges.begin(), answer_.edges.end(), more);
  }

  // Adds, by partition, how long each worked in the step; how long two of them or more did at once.
  int64_t AddBusy(const Step& step, std::vector<int64_t>* busy) const {
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

  static void AddFacts(const CutTransfer& transfer, const CutPiece& piece, size_t step,
                       EdgeFacts* facts) {
    if (piece.kind == CutPiece::Kind::kAsked) {
      // On the receiver's clock alone; that it had been sent by then is by both.
      const int64_t since_ns = WayOf(transfer).begin_ns - transfer.sent_ns;
      if (since_ns > transfer.clock_ns.value_or(INT64_MAX)) facts->asked_ns += piece.duration_ns;
    } else {
      facts->sending_ns += std::min(transfer.sending_ns, std::max<int64_t>(piece.duration_ns, 0));
      if (!transfer.clock_ns.has_value()) facts->clock_ns.reset();
      if (facts->clock_ns.has_value()) *facts->clock_ns += *transfer.clock_ns;
    }
    facts->clock_most_ns = std::max(facts->clock_most_ns, transfer.clock_ns.value_or(INT64_MAX));
    if (facts->last_step != step) ++facts->steps;
    facts->last_step = step;
    facts->sized = facts->sized && transfer.bytes.has_value();
    if (transfer.bytes.has_value()) facts->bytes.push_back(*transfer.bytes);
  }

  void AddEdge(size_t edge, std::span<const int64_t> values, EdgeFacts facts) {
    const auto count = static_cast<int64_t>(steps_.size());
    CutEdgeSummary& summary = answer_.edges.emplace_back();
    summary.edge = input_.edges[edge];
    summary.steps = facts.steps;
    summary.path = Estimate(values);
    summary.sending_ns = facts.sending_ns / count;
    summary.sender_busy_ns = facts.sender_busy_ns / count;
    summary.asked_ns = facts.asked_ns / count;
    if (facts.clock_ns.has_value()) summary.clock_ns = *facts.clock_ns / count;
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
    for (const Step& step : steps_) {
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
  std::vector<std::pair<int64_t, int64_t>> begins_;  // of all steps, first anywhere; and their ids
  std::map<Class, std::vector<Step>> classes_;
  const std::vector<Step>* chosen_ = nullptr;
  std::span<const Step> steps_;
  uint64_t others_ = 0;  // steps of several partitions that do not begin on the client's
};

}  // namespace

CutAnswer ExplainCut(const CutInput& input) { return Explainer(input).Explain(); }

}  // namespace syncline::analysis::why
