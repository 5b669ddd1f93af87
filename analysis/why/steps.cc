// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/steps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

uint64_t CountOf(const ThreadInput& thread, const TaskNames& names, Role role) {
  return static_cast<uint64_t>(
      std::count_if(thread.spans.begin(), thread.spans.end(),
                    [&](const TaskSpan& span) { return names.Is(span.name, role); }));
}

// Begins of the tasks of one role, in order. A task within another of its role is not one more.
std::vector<int64_t> BeginsOf(const ThreadInput& thread, const TaskNames& names, Role role) {
  std::vector<int64_t> begins;
  int64_t end_ns = 0;
  for (const TaskSpan& span : thread.spans) {
    if (!names.Is(span.name, role) || (!begins.empty() && span.begin_ns < end_ns)) continue;
    begins.push_back(span.begin_ns);
    end_ns = span.end_ns;
  }
  return begins;
}

std::vector<int64_t> StepEnds(const ThreadInput& thread, const TaskNames& names) {
  std::vector<int64_t> ends;
  for (const TaskSpan& span : thread.spans) {
    if (!names.Is(span.name, Role::kStep)) continue;
    // One within another ends with it.
    if (!ends.empty() && span.begin_ns < ends.back()) continue;
    if (span.whole) ends.push_back(span.end_ns);
  }
  return ends;
}

// Batches for more optimizer steps than this are used again and again: no step of all of them.
constexpr size_t kOptimizersMax = 4;
constexpr size_t kMostOf = 10;  // nine of ten
constexpr size_t kMostParts = 9;

uint32_t CountIn(const std::vector<int64_t>& times, const OwnInterval& interval) {
  const auto first = std::lower_bound(times.begin(), times.end(), interval.begin_ns);
  const auto last = std::lower_bound(times.begin(), times.end(), interval.end_ns);
  return static_cast<uint32_t>(last - first);
}

// From the end of a step of an optimizer to the end of the next; of `optimizers` of them that begin
// with one in which a batch is loaded, where these are several.
std::vector<OwnInterval> StepIntervals(const std::vector<int64_t>& ends,
                                       const std::vector<int64_t>& loads, size_t optimizers) {
  std::vector<OwnInterval> intervals;
  size_t joined = optimizers;  // of the last one
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const OwnInterval one{ends[i], ends[i + 1]};
    if (optimizers > 1 && CountIn(loads, one) == 0) {
      // Before the first batch, or one more than usual: of none.
      if (joined < optimizers) intervals.back().end_ns = one.end_ns;
      ++joined;
      continue;
    }
    if (joined < optimizers) intervals.pop_back();
    intervals.push_back(one);
    joined = 1;
  }
  if (joined < optimizers) intervals.pop_back();
  return intervals;
}

using Timed = std::pair<int64_t, const CollectiveEntry*>;  // in order

std::vector<const CollectiveEntry*> In(const OwnInterval& interval,
                                       const std::vector<Timed>& entries) {
  auto at =
      std::lower_bound(entries.begin(), entries.end(), interval.begin_ns,
                       [](const Timed& one, int64_t begin_ns) { return one.first < begin_ns; });
  std::vector<const CollectiveEntry*> found;
  for (; at != entries.end() && at->first < interval.end_ns; ++at) found.push_back(at->second);
  return found;
}

// What the job's steps have of what is counted by the name of a task: without any it is not known
// to be none. Forwards are DistributedDataParallel's and FSDP's alone.
struct Counted {
  bool forwards = false;
  bool loads = false;
  bool transfers = false;
};

std::string NameOf(const Pattern& pattern, Counted counted, std::span<const std::string> names) {
  std::string text;
  for (const auto& [name, count] : pattern.collectives) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", names[name], " x", count);
  }
  if (counted.transfers) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", "sends and receives");
  }
  if (text.empty()) text = "no collective";
  if (counted.forwards && pattern.forwards != 1) {
    absl::StrAppend(&text, ", ", pattern.forwards, " forward passes of DDP or FSDP");
  }
  if (counted.loads && pattern.loads != 1) {
    absl::StrAppend(&text, ", ", pattern.loads, " batches of a DataLoader");
  }
  return text;
}

