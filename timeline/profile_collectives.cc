// SPDX-License-Identifier: Apache-2.0
#include "timeline/profile_collectives.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/text.h"

namespace syncline::timeline {
namespace {

// "CollectiveReduce" from "CollectiveReduceV2".
std::string_view WithoutVersion(std::string_view type) {
  const size_t digits = type.find_last_not_of("0123456789");
  if (digits != std::string_view::npos && digits > 0 && digits + 1 < type.size() &&
      type[digits] == 'V') {
    return type.substr(0, digits);
  }
  return type;
}

// Ranks are in the order of the devices' names, numbers in them by value.
std::pair<std::string, int64_t> OrderOf(std::string_view task) {
  const size_t digits = task.find_last_not_of("0123456789") + 1;
  int64_t number = 0;
  if (!absl::SimpleAtoi(AbslView(task.substr(digits)), &number)) return {std::string(task), 0};
  return {std::string(task.substr(0, digits)), number};
}

// "0-2,5" of 0, 1, 2, 5.
std::string RangesOf(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", numbers[i]);
    if (last > i) absl::StrAppend(&text, "-", numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

std::string CollectiveOfType(std::string_view type) {
  constexpr std::string_view kPrefix = "Collective";
  struct Kind {
    std::string_view type;
    std::string_view name;
  };
  constexpr Kind kKinds[] = {
      {"Reduce", "allreduce"},  {"ReduceScatter", "reduce_scatter"}, {"Gather", "allgather"},
      {"AllToAll", "alltoall"}, {"BcastSend", "broadcast"},          {"BcastRecv", "broadcast"},
      {"Permute", "permute"},
  };
  if (!type.starts_with(kPrefix)) return "";
  const std::string_view what = WithoutVersion(type.substr(kPrefix.size()));
  for (const Kind& kind : kKinds) {
    if (kind.type == what) return std::string(kind.name);
  }
  return "";
}

std::optional<uint64_t> BytesOfShape(std::string_view shape) {
  struct Type {
    std::string_view name;
    uint64_t bytes;
  };
  constexpr Type kTypes[] = {
      {"float", 4}, {"double", 8}, {"half", 2},   {"bfloat16", 2},  {"int8", 1},
      {"uint8", 1}, {"int16", 2},  {"uint16", 2}, {"int32", 4},     {"uint32", 4},
      {"int64", 8}, {"uint64", 8}, {"bool", 1},   {"complex64", 8}, {"complex128", 16},
  };
  if (!shape.starts_with('(')) return std::nullopt;
  const size_t open = shape.find('[');
  const size_t close = shape.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const std::string_view name = shape.substr(1, open - 1);
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const Type& known) { return known.name == name; });
  if (type == std::end(kTypes)) return std::nullopt;
  uint64_t bytes = type->bytes;
  const std::string_view sizes = shape.substr(open + 1, close - open - 1);
  if (sizes.empty()) return bytes;
  for (const absl::string_view size : absl::StrSplit(AbslView(sizes), ',')) {
    uint64_t value = 0;
    if (!absl::SimpleAtoi(size, &value)) return std::nullopt;
    if (__builtin_mul_overflow(bytes, value, &bytes)) return std::nullopt;
  }
  return bytes;
}

uint32_t ProfileCollectives::AddProcess(uint32_t node, std::string_view job,
                                        std::string_view task) {
  Process& process = processes_.emplace_back();
  process.node = node;
  process.job = job;
  process.task = task;
  return static_cast<uint32_t>(processes_.size() - 1);
}

void ProfileCollectives::OnLaunch(uint32_t process, int64_t step_id, std::string_view name,
                                  const Moment& when) {
  processes_[process].launches[{step_id, std::string(name)}].push_back(when);
}

void ProfileCollectives::OnInput(uint32_t process, int64_t step_id, std::string_view name,
                                 std::optional<uint64_t> bytes) {
  processes_[process].inputs[{step_id, std::string(name)}] = bytes;
}

void ProfileCollectives::OnGroupSize(uint32_t process, int64_t group_key, int64_t size) {
  if (size > 0 && size <= UINT32_MAX) {
    processes_[process].group_sizes[group_key] = static_cast<uint32_t>(size);
  }
}

void ProfileCollectives::OnWork(uint32_t process, std::string_view name, std::string_view kind,
                                const Work& work) {
  processes_[process].works[{work.step_id, std::string(name)}].emplace_back(kind, work);
}

ProfileCollectives::GroupMap ProfileCollectives::Groups() const {
  GroupMap groups;
  for (uint32_t p = 0; p < processes_.size(); ++p) {
    const Process& process = processes_[p];
    for (const auto& [use, works] : process.works) {
      const auto launches = process.launches.find(use);
      // It was reached before the profile began: nothing says when.
      if (launches == process.launches.end()) continue;
      const bool once = launches->second.size() == 1 && works.size() == 1;
      const auto input = process.inputs.find(use);
      for (const auto& [kind, work] : works) {
        Part part;
        part.process = p;
        part.kind = kind;
        part.step_id = use.first;
        if (input != process.inputs.end()) part.bytes = input->second;
        const Moment& entered = once ? launches->second.front() : work.begin;
        part.member.node = process.node;
        part.member.entered = entered.node;
        part.member.entered_at = entered.timeline;
        part.member.left = work.end.node;
        part.member.left_at = work.end.timeline;
        groups[{process.job, work.group_key}][work.instance_key].push_back(std::move(part));
      }
    }
  }
  return groups;
}

std::vector<uint32_t> ProfileCollectives::RanksOf(const Instances& instances) const {
  std::set<uint32_t> members;
  for (const auto& [key, parts] : instances) {
    for (const Part& part : parts) members.insert(part.process);
  }
  std::vector<uint32_t> ranks(members.begin(), members.end());
  std::sort(ranks.begin(), ranks.end(), [&](uint32_t a, uint32_t b) {
    return OrderOf(processes_[a].task) < OrderOf(processes_[b].task);
  });
  for (size_t i = 1; i < ranks.size(); ++i) {
    if (processes_[ranks[i]].task == processes_[ranks[i - 1]].task) return {};
  }
  return ranks;
}

CollectiveGroup ProfileCollectives::FactsOf(const std::string& job, int64_t key,
                                            const std::vector<uint32_t>& ranks) const {
  CollectiveGroup group;
  group.job = job;
  group.name = absl::StrCat(key);
  group.description = absl::StrCat("TensorFlow group ", key);
  group.size = static_cast<uint32_t>(ranks.size());
  // With one job its tasks' numbers are what people know the workers by.
  const bool one_job =
      OrderOf(processes_[ranks.front()].task).first == OrderOf(processes_[ranks.back()].task).first;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Process& process = processes_[ranks[i]];
    numbers.push_back(one_job ? OrderOf(process.task).second : static_cast<int64_t>(i));
    const auto size = process.group_sizes.find(key);
    if (size != process.group_sizes.end()) group.size = std::max(group.size, size->second);
  }
  group.ranks = RangesOf(numbers);
  return group;
}

void ProfileCollectives::AddEntries(const std::vector<Part>& parts,
                                    std::vector<TimelineTime>* entries) {
  for (const Part& part : parts) entries->push_back(part.member.entered_at);
}

// All that was done under one instance's key: one collective, or one a step.
void ProfileCollectives::JoinInstance(const Collective& collective, const std::vector<Part>& parts,
                                      Collectives* found) {
  std::set<uint32_t> processes;
  std::map<int64_t, std::vector<Part>> by_step;
  for (const Part& part : parts) {
    processes.insert(part.process);
    by_step[part.step_id].push_back(part);
  }
  if (processes.size() == parts.size()) return Join(collective, parts, found);
  for (const auto& [step, together] : by_step) {
    std::set<uint32_t> of_step;
    for (const Part& part : together) of_step.insert(part.process);
    if (of_step.size() == processes.size() && together.size() == of_step.size()) {
      Join(collective, together, found);
    } else {
      AddEntries(together, &found->undecided);
    }
  }
}

void ProfileCollectives::Join(Collective collective, const std::vector<Part>& parts,
                              Collectives* found) {
  collective.name = parts.front().kind;
  for (const Part& part : parts) {
    if (part.kind != collective.name) {
      AddEntries(parts, &found->undecided);
      return;
    }
    // What reduces nothing may wait for nobody.
    collective.may_be_empty |= part.bytes.value_or(0) == 0;
    if (part.bytes.has_value()) collective.bytes = part.bytes;
    collective.members.push_back(part.member);
  }
  std::sort(collective.members.begin(), collective.members.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  found->collectives.push_back(std::move(collective));
}

void ProfileCollectives::Match(Collectives* found) const {
  GroupMap groups = Groups();
  for (auto& [key, instances] : groups) {
    const std::vector<uint32_t> ranks = RanksOf(instances);
    if (ranks.empty()) {
      for (const auto& [instance, parts] : instances) AddEntries(parts, &found->undecided);
      continue;
    }
    std::map<uint32_t, int32_t> rank_of;
    for (size_t i = 0; i < ranks.size(); ++i) rank_of[ranks[i]] = static_cast<int32_t>(i);
    Collective collective;
    collective.group = static_cast<uint32_t>(found->groups.size());
    found->groups.push_back(FactsOf(key.first, key.second, ranks));
    for (auto& [instance, parts] : instances) {
      for (Part& part : parts) part.member.rank = rank_of.at(part.process);
      collective.number = static_cast<uint64_t>(instance);
      JoinInstance(collective, parts, found);
    }
  }
}

}  // namespace syncline::timeline
