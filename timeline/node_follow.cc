// SPDX-License-Identifier: Apache-2.0
// The short way of tasks: nearly all are plain, of a known thread, and follow on what was found.
#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
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
  return torch_.IgnoresTask(span->name);
}

bool NodeBuilder::FollowTask(const StreamMerger::Head& head) {
  PlainTask task;
  if (!event_.ReadTask(*head.record, &task)) return false;
  const Source& source = sources_[head.source];
  const KnownKey& known = source.known[task.thread % kKnownKeys];
  if (known.key != task.thread || known.thread >= tracks_.threads().size()) return false;
  Thread& thread = tracks_.threads()[known.thread];
  if (thread.spans == nullptr || thread.last_source != head.source) return false;
  if (task.numbered && !thread.numbers.Follows(task.number)) return false;  // the first, or a loss
  if (thread.numbers.has_pending() || task.depth > ThreadSpans::kDepthMax) return false;
  Process& process = tracks_.processes()[thread.process];
  if (!process.covered_since.has_value()) return false;
  ThreadSpans::Task span;
  const bool heeded = events_.Heeds(EventKind::kTaskBegin);
  if (heeded && !FollowNames(task, process, &span)) return false;
  const int64_t time_ns = head.record->time_ns;
  if (!losses_.SeenAgain(known.thread, head.source, time_ns)) return false;
  thread.last_ns = time_ns;
  if (task.numbered) thread.numbers.Found(task.number, time_ns);
  result_.seen->end_ns = std::max(result_.seen->end_ns, time_ns);
  // Set piece by piece: what was put together elsewhere is waited for when it is copied.
  Moment& moment = process.last.has_value() ? *process.last : process.last.emplace();
  moment.node.clock = context_.clock;
  moment.node.ns = time_ns;
  moment.timeline = head.time;
  const bool shows = events_.Shows(EventKind::kTaskBegin);
  ++process.found_events;
  if (context_.IsCounted(head.time)) {
    ++process.counted_here;
    result_.events += shows;
  }
  if (!shows) {
    thread.spans->Seen(moment);
    return true;
  }
  span.name_id = task.name;
  span.domain_id = task.domain;
  span.depth = task.depth;
  if (!task.begins) {
    thread.spans->End(span, moment);
    return true;
  }
  if (task.id) span.id = task.id;
  Span* const begun = thread.spans->Begin(span, moment);
  if (task.id) ids_.Add(task.id, &begun->arguments);
  if (task.parent) parent_ids_.Add(task.parent, &begun->arguments);
  return true;
}

void NodeBuilder::OnTask(const NodeEvent& event) {
  ThreadSpans::Task task;
  task.name_id = event.fields.U32(Field::kName);
  task.domain_id = event.fields.U32(Field::kDomain);
  task.depth = static_cast<uint16_t>(event.fields.U64(Field::kDepth));
  task.id = event.fields.Id();
  task.category = tracks_.NameText(event.process, task.domain_id);
  const uint64_t function = event.fields.U64(Field::kFn);
  if (task.name_id != 0) {
    task.name = tracks_.NameText(event.process, task.name_id);
  } else if (const std::string_view text = event.fields.Text(Field::kName); !text.empty()) {
    task.name = context_.emitter->Text(text);
  } else {
    task.name = context_.emitter->Text(function != 0 ? absl::StrFormat("function 0x%x", function)
                                                     : std::string("unnamed task"));
  }
  torch_.OnTask(task.name, event);
  if (!events_.Shows(event.kind)) return;
  ThreadSpans& spans = *tracks_.ThreadAt(event.thread).spans;
  if (event.kind == EventKind::kTaskEnd) {
    spans.End(task, event.at);
    return;
  }
  Span* span = spans.Begin(task, event.at);
  if (span == nullptr) return;
  ids_.Add(task.id, &span->arguments);
  parent_ids_.Add(event.fields.ParentId(), &span->arguments);
  if (function != 0) {
    Argument argument;
    argument.key = context_.emitter->Text("function");
    argument.kind = Argument::Kind::kText;
    argument.text = context_.emitter->Text(absl::StrFormat("0x%x", function));
    span->arguments.push_back(argument);
  }
}

}  // namespace syncline::timeline