using Collective = std::pair<uint32_t, uint64_t>;  // group and number

// Steps of all ranks, by a number of their own, in sets of those that belong together.
class Together {
 public:
  explicit Together(std::span<const std::vector<Step>> steps) {
    std::vector<std::pair<Collective, size_t>> entries;
    for (const std::vector<Step>& of_rank : steps) {
      first_.push_back(parents_.size());
      for (size_t i = 0; i < of_rank.size(); ++i) {
        for (const Collective& one : of_rank[i].collectives) {
          entries.emplace_back(one, parents_.size());
        }
        if (of_rank[i].collectives.empty()) entries.emplace_back(Collective{0, i}, parents_.size());
        parents_.push_back(parents_.size());
      }
    }
    std::sort(entries.begin(), entries.end());
    for (size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].first == entries[i - 1].first) Join(entries[i].second, entries[i - 1].second);
    }
    for (size_t rank = 0; rank < steps.size(); ++rank) {
      for (size_t i = 0; i < steps[rank].size(); ++i) {
        members_[SetOf(first_[rank] + i)].emplace_back(rank, i);
      }
    }
  }

  // By rank: the steps that belong to this one, itself included.
  const std::vector<std::pair<size_t, size_t>>& With(size_t rank, size_t step) {
    return members_.at(SetOf(first_[rank] + step));
  }

 private:
  size_t SetOf(size_t step) {
    while (parents_[step] != step) step = parents_[step] = parents_[parents_[step]];
    return step;
  }
  void Join(size_t a, size_t b) { parents_[SetOf(a)] = SetOf(b); }

  std::vector<size_t> first_;    // of each rank, its first step's number
  std::vector<size_t> parents_;  // by number
  std::map<size_t, std::vector<std::pair<size_t, size_t>>> members_;
};

// Whether the step has, in groups that it shares with those before, the same collectives.
bool Agrees(const Step& step, std::map<uint32_t, std::vector<uint64_t>>* known) {
  std::map<uint32_t, std::vector<uint64_t>> own;
  for (const auto& [group, number] : step.collectives) own[group].push_back(number);
  return std::all_of(own.begin(), own.end(), [&](const auto& one) {
    const auto [found, is_new] = known->emplace(one);
    return is_new || found->second == one.second;
  });
}

}  // namespace

Driver DriverOf(const RankInput& rank, const TaskNames& names) {
  Driver driver;
  uint64_t most_steps = 0;
  const ThreadInput* stepping = nullptr;
  for (const ThreadInput& thread : rank.threads) {
    const uint64_t launches = CountOf(thread, names, Role::kLaunch);
    if (launches > driver.launches) {
      driver.other_launches += driver.launches;
      driver.launches = launches;
      driver.thread = &thread;
    } else {
      driver.other_launches += launches;
    }
    const uint64_t steps = CountOf(thread, names, Role::kStep);
    if (steps > most_steps) {
      most_steps = steps;
      stepping = &thread;
    }
  }
  if (driver.thread == nullptr) driver.thread = stepping;
  if (driver.thread != nullptr) driver.steps = CountOf(*driver.thread, names, Role::kStep);
  return driver;
}

size_t OptimizersPerBatch(const ThreadInput& driver, const TaskNames& names) {
  const std::vector<int64_t> ends = StepEnds(driver, names);
  const std::vector<int64_t> loads = BeginsOf(driver, names, Role::kLoader);
  std::map<size_t, size_t> counts;  // batches by how many steps they are for
  size_t batches = 0;
  size_t steps = 0;
  bool loaded = false;
  for (size_t i = 0; i + 1 < ends.size(); ++i, ++steps) {
    if (CountIn(loads, {ends[i], ends[i + 1]}) == 0) continue;
    if (loaded) {
      ++counts[steps];
      ++batches;
    }
    loaded = true;
    steps = 0;
  }
  for (const auto& [optimizers, count] : counts) {
    const bool most = count * kMostOf >= batches * kMostParts;
    if (most && optimizers <= kOptimizersMax) return optimizers;
  }
  return 1;
}

