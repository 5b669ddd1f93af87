// SPDX-License-Identifier: Apache-2.0
#include "analysis/vtune_results.h"

#include <algorithm>
#include <utility>

#include "analysis/names.h"

namespace syncline::analysis {
namespace {

constexpr size_t kSpansMax = 5;

int64_t LengthOf(const VtuneSpan& span) { return span.end.ns - span.begin.ns; }

}  // namespace

VtuneSpanSink::VtuneSpanSink(std::vector<VtuneResult> results)
    : results_(std::move(results)), texts_(1), longest_(results_.size()) {
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!results_[i].path.empty()) processes_[results_[i].process] = i;
  }
}

void VtuneSpanSink::OnText(timeline::TextId id, std::string_view text) {
  if (processes_.empty()) return;
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = text;
}

void VtuneSpanSink::OnTrack(const timeline::Track& track) {
  if (track.kind != timeline::TrackKind::kThread) return;
  const auto found = processes_.find(track.process);
  if (found != processes_.end()) threads_[track.id] = {found->second, track.tid};
}

void VtuneSpanSink::OnSpanEnd(const timeline::Span& span) {
  const auto thread = threads_.find(span.track);
  // What was cut off or may have been hit by a loss is not as long as it looks.
  if (thread == threads_.end() || span.clipped_begin || span.clipped_end || span.suspect) return;
  VtuneSpan one;
  one.name = texts_[span.name];
  one.tid = thread->second.tid;
  one.begin = span.begin;
  one.end = span.end;
  auto [known, added] = longest_[thread->second.result].try_emplace(NamePattern(one.name), one);
  if (!added && LengthOf(one) > LengthOf(known->second)) known->second = std::move(one);
}

std::vector<VtuneResult> VtuneSpanSink::Take() {
  for (size_t i = 0; i < results_.size(); ++i) {
    std::vector<VtuneSpan>& spans = results_[i].spans;
    for (auto& [pattern, span] : longest_[i]) spans.push_back(std::move(span));
    std::stable_sort(spans.begin(), spans.end(), [](const VtuneSpan& a, const VtuneSpan& b) {
      return LengthOf(a) > LengthOf(b);
    });
    if (spans.size() > kSpansMax) spans.resize(kSpansMax);
  }
  return std::move(results_);
}

}  // namespace syncline::analysis
