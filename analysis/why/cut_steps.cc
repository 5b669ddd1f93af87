// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/cut_steps.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

constexpr size_t kSelectionDivisor = 10;  // of all steps, at most one in so many is left out

bool IsCovered(const CutPartition& partition, int64_t begin_ns, int64_t end_ns) {
  return std::any_of(partition.covered.begin(), partition.covered.end(), [&](const auto& piece) {
    return piece.first <= begin_ns && end_ns <= piece.second;
  });
}

// What is not known to have ended went on until its piece of the profile ends.
int64_t CoveredUntil(const CutPartition& partition, int64_t at_ns) {
  for (const auto& [begin_ns, end_ns] : partition.covered) {
    if (begin_ns <= at_ns && at_ns < end_ns) return end_ns;
  }
  return at_ns;
}

class Finder {
 public:
  Finder(const CutInput& input, const CutPaths& paths) : input_(input), paths_(paths) {}

  CutSteps Find() {
    if (Refuse()) return std::move(found_);
    FindClient();
    FindSteps();
    ChooseClass();
    RefuseSelection();
    if (found_.refusal == CutRefusal::kNone) RefuseFew();
    return std::move(found_);
  }

 private:
  void Refused(CutRefusal refusal, std::string text) {
    found_.refusal = refusal;
    found_.refusal_text = std::move(text);
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
    found_.client =
        static_cast<size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    const auto& of_client = input_.partitions[found_.client].steps;
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
    const CutPartition& client = input_.partitions[found_.client];
    for (size_t i = 0; i + 1 < begins_.size(); ++i) {
      CutStep step;
      std::tie(step.begin_ns, step.id) = begins_[i];
      step.next_ns = begins_[i + 1].first;
      bool whole = client.steps.contains(step.id) && IsCovered(client, step.begin_ns, step.next_ns);
      for (size_t p = 0; p < input_.partitions.size(); ++p) {
        const auto& steps = input_.partitions[p].steps;
        const auto found = steps.find(step.id);
        if (found == steps.end()) continue;
        step.partitions.push_back(p);
        if (whole && !alone[p].contains(step.id)) {
          ++found_.overlapping;
          whole = false;
        }
        whole = whole && found->second.end_ns.has_value();
      }
      if (!whole || step.partitions.size() < 2) continue;
      step.path = paths_.Of(step.id);
      if (!step.path.whole) {
        ++found_.broken;
        continue;
      }
      classes_[OperatorsOf(step)].push_back(std::move(step));
    }
  }

  CutOperators OperatorsOf(const CutStep& step) const {
    CutOperators made;
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
    std::vector<CutStep>* chosen = nullptr;
    for (auto& [made, steps] : classes_) {
      whole_ += steps.size();
      int64_t sum_ns = 0;
      for (const CutStep& step : steps) sum_ns += step.duration_ns();
      if (sum_ns <= most_ns) continue;
      most_ns = sum_ns;
      chosen = &steps;
      found_.operators = made;
    }
    if (chosen != nullptr) found_.judged = std::move(*chosen);
    found_.other = whole_ - found_.judged.size();
  }

  // Steps that can be explained must not be a selection of all.
  void RefuseSelection() {
    const uint64_t overlapping = found_.overlapping;
    if (others_ * kSelectionDivisor > whole_ + others_) {
      Refused(CutRefusal::kSeveralClients,
              absl::StrCat(others_,
                           " steps do not begin in the process in which the most do: jobs with a "
                           "client in each worker (parameter servers) are not explained yet"));
    } else if (overlapping * kSelectionDivisor > whole_ + overlapping) {
      Refused(CutRefusal::kStepsOverlap,
              absl::StrCat(overlapping,
                           " steps began while another one ran on the same partition: such steps "
                           "are not explained yet"));
    } else if (found_.broken * kSelectionDivisor > whole_ + found_.broken) {
      Refused(CutRefusal::kPathUnknown,
              absl::StrCat("of ", found_.broken,
                           " steps it was not recorded where a tensor came from, or what an "
                           "operator waited for: record with --tf-profiler-level 3 (the default), "
                           "and all processes of the job"));
    }
    if (found_.refusal != CutRefusal::kNone) found_.judged.clear();
  }

  void RefuseFew() {
    const size_t judged = found_.judged.size();
    if (judged >= kStepsMin) return;
    if (whole_ >= kStepsMin) {
      Refused(
          CutRefusal::kStepsDiffer,
          absl::StrCat("of ", whole_, " whole steps at most ", judged,
                       " ran the same operators, as often, and ", kStepsMin,
                       " are needed: steps that differ (loops of varying length, other sessions "
                       "in these processes) are not explained yet"));
    } else {
      Refused(CutRefusal::kTooFewSteps,
              absl::StrCat(judged, " whole steps of one class were recorded, ", kStepsMin,
                           " are needed: record for longer"));
    }
  }

  const CutInput& input_;
  const CutPaths& paths_;
  CutSteps found_;
  std::vector<std::pair<int64_t, int64_t>> begins_;  // of all steps, first anywhere; and their ids
  std::map<CutOperators, std::vector<CutStep>> classes_;
  uint64_t whole_ = 0;   // steps of all classes
  uint64_t others_ = 0;  // steps of several partitions that do not begin on the client's
};

}  // namespace

CutSteps CutStepsOf(const CutInput& input, const CutPaths& paths) {
  return Finder(input, paths).Find();
}

}  // namespace syncline::analysis::why
