// SPDX-License-Identifier: Apache-2.0
#include "timeline/testing/dump_sink.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace syncline::timeline::testing {

void DumpSink::OnText(TextId id, std::string_view text) {
  if (!texts_.emplace(id, text).second) Breach(absl::StrCat("text announced twice: ", id));
}

std::string DumpSink::Text(TextId id) const {
  const auto found = texts_.find(id);
  return found == texts_.end() ? absl::StrCat("UNKNOWN TEXT ", id) : found->second;
}

std::string DumpSink::TrackPath(TrackId id) const {
  const auto found = tracks_.find(id);
  if (found == tracks_.end()) return absl::StrCat("UNKNOWN TRACK ", id);
  const Track& track = found->second;
  // A process's name begins with its node's.
  const bool on_top = track.kind == TrackKind::kNode || track.kind == TrackKind::kFleet;
  if (on_top || track.kind == TrackKind::kProcess) return track.name;
  return absl::StrCat(TrackPath(track.parent), " / ", track.name);
}

std::string DumpSink::Arguments(const std::vector<Argument>& arguments) const {
  std::string out;
  for (const Argument& argument : arguments) {
    absl::StrAppend(&out, " ", Text(argument.key), "=");
    switch (argument.kind) {
      case Argument::Kind::kInt:
        absl::StrAppend(&out, argument.i);
        break;
      case Argument::Kind::kUint:
        absl::StrAppend(&out, argument.u);
        break;
      case Argument::Kind::kReal:
        absl::StrAppend(&out, argument.d);
        break;
      case Argument::Kind::kText:
        absl::StrAppend(&out, "\"", Text(argument.text), "\"");
        break;
    }
  }
  return out;
}

void DumpSink::Line(std::string line) {
  if (finished_) Breach("pushed after Finish");
  absl::StrAppend(&text_, line, "\n");
}

void DumpSink::OnTrack(const Track& track) {
  if (!tracks_.emplace(track.id, track).second) Breach("track announced twice");
  const bool on_top = track.kind == TrackKind::kNode || track.kind == TrackKind::kFleet;
  if (!on_top && !tracks_.contains(track.parent)) Breach("no parent");
  std::string line = absl::StrCat("track ", track.id, " ", TrackPath(track.id));
  if (track.kind == TrackKind::kCounter) line += " (counter)";
  if (track.kind == TrackKind::kAsync) line += " (async)";
  if (track.tid != 0) absl::StrAppend(&line, " tid=", track.tid);
  if (!track.unit.empty()) absl::StrAppend(&line, " unit=", track.unit);
  for (const auto& [key, value] : track.facts) absl::StrAppend(&line, " ", key, "=", value);
  Line(std::move(line));
}

void DumpSink::OnSpanBegin(const Span& span) {
  if (!tracks_.contains(span.track)) Breach("span without track");
  if (!span.late) {
    TimelineTime& last = last_.try_emplace(span.track, TimelineTime{kUnknownLo}).first->second;
    if (span.begin < last) Breach(absl::StrCat("begin out of order: ", Text(span.name)));
    last = span.begin;
  }
  open_[span.track].push_back(span);
}

void DumpSink::OnSpanEnd(const Span& span) {
  std::vector<Span>& open = open_[span.track];
  if (open.empty() || open.back().begin != span.begin || open.back().late != span.late) {
    Breach(absl::StrCat("end without its begin: ", Text(span.name)));
  } else {
    open.pop_back();
  }
  if (span.end < span.begin) Breach("negative duration");
  CheckNesting(span);
  if (!span.late && !span.clipped_end) {
    TimelineTime& last = last_[span.track];
    if (span.end < last) Breach(absl::StrCat("end out of order: ", Text(span.name)));
    last = span.end;
  }
  std::string line =
      absl::StrCat("span ", span.clipped_begin ? "<" : "[", span.begin.ns, ", ", span.end.ns,
                   span.clipped_end ? ">" : "]", " ", span.depth, " ", Text(span.name));
  if (span.category != kNoText) absl::StrAppend(&line, " {", Text(span.category), "}");
  absl::StrAppend(&line, " on ", TrackPath(span.track));
  if (tracks_[span.track].kind == TrackKind::kThread)
    absl::StrAppend(&line, " self=", span.self_ns);
  if (span.suspect) line += " suspect";
  if (span.late) line += " late";
  Line(line + Arguments(span.arguments));
}

