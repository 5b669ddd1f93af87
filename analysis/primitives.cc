// SPDX-License-Identifier: Apache-2.0
#include "analysis/primitives.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/names.h"

namespace syncline::analysis {
namespace {

constexpr uint8_t kExecutes = 1;
constexpr uint8_t kMakes = 2;
constexpr uint8_t kMarks = 3;
// So many wait for their task on a thread. Tasks that never end are no tasks around them.
constexpr size_t kOpenMax = 1 << 16;

uint8_t KindOfDomain(std::string_view domain) {
  if (IsExecution(domain)) return kExecutes;
  if (IsPrimitive(domain)) return kMakes;
  return IsMark(domain) ? kMarks : 0;
}

template <class Total>
void Sort(std::vector<Total>* totals) {
  std::stable_sort(totals->begin(), totals->end(),
                   [](const Total& a, const Total& b) { return a.total_ns > b.total_ns; });
}

// The rows of all processes, by what they say.
using TotalKey = std::pair<std::string, PrimitiveDescription>;  // task, what

// Per process: in which implementations it did each piece of work.
class Implementations {
 public:
  void Add(const TotalKey& key, size_t process, int64_t total_ns) {
    if (key.second.implementation.empty() || IsReorder(key.second.kind)) return;
    Work& one = works_[{key.first, WorkAlone(key.second)}];
    one.total_ns += total_ns;
    one.by_process[process].insert(key.second.implementation);
  }

  // `names`: of processes.
  std::vector<ImplementationDifference> Take(const std::vector<std::string>& names) const {
    std::vector<ImplementationDifference> all;
    for (const auto& [key, work] : works_) {
      std::map<std::set<std::string>, std::vector<std::string>> sides;
      for (const auto& [process, used] : work.by_process) sides[used].push_back(names[process]);
      if (sides.size() < 2) continue;
      ImplementationDifference& difference = all.emplace_back();
      difference.task = key.first;
      difference.what = key.second;
      difference.total_ns = work.total_ns;
      for (const auto& [used, processes] : sides) {
        difference.sides.push_back({{used.begin(), used.end()}, processes});
      }
    }
    Sort(&all);
    return all;
  }

 private:
  struct Work {
    int64_t total_ns = 0;
    std::map<size_t, std::set<std::string>> by_process;
  };
  std::map<TotalKey, Work> works_;
};

void Count(const PrimitiveDescription& what, uint64_t calls, int64_t total_ns,
           PrimitiveProcess* process) {
  process->calls += calls;
  process->total_ns += total_ns;
  if (IsReorder(what.kind)) process->reorder_ns += total_ns;
  if (IsReference(what.implementation)) process->reference_ns += total_ns;
  process->by_set_ns[std::string(InstructionSetOf(what.implementation))] += total_ns;
  if (what.implementation.empty()) process->not_described += calls;
}

}  // namespace

void PrimitiveSink::AddTo(const Sum& more, Sum* sum) {
  sum->calls += more.calls;
  sum->total_ns += more.total_ns;
}

void PrimitiveSink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) {
    texts_.resize(id + 1);
    kinds_.resize(id + 1);
  }
  texts_[id] = text;
  kinds_[id] = KindOfDomain(text);
  any_ |= kinds_[id] == kExecutes || kinds_[id] == kMakes;
  if (IsReorder(text)) reorder_ = id;
}

void PrimitiveSink::OnTrack(const timeline::Track& track) {
  if (track.kind == timeline::TrackKind::kProcess) {
    process_tracks_[track.id] = processes_.size();
    Process& process = processes_.emplace_back();
    process.values.node = track.node;
    process.values.name = track.name;
  } else if (track.kind == timeline::TrackKind::kThread) {
    const auto process = process_tracks_.find(track.parent);
    if (process == process_tracks_.end()) return;
    if (by_track_.size() <= track.id) by_track_.resize(track.id + 1);
    by_track_[track.id] = &threads_.emplace_back();
    threads_.back().process = process->second;
  }
}

void PrimitiveSink::OnSpanEnd(const timeline::Span& span) {
  if (!any_ || span.track >= by_track_.size() || by_track_[span.track] == nullptr) return;
  Thread& thread = *by_track_[span.track];
  const uint8_t kind = kinds_[span.category];
  const bool whole = !span.clipped_begin && !span.clipped_end && !span.suspect;
  if (kind == kMakes) {
    if (!whole) return;
    ++processes_[thread.process].values.made;
    processes_[thread.process].values.make_ns += span.end.ns - span.begin.ns;
    return;
  }
  if (kind == kExecutes && !whole) {
    // It may have been pushed late, and what ran beside it may be lost: of neighbours nothing is
    // known here.
    ++processes_[thread.process].values.not_whole;
    EndReorders(timeline::kNoText, &thread);
    thread.last = timeline::kNoText;
    return;
  }
  if (kind == kExecutes) {
    Primitive& primitive = thread.open.emplace_back();
    primitive.depth = span.depth;
    primitive.resolved = span.depth == 0;
    primitive.kind = span.name;
    primitive.description = DescriptionOf(span);
    primitive.begin = span.begin;
    primitive.end = span.end;
    primitive.self_ns = span.self_ns;
    if (thread.open.size() > kOpenMax) thread.open.front().resolved = true;
  } else if (!thread.open.empty()) {
    Resolve(span, &thread);
  }
  if (!thread.open.empty()) Drain(&thread);
}

