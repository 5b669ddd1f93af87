// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/work.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "analysis/onednn.h"
#include "analysis/why/statistics.h"

namespace syncline::analysis::why {
namespace {

using Key = std::pair<NameId, NameId>;
using Counted = std::map<Key, WorkDone::Counts>;

constexpr size_t kDifferentSteps = 20;  // one of so many may differ
constexpr int64_t kWorthPercent = 1;

// Shapes by number: those that say the same of the work have the same one.
class WorkShapes {
 public:
  explicit WorkShapes(std::span<const std::string> names) : names_(names) {}

  Counted Of(const WorkDone& work) {
    Counted counted;
    for (const auto& [key, counts] : work.shapes) {
      const auto said = DescriptionOf(names_[key.second]);
      if (!said.has_value() || IsReorder(said->kind)) continue;
      const auto number = static_cast<NameId>(numbers_.size());
      const auto known = numbers_.try_emplace(WorkAlone(*said), number).first;
      WorkDone::Counts& sum = counted[{key.first, known->second}];
      sum.resize(counts.size());
      for (size_t step = 0; step < counts.size(); ++step) sum[step] += counts[step];
    }
    return counted;
  }

 private:
  std::span<const std::string> names_;
  std::map<PrimitiveDescription, NameId> numbers_;
};

struct Compared {
  bool differs = false;
  double own = 0;
  double others = 0;
};

// How often each rank ran what `key` names, by step; nullptr: never.
std::vector<const WorkDone::Counts*> CountsOf(std::span<const Counted* const> ranks,
                                              const Key& key) {
  std::vector<const WorkDone::Counts*> counts;
  for (const Counted* counted : ranks) {
    const auto found = counted->find(key);
    counts.push_back(found == counted->end() ? nullptr : &found->second);
  }
  return counts;
}

Compared Compare(std::span<const Counted* const> ranks, size_t rank, const Key& key, size_t steps) {
  const std::vector<const WorkDone::Counts*> counts = CountsOf(ranks, key);
  const auto at = [&](size_t i, size_t step) {
    return counts[i] == nullptr ? 0 : (*counts[i])[step];
  };
  Compared compared;
  size_t different = 0;
  std::vector<uint32_t> others;
  for (size_t step = 0; step < steps; ++step) {
    others.clear();
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (i != rank) others.push_back(at(i, step));
    }
    const auto median = others.begin() + static_cast<ptrdiff_t>((others.size() - 1) / 2);
    std::nth_element(others.begin(), median, others.end());
    const uint32_t own = at(rank, step);
    different += own != *median ? 1 : 0;
    compared.own += own;
    compared.others += *median;
  }
  compared.differs = different * kDifferentSteps > steps;
  compared.own /= static_cast<double>(steps);
  compared.others /= static_cast<double>(steps);
  return compared;
}

std::set<Key> KeysOf(std::span<const Counted* const> ranks) {
  std::set<Key> keys;
  for (const Counted* counted : ranks) {
    for (const auto& [key, counts] : *counted) keys.insert(key);
  }
  return keys;
}

// What each rank spends in operators of the name, ns: one value, of all steps.
std::vector<std::vector<int64_t>> TotalsOf(std::span<const WorkDone> ranks, NameId name) {
  std::vector<std::vector<int64_t>> totals;
  for (const WorkDone& work : ranks) {
    int64_t total_ns = 0;
    for (const auto& [key, ns] : work.total_ns) total_ns += key.second == name ? ns : 0;
    totals.push_back({total_ns});
  }
  return totals;
}

struct Difference {
  WorkDifference work;
  int64_t apart_ns = 0;  // what the rank spends in it differs so much from the others' median
};

// Those first that make the greatest difference in time: what a reader looks for.
bool ComesFirst(const Difference& a, const Difference& b) {
  if (a.apart_ns != b.apart_ns) return a.apart_ns > b.apart_ns;
  const double more_a = std::abs(a.work.own - a.work.others);
  const double more_b = std::abs(b.work.own - b.work.others);
  return more_a != more_b ? more_a > more_b : a.work.name < b.work.name;
}

}  // namespace

