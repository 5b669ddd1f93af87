// SPDX-License-Identifier: Apache-2.0
#include "timeline/thread_spans.h"

#include <algorithm>
#include <span>
#include <utility>

namespace syncline::timeline {

// What lies there keeps the memory of its arguments, and what every begin sets and every end: name,
// place, times.
inline ThreadSpans::Open& ThreadSpans::Push() {
  if (size_ == levels_.size()) levels_.emplace_back();
  Open& open = levels_[size_++];
  open.span.clipped_begin = open.span.clipped_end = open.span.suspect = false;
  open.span.end = {};
  open.span.node_end = {};
  open.span.self_ns = 0;
  open.span.arguments.clear();
  open.span.name = open.span.category = kNoText;
  open.id = {};
  open.name_id = open.domain_id = 0;
  open.placeholder = false;
  open.sure_until.reset();
  open.children_ns = 0;
  return open;
}

void ThreadSpans::CoverageBegins(const Moment& moment) {
  coverage_begin_ = moment;
  min_depth_ = 0xffff;
}

void ThreadSpans::CoverageEnds(const Moment& moment) {
  // A call that the thread was inside of then may have written the end of a task since.
  const Moment end = NotInside(moment);
  while (size_ > 0) CloseTopUnseen(end, end.timeline);
  coverage_begin_.reset();
}

// What is open lasted at least as long as what was found to lie in it.
Moment ThreadSpans::NotInside(const Moment& moment) const {
  return last_closed_.timeline > moment.timeline ? last_closed_ : moment;
}

void ThreadSpans::Lost(const Moment& begin, int64_t end_ns) {
  for (Open& open : std::span(levels_).first(size_)) {
    if (open.placeholder || open.sure_until.has_value()) continue;
    const bool began_inside = open.span.begin > begin.timeline;
    open.sure_until =
        NotInside(began_inside ? Moment{open.span.node_begin, open.span.begin} : begin);
  }
  lost_until_ns_ = std::max(lost_until_ns_, end_ns);
  coverage_begin_.reset();  // what turns out to be open may have begun inside the loss
}

void ThreadSpans::FillUpTo(uint16_t depth, const Moment& moment) {
  while (size_ < depth) {
    const auto level = static_cast<uint16_t>(size_);
    const bool since_coverage = coverage_begin_.has_value() && level < min_depth_;
    const Moment begin = since_coverage ? *coverage_begin_ : moment;
    Open& open = Push();
    open.placeholder = true;
    open.span.track = track_;
    open.span.depth = level;
    open.span.clipped_begin = true;
    open.span.begin = begin.timeline;
    open.span.node_begin = begin.node;
    if (!since_coverage) ++recovered_count_;
  }
}

void ThreadSpans::PushBegins() {
  for (; pushed_ < size_; ++pushed_) {
    const Open& open = levels_[pushed_];
    if (open.placeholder) continue;
    if (open.span.arguments.empty()) {
      emitter_->SpanBegin(open.span);
      continue;
    }
    Span begin = open.span;
    begin.arguments.clear();  // what was said of it since comes with its end
    emitter_->SpanBegin(begin);
  }
}

void ThreadSpans::PushTop(const Moment& end, bool clipped) {
  PushBegins();
  Open& open = levels_[size_ - 1];
  Span& span = open.span;
  span.node_end = end.node;
  span.clipped_end = clipped;
  span.suspect = lost_until_ns_ != kUnknownLo && span.node_begin.ns <= lost_until_ns_;
  span.self_ns = std::max<int64_t>(0, span.end.ns - span.begin.ns - open.children_ns);
  if (open.placeholder) {
    emitter_->LateSpan(span);
  } else {
    emitter_->SpanEnd(span);
  }
}

inline void ThreadSpans::CloseTop(const Moment& end, bool clipped) {
  const size_t level = size_ - 1;
  Open& open = levels_[level];
  Span& span = open.span;
  span.end = std::max(end.timeline, span.begin);
  const int64_t duration_ns = span.end.ns - span.begin.ns;
  // Its end was never seen, so its name is not known: there is nothing to draw.
  const bool unknown = open.placeholder && clipped;
  if (!unknown) {
    last_closed_ = NotInside({end.node, span.end});
    if (level > 0) levels_[level - 1].children_ns += duration_ns;
    // Of a placeholder nobody knows whether it was open; what it lies in was.
    for (size_t outer = level; outer-- > 0;) {
      levels_[outer].Holds(span, {end.node, span.end});
      if (!levels_[outer].placeholder) break;
    }
  }
  const bool pushed = pushed_ > level && !open.placeholder;
  const bool shown = span.end >= shown_.begin && span.begin < shown_.end;
  if (pushed || (shown && !unknown)) PushTop(end, clipped);
  if (open_ids_ != nullptr && open.id) open_ids_->Remove(open.id, thread_);
  --size_;
  pushed_ = std::min(pushed_, size_);
}

Moment ThreadSpans::LastSeen() const {
  return seen_ ? last_ : Moment{levels_[size_ - 1].span.node_begin, levels_[size_ - 1].span.begin};
}

void ThreadSpans::CloseTopUnseen(const Moment& otherwise, TimelineTime now) {
  const std::optional<Moment>& sure = levels_[size_ - 1].sure_until;
  // A loss may be known before what was written before it.
  const bool lost = sure.has_value() && sure->timeline <= now;
  CloseTop(lost ? Moment(*sure) : otherwise, /*clipped=*/true);
}

Span* ThreadSpans::Begin(const Task& task, const Moment& moment) {
  if (task.depth > kDepthMax) {
    ++recovered_count_;
    return nullptr;
  }
  while (size_ > task.depth) {
    CloseTopUnseen(LastSeen(), moment.timeline);
    ++recovered_count_;
  }
  if (size_ < task.depth) FillUpTo(task.depth, moment);
  min_depth_ = std::min(min_depth_, task.depth);
  Open& open = Push();
  open.id = task.id;
  if (open_ids_ != nullptr && task.id) open_ids_->Add(task.id, thread_);
  open.name_id = task.name_id;
  open.domain_id = task.domain_id;
  open.span.track = track_;
  open.span.name = task.name;
  open.span.category = task.category;
  open.span.depth = task.depth;
  open.span.begin = moment.timeline;
  open.span.node_begin = moment.node;
  if (moment.node.ns <= lost_until_ns_) open.sure_until = moment;
  if (shown_.Contains(moment.timeline)) PushBegins();
  Seen(moment);
  return &open.span;
}

void ThreadSpans::End(const Task& task, const Moment& moment) {
  if (task.depth > kDepthMax) {
    ++recovered_count_;
    return;
  }
  while (size_ > size_t{task.depth} + 1) {
    CloseTopUnseen(LastSeen(), moment.timeline);
    ++recovered_count_;
  }
  if (size_ == size_t{task.depth} + 1) {
    const Open& top = levels_[size_ - 1];
    const bool other =
        !top.placeholder && (top.name_id != task.name_id || top.domain_id != task.domain_id);
    if (other) {
      CloseTopUnseen(LastSeen(), moment.timeline);
      ++recovered_count_;
    }
  }
  if (size_ <= task.depth) FillUpTo(static_cast<uint16_t>(task.depth + 1), moment);
  min_depth_ = std::min(min_depth_, task.depth);
  Open& top = levels_[size_ - 1];
  if (top.placeholder) {
    top.span.name = task.name;
    top.span.category = task.category;
  }
  CloseTop(moment, /*clipped=*/false);
  Seen(moment);
}

const Span* ThreadSpans::Innermost() const {
  for (size_t i = size_; i-- > 0;) {
    if (!levels_[i].placeholder) return &levels_[i].span;
  }
  return nullptr;
}

const Span* ThreadSpans::SurelyInnermost() const {
  if (size_ == 0 || size_ > kDepthMax) return nullptr;
  const Open& top = levels_[size_ - 1];
  return top.placeholder || top.sure_until.has_value() ? nullptr : &top.span;
}

bool ThreadSpans::IsOpenBeside(uint32_t domain_id, IttId id, TimelineTime begin) const {
  const auto open = std::span(levels_).first(size_);
  return std::any_of(open.begin(), open.end(), [&](const Open& one) {
    return one.id == id && one.domain_id == domain_id && one.span.begin != begin;
  });
}

Span* ThreadSpans::FindOpen(IttId id, uint16_t depth) {
  if (!id) return depth < size_ ? &levels_[depth].span : nullptr;
  for (size_t i = size_; i-- > 0;) {
    if (levels_[i].id == id) return &levels_[i].span;
  }
  return nullptr;
}

void ThreadSpans::ListOpenIds(OpenIds* ids, uint32_t thread) {
  open_ids_ = ids;
  thread_ = thread;
  for (const Open& open : std::span(levels_).first(size_)) {
    if (open.id) ids->Add(open.id, thread);
  }
}

void ThreadSpans::Finish() {
  while (size_ > 0) CloseTopUnseen(LastSeen(), {kUnknownHi});
}

}  // namespace syncline::timeline