timeline::TextId PrimitiveSink::DescriptionOf(const timeline::Span& span) {
  for (const timeline::Argument& argument : span.arguments) {
    if (argument.kind == timeline::Argument::Kind::kText) return argument.text;
  }
  return timeline::kNoText;
}

// A task has ended: it is the innermost around those in it that have none yet.
void PrimitiveSink::Resolve(const timeline::Span& span, Thread* thread) const {
  const bool mark = kinds_[span.category] == kMarks;
  for (auto primitive = thread->open.rbegin(); primitive != thread->open.rend(); ++primitive) {
    if (primitive->begin < span.begin) break;
    if (primitive->resolved || primitive->depth <= span.depth || span.end < primitive->end)
      continue;
    if (!mark) primitive->task = span.name;
    primitive->resolved = !mark || span.depth == 0;
  }
}

void PrimitiveSink::Drain(Thread* thread) {
  while (!thread->open.empty() && thread->open.front().resolved) {
    Add(thread->open.front(), thread);
    thread->open.pop_front();
  }
}

void PrimitiveSink::Add(const Primitive& primitive, Thread* thread) {
  if (primitive.task != timeline::kNoText) {
    thread->in_tasks = true;
    processes_[thread->process].in_tasks = true;
  }
  const RowKey key{primitive.task, primitive.kind, primitive.description};
  AddTo({1, primitive.self_ns}, &thread->rows[key]);
  ++thread->calls;
  if (primitive.kind == reorder_) {
    thread->pending.push_back({key, thread->last, primitive.self_ns});
    if (thread->pending.size() > kOpenMax) EndReorders(timeline::kNoText, thread);
    return;
  }
  thread->last = primitive.task != timeline::kNoText ? primitive.task : primitive.kind;
  EndReorders(thread->last, thread);
}

void PrimitiveSink::EndReorders(timeline::TextId after, Thread* thread) {
  for (const Reorder& reorder : thread->pending) {
    AddTo({1, reorder.self_ns}, &thread->reorders[{reorder.row, reorder.before, after}]);
  }
  thread->pending.clear();
}

PrimitiveDescription PrimitiveSink::Describe(const RowKey& row) const {
  const auto& [task, kind, description] = row;
  auto said = ParsePrimitive(texts_[description]);
  if (said.has_value() && said->kind == texts_[kind]) return *std::move(said);
  PrimitiveDescription alone;
  alone.kind = texts_[kind];
  return alone;
}

// Of all threads, into rows_ of their processes and into `reorders`.
void PrimitiveSink::JoinThreads(std::map<ReorderKey, Sum>* reorders) {
  for (Thread& thread : threads_) {
    for (Primitive& primitive : thread.open) primitive.resolved = true;
    Drain(&thread);
    EndReorders(timeline::kNoText, &thread);
  }
  for (const Thread& thread : threads_) {
    Process& process = processes_[thread.process];
    if (process.in_tasks && !thread.in_tasks) {
      process.values.helper_parts += thread.calls;
      continue;
    }
    for (const auto& [key, sum] : thread.rows) AddTo(sum, &process.rows[key]);
    for (const auto& [key, sum] : thread.reorders) AddTo(sum, &(*reorders)[key]);
  }
}

PrimitiveReport PrimitiveSink::Take() {
  std::map<ReorderKey, Sum> reorders;
  JoinThreads(&reorders);
  PrimitiveReport report;
  std::map<TotalKey, Sum> totals;
  Implementations implementations;
  std::vector<std::string> names;
  for (Process& process : processes_) {
    PrimitiveProcess& values = process.values;
    names.push_back(values.name);
    for (const auto& [row, sum] : process.rows) {
      const TotalKey key{NamePattern(texts_[std::get<0>(row)]), Describe(row)};
      Count(key.second, sum.calls, sum.total_ns, &values);
      AddTo(sum, &totals[key]);
      // What no task is recorded around stands under its task elsewhere, where there is one.
      if (process.in_tasks && key.first.empty()) continue;
      implementations.Add(key, names.size() - 1, sum.total_ns);
    }
    if (values.calls + values.not_whole + values.made > 0) report.processes.push_back(values);
  }
  for (const auto& [key, sum] : totals) {
    report.totals.push_back({key.first, key.second, sum.calls, sum.total_ns});
  }
  std::map<std::tuple<TotalKey, std::string, std::string>, Sum> reorder_totals;
  for (const auto& [key, sum] : reorders) {
    const auto& [row, before, after] = key;
    AddTo(sum, &reorder_totals[{{NamePattern(texts_[std::get<0>(row)]), Describe(row)},
                                NamePattern(texts_[before]),
                                NamePattern(texts_[after])}]);
  }
  for (const auto& [key, sum] : reorder_totals) {
    const auto& [total, before, after] = key;
    report.reorders.push_back({total.first, total.second, before, after, sum.calls, sum.total_ns});
  }
  report.differences = implementations.Take(names);
  Sort(&report.totals);
  Sort(&report.reorders);
  return report;
}

}  // namespace syncline::analysis
