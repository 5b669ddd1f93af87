// SPDX-License-Identifier: Apache-2.0
// The short way of tasks that no sink is shown.
#include <algorithm>

#include "timeline/node_builder.h"

namespace syncline::timeline {

// False where they were not met before, or may belong to a collective, of a group that is announced
// or that will be.
bool NodeBuilder::FollowNames(const PlainTask& task, const Process& process,
                              ThreadSpans::Task* span) const {
  // Texts are numbered in the order in which they are met.
  const size_t known = process.texts.size();
  if (task.name == 0 || task.name >= known || task.domain >= known) return false;
  span->name = process.texts[task.name];
  span->category = process.texts[task.domain];
  if (span->name == kNoText || (span->category == kNoText && task.domain != 0)) return false;
  return IsNoCollective(span->name);
}

bool NodeBuilder::FollowTask(const StreamMerger::Head& head) {
  PlainTask task;
  if (!event_.ReadTask(*head.record, &task)) return false;
  const Source& source = sources_[head.source];
  if (source.thread_key != task.thread || source.thread >= threads_.size()) return false;
  Thread& thread = threads_[source.thread];
  if (thread.spans == nullptr || thread.last_source != head.source) return false;
  if (task.numbered && task.number != thread.next_number) return false;  // the first, or a loss
  if (!thread.pending_losses.empty()) return false;
  Process& process = processes_[thread.process];
  if (!process.covered_since.has_value()) return false;
  ThreadSpans::Task span;
  const bool heeded = events_.Heeds(EventKind::kTaskBegin);
  if (heeded && !FollowNames(task, process, &span)) return false;
  const int64_t time_ns = head.record->time_ns;
  if (!source.losses->SeenAgain(source.thread, time_ns)) return false;
  thread.last_ns = time_ns;
  if (task.numbered) {
    thread.next_number = static_cast<uint16_t>(task.number + 1);
    thread.task_ns = time_ns;
  }
  result_.seen->end_ns = std::max(result_.seen->end_ns, time_ns);
  ++process.found_events;
  process.last = Moment{{clock_, time_ns}, head.time};
  if (IsCounted(head.time)) ++process.counted_here;
  if (!events_.Shows(EventKind::kTaskBegin)) return true;
  span.name_id = task.name;
  span.domain_id = task.domain;
  span.depth = task.depth;
  if (!task.begins) {
    thread.spans->End(span, *process.last);
    return true;
  }
  span.id = task.id;
  if (Span* const begun = thread.spans->Begin(span, *process.last); begun != nullptr) {
    AddId(&id_texts_, task.id, &begun->arguments);
    AddId(&parent_texts_, task.parent, &begun->arguments);
  }
  return true;
}

}  // namespace syncline::timeline