std::vector<Step> StepsOf(const ThreadInput& driver, std::span<const CollectiveEntry> collectives,
                          const TaskNames& names, const StepOptions& options) {
  const std::vector<int64_t> ends = StepEnds(driver, names);
  const std::vector<int64_t> forwards = BeginsOf(driver, names, Role::kForward);
  const std::vector<int64_t> loads = BeginsOf(driver, names, Role::kLoader);
  std::vector<Timed> real;
  std::vector<Timed> transfers;
  for (const CollectiveEntry& entry : collectives) {
    if (!entry.transfer) {
      real.push_back({entry.entered_ns, &entry});
    } else if (entry.tid == driver.tid) {
      // What was asked for long before belongs to where it is waited for.
      const bool waited = !entry.sends && entry.left_ns.has_value();
      transfers.push_back({waited ? *entry.left_ns : entry.entered_ns, &entry});
    }
  }
  std::sort(transfers.begin(), transfers.end());
  std::vector<Step> steps;
  for (const OwnInterval& interval : StepIntervals(ends, loads, options.optimizers)) {
    Step step;
    step.interval = interval;
    for (const CollectiveEntry* entry : In(step.interval, real)) {
      step.collectives.emplace_back(entry->group, entry->number);
      ++step.pattern.collectives[entry->name];
    }
    const std::vector<const CollectiveEntry*> sent = In(step.interval, transfers);
    step.transfers = !sent.empty();
    if (step.collectives.empty() || options.by_transfers) {
      for (const CollectiveEntry* entry : sent) {
        if (entry->loose) continue;
        step.collectives.emplace_back(entry->group, entry->number);
      }
    }
    if (options.with_collectives && step.collectives.empty()) continue;
    step.pattern.forwards = CountIn(forwards, step.interval);
    step.pattern.loads = CountIn(loads, step.interval);
    steps.push_back(std::move(step));
  }
  return steps;
}

Pairing PairSteps(std::span<const std::vector<Step>> steps, std::span<const std::string> names) {
  Pairing pairing;
  if (steps.empty()) return pairing;
  size_t most = 0;
  Counted counted;
  for (const std::vector<Step>& of_rank : steps) {
    most = std::max(most, of_rank.size());
    for (const Step& step : of_rank) {
      counted.forwards |= step.pattern.forwards > 0;
      counted.loads |= step.pattern.loads > 0;
      counted.transfers |= step.transfers;
    }
  }
  Together together(steps);
  std::map<Pattern, PairedSteps> classes;
  uint64_t paired = 0;
  for (size_t i = 0; i < steps[0].size(); ++i) {
    std::vector<size_t> of_ranks;
    int64_t total_ns = 0;
    std::map<uint32_t, std::vector<uint64_t>> known;
    bool alike = true;
    for (const auto& [rank, index] : together.With(0, i)) {
      const Step& step = steps[rank][index];
      const Pattern& first = steps[0][i].pattern;
      if (rank != of_ranks.size() || step.pattern.collectives != first.collectives ||
          !Agrees(step, &known)) {
        break;
      }
      alike = alike && step.pattern == first;
      of_ranks.push_back(index);
      total_ns += step.interval.length_ns();
    }
    if (of_ranks.size() < steps.size() || of_ranks.size() < together.With(0, i).size()) continue;
    if (!alike) {
      pairing.unlike.push_back(std::move(of_ranks));
      continue;
    }
    ++paired;
    PairedSteps& into = classes[steps[0][i].pattern];
    into.total_ns += total_ns;
    into.steps.push_back(std::move(of_ranks));
  }
  pairing.unpaired = most - paired;
  for (auto& [pattern, paired_steps] : classes) {
    paired_steps.pattern = pattern;
    paired_steps.name = NameOf(pattern, counted, names);
    pairing.classes.push_back(std::move(paired_steps));
  }
  const auto rank_of = [](const PairedSteps& one) {
    return std::pair(one.steps.size() >= kStepsMin, one.total_ns);
  };
  std::stable_sort(
      pairing.classes.begin(), pairing.classes.end(),
      [&](const PairedSteps& a, const PairedSteps& b) { return rank_of(a) > rank_of(b); });
  return pairing;
}

}  // namespace syncline::analysis::why
