#include "timeline/thread_spans.h"

#include <algorithm>
#include <utility>

namespace syncline::timeline {

void ThreadSpans::CoverageBegins(const Moment& moment) {
  coverage_begin_ = moment;
  min_depth_ = 0xffff;
}

void ThreadSpans::CoverageEnds(const Moment& moment) {
  while (!stack_.empty()) CloseTopUnseen(moment);
  coverage_begin_.reset();
}

void ThreadSpans::Lost(const Moment& begin, int64_t end_ns) {
  for (Open& open : stack_) {
    if (open.placeholder || open.sure_until.has_value()) continue;
    const bool began_inside = open.span.begin > begin.timeline;
    open.sure_until = began_inside ? Moment{open.span.node_begin, open.span.begin} : begin;
  }
  lost_until_ns_ = std::max(lost_until_ns_, end_ns);
  coverage_begin_.reset();  // what turns out to be open may have begun inside the loss
}

void ThreadSpans::Seen(const Moment& moment) {
  last_ = moment;
  seen_ = true;
}

void ThreadSpans::FillUpTo(uint16_t depth, const Moment& moment) {
  while (stack_.size() < depth) {
    const auto level = static_cast<uint16_t>(stack_.size());
    const bool since_coverage = coverage_begin_.has_value() && level < min_depth_;
    const Moment begin = since_coverage ? *coverage_begin_ : moment;
    Open open;
    open.placeholder = true;
    open.span.track = track_;
    open.span.depth = level;
    open.span.clipped_begin = true;
    open.span.begin = begin.timeline;
    open.span.node_begin = begin.node;
    stack_.push_back(std::move(open));
    if (!since_coverage) ++recovered_count_;
  }
}

void ThreadSpans::CloseTop(const Moment& end, bool clipped) {
  Open open = std::move(stack_.back());
  stack_.pop_back();
  // Its end was never seen, so its name is not known: there is nothing to draw.
  if (open.placeholder && clipped) return;
  Span& span = open.span;
  span.end = std::max(end.timeline, span.begin);
  span.node_end = end.node;
  span.clipped_end = clipped;
  span.suspect = lost_until_ns_ != kUnknownLo && span.node_begin.ns <= lost_until_ns_;
  const int64_t duration_ns = span.end.ns - span.begin.ns;
  span.self_ns = std::max<int64_t>(0, duration_ns - open.children_ns);
  if (!stack_.empty()) stack_.back().children_ns += duration_ns;
  if (open.placeholder) {
    emitter_->LateSpan(std::move(span));
  } else {
    emitter_->SpanEnd(span);
  }
}

Moment ThreadSpans::LastSeen() const {
  return seen_ ? last_ : Moment{stack_.back().span.node_begin, stack_.back().span.begin};
}

void ThreadSpans::CloseTopUnseen(const Moment& otherwise) {
  const Moment end = stack_.back().sure_until.value_or(otherwise);
  CloseTop(end, /*clipped=*/true);
}

Span* ThreadSpans::Begin(const Task& task, const Moment& moment) {
  if (task.depth > kDepthMax) {
    ++recovered_count_;
    return nullptr;
  }
  while (stack_.size() > task.depth) {
    CloseTopUnseen(LastSeen());
    ++recovered_count_;
  }
  FillUpTo(task.depth, moment);
  min_depth_ = std::min(min_depth_, task.depth);
  Open open;
  open.id = task.id;
  open.name_id = task.name_id;
  open.domain_id = task.domain_id;
  open.span.track = track_;
  open.span.name = task.name;
  open.span.category = task.category;
  open.span.depth = task.depth;
  open.span.begin = moment.timeline;
  open.span.node_begin = moment.node;
  if (moment.node.ns <= lost_until_ns_) open.sure_until = moment;
  stack_.push_back(std::move(open));
  emitter_->SpanBegin(stack_.back().span);
  Seen(moment);
  return &stack_.back().span;
}

void ThreadSpans::End(const Task& task, const Moment& moment) {
  if (task.depth > kDepthMax) {
    ++recovered_count_;
    return;
  }
  while (stack_.size() > size_t{task.depth} + 1) {
    CloseTopUnseen(LastSeen());
    ++recovered_count_;
  }
  if (stack_.size() == size_t{task.depth} + 1) {
    const Open& top = stack_.back();
    const bool other =
        !top.placeholder && (top.name_id != task.name_id || top.domain_id != task.domain_id);
    if (other) {
      CloseTopUnseen(LastSeen());
      ++recovered_count_;
    }
  }
  FillUpTo(static_cast<uint16_t>(task.depth + 1), moment);
  min_depth_ = std::min(min_depth_, task.depth);
  Open& top = stack_.back();
  if (top.placeholder) {
    top.span.name = task.name;
    top.span.category = task.category;
  }
  CloseTop(moment, /*clipped=*/false);
  Seen(moment);
}

Span* ThreadSpans::FindOpen(IttId id, uint16_t depth) {
  if (!id) return depth < stack_.size() ? &stack_[depth].span : nullptr;
  for (size_t i = stack_.size(); i-- > 0;) {
    if (stack_[i].id == id) return &stack_[i].span;
  }
  return nullptr;
}

void ThreadSpans::Finish() {
  while (!stack_.empty()) CloseTopUnseen(LastSeen());
}

}  // namespace syncline::timeline