WorkDone WorkOf(std::span<const TaskSpan> spans, std::span<const OwnInterval> steps,
                const TaskNames& names) {
  WorkDone work;
  size_t step = 0;
  int64_t loading_until_ns = INT64_MIN;  // what fetches a batch is input, however it does so
  for (const TaskSpan& span : spans) {
    if (names.Is(span.name, Role::kLoader)) {
      loading_until_ns = std::max(loading_until_ns, span.end_ns);
    }
    const bool loads = span.begin_ns < loading_until_ns;
    while (step < steps.size() && steps[step].end_ns <= span.begin_ns) ++step;
    if (step == steps.size()) break;
    if (span.begin_ns < steps[step].begin_ns || loads || names.IsMark(span.category) ||
        names.IsPreparation(span.category) || names.Is(span.name, Role::kWait)) {
      continue;
    }
    const auto add = [&](const Key& key, Counted* counted) {
      WorkDone::Counts& counts = (*counted)[key];
      if (counts.empty()) counts.resize(steps.size());
      ++counts[step];
    };
    const Key key{span.category, span.name};
    add(key, &work.counts);
    work.total_ns[key] += span.end_ns - span.begin_ns;
    if (span.shape != 0) add({span.name, span.shape}, &work.shapes);
  }
  return work;
}

// The collector writes a task's arguments as "%s=cpu,convolution,...;".
std::optional<PrimitiveDescription> DescriptionOf(std::string_view shape) {
  const size_t begin = shape.find('=');
  if (begin == std::string_view::npos || !shape.ends_with(';')) return std::nullopt;
  return ParsePrimitive(shape.substr(begin + 1, shape.size() - begin - 2));
}

bool ShapesKnown(const WorkDone& work, std::span<const std::string> names) {
  return std::any_of(work.shapes.begin(), work.shapes.end(), [&](const auto& one) {
    const auto said = DescriptionOf(names[one.first.second]);
    return said.has_value() && !IsReorder(said->kind);
  });
}

std::vector<WorkDifference> DifferencesOf(std::span<const WorkDone> ranks, size_t rank,
                                          size_t steps, int64_t total_step_ns,
                                          std::span<const std::string> names) {
  if (ranks.size() < 2 || steps == 0) return {};
  std::vector<Difference> differences;
  int64_t longest_ns = 0;  // of each that differs what the slowest rank spends in it
  const auto add = [&](NameId name, bool in_shapes, const Compared& compared) {
    const std::vector<std::vector<int64_t>> totals = TotalsOf(ranks, name);
    longest_ns += std::max_element(totals.begin(), totals.end())->front();
    differences.push_back({{names[name], in_shapes, compared.own, compared.others},
                           std::abs(Others(totals).Excess(rank)[0])});
  };
  WorkShapes work_shapes(names);
  std::vector<Counted> shapes_of;
  for (const WorkDone& work : ranks) shapes_of.push_back(work_shapes.Of(work));
  std::vector<const Counted*> counts;
  std::vector<const Counted*> shapes;
  for (size_t i = 0; i < ranks.size(); ++i) {
    counts.push_back(&ranks[i].counts);
    shapes.push_back(&shapes_of[i]);
  }
  std::set<NameId> different;  // names
  for (const Key& key : KeysOf(counts)) {
    if (IsReorder(names[key.second]) && IsPrimitive(names[key.first])) continue;
    const Compared compared = Compare(counts, rank, key, steps);
    if (!compared.differs || !different.insert(key.second).second) continue;
    add(key.second, false, compared);
  }
  std::map<NameId, Compared> by_shape;
  for (const Key& key : KeysOf(shapes)) {
    const Compared compared = Compare(shapes, rank, key, steps);
    if (!compared.differs || different.contains(key.first)) continue;
    by_shape[key.first].own += std::max(0.0, compared.own - compared.others);
    by_shape[key.first].others += compared.others;
  }
  for (const auto& [name, compared] : by_shape) add(name, true, compared);
  if (longest_ns * 100 < total_step_ns * kWorthPercent) return {};
  std::sort(differences.begin(), differences.end(), ComesFirst);
  std::vector<WorkDifference> in_order;
  for (Difference& one : differences) in_order.push_back(std::move(one.work));
  return in_order;
}

}  // namespace syncline::analysis::why
