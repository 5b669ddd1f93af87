// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/segments.h"

#include <algorithm>
#include <utility>

namespace syncline::analysis::why {
namespace {

constexpr int64_t kSilenceMinNs = 20'000;

struct Open {
  int64_t end_ns;
  NameId name;
  bool works;
  bool in_loader;
  bool waits;
};

class Partition {
 public:
  explicit Partition(std::vector<Segment> buffer) : segments_(std::move(buffer)) {
    segments_.clear();
  }
  void Emit(int64_t until_ns) {
    if (until_ns <= now_ns_) return;
    Segment segment{now_ns_, until_ns};
    if (!open_.empty()) {
      segment.leaf = open_.back().name;
      segment.works = open_.back().works;
      segment.in_loader = open_.back().in_loader;
      segment.waits = open_.back().waits;
    }
    segments_.push_back(segment);
    now_ns_ = until_ns;
  }
  void CloseUntil(int64_t until_ns) {
    while (!open_.empty() && open_.back().end_ns <= until_ns) {
      Emit(open_.back().end_ns);
      open_.pop_back();
    }
  }
  void Begin(const TaskSpan& span, const TaskNames& names) {
    if (!begun_) now_ns_ = span.begin_ns;
    begun_ = true;
    CloseUntil(span.begin_ns);
    Emit(span.begin_ns);
    const bool in_loader =
        names.Is(span.name, Role::kLoader) || (!open_.empty() && open_.back().in_loader);
    // A task that outlasts the one around it (its end was lost) is cut there.
    const int64_t end_ns = open_.empty() ? span.end_ns : std::min(span.end_ns, open_.back().end_ns);
    open_.push_back(
        {end_ns, span.name, names.Works(span), in_loader, names.Is(span.name, Role::kWait)});
  }
  std::vector<Segment> Take() {
    while (!open_.empty()) CloseUntil(open_.back().end_ns);
    return std::move(segments_);
  }

 private:
  bool begun_ = false;
  int64_t now_ns_ = 0;
  std::vector<Open> open_;
  std::vector<Segment> segments_;
};

}  // namespace

std::vector<Segment> SegmentsOf(std::span<const TaskSpan> spans, const TaskNames& names,
                                std::vector<Segment> buffer) {
  Partition partition(std::move(buffer));
  for (const TaskSpan& span : spans) {
    if (names.IsMark(span.category)) continue;
    partition.Begin(span, names);
  }
  return partition.Take();
}

std::vector<Silence> SilencesOf(std::span<const Segment> segments,
                                std::span<const CollectiveEntry> collectives) {
  std::vector<Silence> silences;
  std::vector<uint32_t> real;  // that are no transfers
  for (uint32_t i = 0; i < collectives.size(); ++i) {
    if (!collectives[i].transfer) real.push_back(i);
  }
  size_t entered = 0;  // of them, before the silence's end
  std::vector<uint32_t> pending;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    if (segment.works || segment.end_ns - segment.begin_ns <= kSilenceMinNs) continue;
    Silence silence{segment.begin_ns, segment.end_ns, {segment.leaf, kNoTask, kNoTask}};
    silence.is_wait = segment.waits;
    if (i > 0) silence.site.before = segments[i - 1].leaf;
    if (i + 1 < segments.size()) silence.site.after = segments[i + 1].leaf;
    while (entered < real.size() && collectives[real[entered]].entered_ns < segment.end_ns) {
      pending.push_back(real[entered++]);
    }
    std::erase_if(pending, [&](uint32_t index) {
      return collectives[index].left_ns.value_or(INT64_MIN) <= segment.begin_ns;
    });
    silence.pending = pending;
    silences.push_back(std::move(silence));
  }
  return silences;
}

}  // namespace syncline::analysis::why