void DumpSink::CheckNesting(const Span& span) {
  if (tracks_[span.track].kind != TrackKind::kThread || span.late) return;
  const size_t level = open_[span.track].size();
  std::vector<std::vector<Span>>& closed = closed_[span.track];
  if (closed.size() <= level + 1) closed.resize(level + 2);
  for (const Span& inner : closed[level + 1]) {
    // Also where it ends as that begins: whose end is whose nobody could tell then.
    const bool apart = inner.begin > span.end || span.begin == span.end;
    if (!apart && inner.end > span.end) {
      Breach(absl::StrCat(Text(span.name), " ends inside of ", Text(inner.name)));
    }
  }
  closed[level + 1].clear();
  closed[level].push_back(span);
}

void DumpSink::OnInstant(const Instant& instant) {
  Line(absl::StrCat("instant ", instant.time.ns, " ", Text(instant.name), " on ",
                    TrackPath(instant.track)) +
       Arguments(instant.arguments));
}

void DumpSink::OnCounter(const CounterValue& value) {
  Line(absl::StrCat("counter ", value.time.ns, " ", TrackPath(value.track), " = ", value.value));
}

void DumpSink::OnCodeSample(const CodeSample& sample) {
  std::string line = absl::StrCat("sample ", sample.time.ns, " ", TrackPath(sample.track), ":");
  for (size_t i = 0; i < sample.stack.size(); ++i) {
    const CodeFrame& frame = sample.stack[i];
    absl::StrAppend(&line, " ", Text(frame.function), i == sample.self ? "*" : "", "@",
                    Text(frame.file), ":", frame.line, " in ", Text(frame.library));
  }
  Line(std::move(line));
}

void DumpSink::OnThreadState(const ThreadState& state) {
  TimelineTime& last = last_.try_emplace(state.track, TimelineTime{kUnknownLo}).first->second;
  if (state.begin < last) Breach(absl::StrCat("state out of order: ", Text(state.name)));
  if (state.end < state.begin) Breach("negative duration");
  last = state.end;
  std::string line =
      absl::StrCat("state ", state.clipped_begin ? "<" : "[", state.begin.ns, ", ", state.end.ns,
                   state.clipped_end ? ">" : "]", " ", Text(state.name), " on ",
                   TrackPath(state.track), " cpu=", state.cpu);
  if (state.waker != kNoText) absl::StrAppend(&line, " waker=\"", Text(state.waker), "\"");
  for (const ThreadState::Taker& taker : state.had_cpu) {
    absl::StrAppend(&line, " \"", Text(taker.who), "\"=", taker.ns);
  }
  Line(absl::StrCat(line, ":", Arguments(state.arguments)));
}

void DumpSink::OnFlow(const Flow& flow) {
  Line(absl::StrCat("flow ", flow.id, " ", TrackPath(flow.from), " @", flow.sent.ns, " -> ",
                    TrackPath(flow.to), " @", flow.received.ns, ": ", Text(flow.name)));
}

void DumpSink::OnHole(const Hole& hole) {
  std::string line = absl::StrCat("hole [", hole.begin.ns, ", ", hole.end.ns, "] ",
                                  LossReasonName(hole.loss.reason), " on ", TrackPath(hole.track));
  if (hole.loss.count.has_value()) absl::StrAppend(&line, " count=", *hole.loss.count);
  if (!hole.loss.detail.empty()) absl::StrAppend(&line, ": ", hole.loss.detail);
  Line(std::move(line));
}

void DumpSink::OnClockBound(const ClockBound& bound) {
  if (!bound.bound_ns.has_value())
    return;  // traces of tests have none; the golden files stay short
  Line(absl::StrCat("bound ", bound.time.ns, " node ", bound.node, " = ", *bound.bound_ns));
}

void DumpSink::OnClockEvent(const ClockEvent& event) {
  Line(absl::StrCat("clock event [", event.begin.ns, ", ", event.end.ns, "] ", event.name,
                    " of node ", event.node, ": ", event.text));
}

absl::Status DumpSink::Finish() {
  finished_ = true;
  for (const auto& [track, open] : open_) {
    if (!open.empty()) Breach(absl::StrCat("never closed on ", TrackPath(track)));
  }
  return absl::OkStatus();
}

}  // namespace syncline::timeline::testing
