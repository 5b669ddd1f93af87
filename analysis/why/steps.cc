// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/steps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

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

uint32_t CountIn(const std::vector<int64_t>& times, const OwnInterval& interval) {
  const auto first = std::lower_bound(times.begin(), times.end(), interval.begin_ns);
  const auto last = std::lower_bound(times.begin(), times.end(), interval.end_ns);
  return static_cast<uint32_t>(last - first);
}

// What the job's steps have of what is counted by the name of a task: without any it is not known
// to be none. Forwards are DistributedDataParallel's and FSDP's alone.
struct Counted {
  bool forwards = false;
  bool loads = false;
};

std::string NameOf(const Pattern& pattern, Counted counted, std::span<const std::string> names) {
  std::string text;
  for (const auto& [name, count] : pattern.collectives) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", names[name], " x", count);
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

// A step's key: its first collective.
using Key = std::pair<uint32_t, uint64_t>;

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
  return driver;
}

std::vector<Step> StepsOf(const ThreadInput& driver, std::span<const CollectiveEntry> collectives,
                          const TaskNames& names, bool with_collectives) {
  const std::vector<int64_t> ends = StepEnds(driver, names);
  const std::vector<int64_t> forwards = BeginsOf(driver, names, Role::kForward);
  const std::vector<int64_t> loads = BeginsOf(driver, names, Role::kLoader);
  std::vector<Step> steps;
  auto entry = collectives.begin();
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    Step step;
    step.interval = {ends[i], ends[i + 1]};
    while (entry != collectives.end() && entry->entered_ns < step.interval.begin_ns) ++entry;
    for (; entry != collectives.end() && entry->entered_ns < step.interval.end_ns; ++entry) {
      step.collectives.emplace_back(entry->group, entry->number);
      ++step.pattern.collectives[entry->name];
    }
    if (with_collectives && step.collectives.empty()) continue;
    step.pattern.forwards = CountIn(forwards, step.interval);
    step.pattern.loads = CountIn(loads, step.interval);
    steps.push_back(std::move(step));
  }
  return steps;
}

Pairing PairSteps(std::span<const std::vector<Step>> steps, std::span<const std::string> names) {
  Pairing pairing;
  if (steps.empty()) return pairing;
  // Of each rank: where a key's step is.
  std::vector<std::map<Key, size_t>> places(steps.size());
  size_t most = 0;
  Counted counted;
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    most = std::max(most, steps[rank].size());
    for (size_t i = 0; i < steps[rank].size(); ++i) {
      const Step& step = steps[rank][i];
      counted.forwards |= step.pattern.forwards > 0;
      counted.loads |= step.pattern.loads > 0;
      // Steps without collectives belong together by their order.
      const Key key = step.collectives.empty() ? Key{0, i} : step.collectives.front();
      places[rank].emplace(key, i);
    }
  }
  std::map<Pattern, PairedSteps> classes;
  uint64_t paired = 0;
  for (size_t i = 0; i < steps[0].size(); ++i) {
    const Step& step = steps[0][i];
    const Key key = step.collectives.empty() ? Key{0, i} : step.collectives.front();
    std::vector<size_t> of_ranks;
    int64_t total_ns = 0;
    for (size_t rank = 0; rank < steps.size(); ++rank) {
      const auto place = places[rank].find(key);
      if (place == places[rank].end()) break;
      const Step& other = steps[rank][place->second];
      if (other.collectives != step.collectives || other.pattern != step.pattern) break;
      of_ranks.push_back(place->second);
      total_ns += other.interval.length_ns();
    }
    if (of_ranks.size() < steps.size()) continue;
    ++paired;
    PairedSteps& into = classes[step.pattern];
    into.total_ns += total_ns;
    into.steps.push_back(std::move(of_ranks));
  }
  pairing.unpaired = most - paired;
  for (auto& [pattern, paired_steps] : classes) {
    paired_steps.pattern = pattern;
    paired_steps.name = NameOf(pattern, counted, names);
    pairing.classes.push_back(std::move(paired_steps));
  }
  std::stable_sort(
      pairing.classes.begin(), pairing.classes.end(),
      [](const PairedSteps& a, const PairedSteps& b) { return a.total_ns > b.total_ns; });
  return pairing;
}

}  // namespace syncline::analysis::why
