// SPDX-License-Identifier: Apache-2.0
#include "timeline/sink_thread.h"

namespace syncline::timeline {

SinkThread::SinkThread(std::vector<TimelineSink*> sinks)
    : sinks_(std::move(sinks)), filling_(&chunks_[0]), thread_([this] { Run(); }) {}

SinkThread::~SinkThread() { End(); }

void SinkThread::Chunk::Clear() {
  calls.clear();
  texts.clear();
  tracks.clear();
  spans.clear();
  argument_counts.clear();
  arguments.clear();
  instants.clear();
  counters.clear();
  samples.clear();
  states.clear();
  flows.clear();
  holes.clear();
  bounds.clear();
  events.clear();
}

template <class T>
void SinkThread::Push(Call call, std::vector<T> Chunk::*values, const T& value) {
  (filling_->*values).push_back(value);
  Count(call);
}

void SinkThread::PushSpan(Call call, const Span& span) {
  filling_->spans.push_back(span);
  filling_->argument_counts.push_back(static_cast<uint32_t>(span.arguments.size()));
  filling_->arguments.insert(filling_->arguments.end(), span.arguments.begin(),
                             span.arguments.end());
  Count(call);
}

void SinkThread::Count(Call call) {
  filling_->calls.push_back(call);
  if (filling_->calls.size() == kChunkCalls) HandOver();
}

void SinkThread::OnText(TextId id, std::string_view text) {
  Push(Call::kText, &Chunk::texts, std::pair(id, std::string(text)));
}
void SinkThread::OnTrack(const Track& track) { Push(Call::kTrack, &Chunk::tracks, track); }
void SinkThread::OnSpanBegin(const Span& span) { PushSpan(Call::kSpanBegin, span); }
void SinkThread::OnSpanEnd(const Span& span) { PushSpan(Call::kSpanEnd, span); }
void SinkThread::OnInstant(const Instant& instant) {
  Push(Call::kInstant, &Chunk::instants, instant);
}
void SinkThread::OnCounter(const CounterValue& value) {
  Push(Call::kCounter, &Chunk::counters, value);
}
void SinkThread::OnCodeSample(const CodeSample& sample) {
  Push(Call::kCodeSample, &Chunk::samples, sample);
}
void SinkThread::OnThreadState(const ThreadState& state) {
  Push(Call::kThreadState, &Chunk::states, state);
}
void SinkThread::OnFlow(const Flow& flow) { Push(Call::kFlow, &Chunk::flows, flow); }
void SinkThread::OnHole(const Hole& hole) { Push(Call::kHole, &Chunk::holes, hole); }
void SinkThread::OnClockBound(const ClockBound& bound) {
  Push(Call::kClockBound, &Chunk::bounds, bound);
}
void SinkThread::OnClockEvent(const ClockEvent& event) {
  Push(Call::kClockEvent, &Chunk::events, event);
}

// Gives the chunk away, and waits for one to go on with.
void SinkThread::HandOver() {
  std::unique_lock lock(mutex_);
  ++filled_;
  moved_.notify_one();
  moved_.wait(lock, [this] { return filled_ - replayed_ < kChunks; });
  filling_ = &chunks_[filled_ % kChunks];
}

void SinkThread::Drain() {
  HandOver();
  std::unique_lock lock(mutex_);
  moved_.wait(lock, [this] { return replayed_ == filled_; });
}

void SinkThread::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    moved_.wait(lock, [this] { return replayed_ < filled_ || ended_; });
    if (replayed_ == filled_) return;
    Chunk* const chunk = &chunks_[replayed_ % kChunks];
    lock.unlock();
    for (TimelineSink* sink : sinks_) Replay(*chunk, sink);
    chunk->Clear();
    lock.lock();
    ++replayed_;
    moved_.notify_one();
  }
}

void SinkThread::Replay(const Chunk& chunk, TimelineSink* sink) {
  size_t text = 0, track = 0, span = 0, instant = 0, counter = 0, sample = 0;
  size_t state = 0, flow = 0, hole = 0, bound = 0, event = 0;
  Span whole;
  auto argument = chunk.arguments.begin();
  const auto take_span = [&] {
    static_cast<SpanFacts&>(whole) = chunk.spans[span];
    const auto end = argument + chunk.argument_counts[span++];
    whole.arguments.assign(argument, end);
    argument = end;
  };
  for (const Call call : chunk.calls) {
    switch (call) {
      case Call::kText: {
        const auto& [id, said] = chunk.texts[text++];
        sink->OnText(id, said);
        break;
      }
      case Call::kTrack:
        sink->OnTrack(chunk.tracks[track++]);
        break;
      case Call::kSpanBegin:
        take_span();
        sink->OnSpanBegin(whole);
        break;
      case Call::kSpanEnd:
        take_span();
        sink->OnSpanEnd(whole);
        break;
      case Call::kInstant:
        sink->OnInstant(chunk.instants[instant++]);
        break;
      case Call::kCounter:
        sink->OnCounter(chunk.counters[counter++]);
        break;
      case Call::kCodeSample:
        sink->OnCodeSample(chunk.samples[sample++]);
        break;
      case Call::kThreadState:
        sink->OnThreadState(chunk.states[state++]);
        break;
      case Call::kFlow:
        sink->OnFlow(chunk.flows[flow++]);
        break;
      case Call::kHole:
        sink->OnHole(chunk.holes[hole++]);
        break;
      case Call::kClockBound:
        sink->OnClockBound(chunk.bounds[bound++]);
        break;
      case Call::kClockEvent:
        sink->OnClockEvent(chunk.events[event++]);
        break;
    }
  }
}

void SinkThread::End() {
  if (!thread_.joinable()) return;
  {
    const std::unique_lock lock(mutex_);
    ++filled_;
    ended_ = true;
  }
  moved_.notify_one();
  thread_.join();
}

absl::Status SinkThread::Finish() {
  End();
  absl::Status first;
  for (TimelineSink* sink : sinks_) first.Update(sink->Finish());
  return first;
}

}  // namespace syncline::timeline
