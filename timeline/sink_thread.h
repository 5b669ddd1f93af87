// SPDX-License-Identifier: Apache-2.0
// Sinks on a thread of their own: the builder goes on while they work.
//
// What is pushed is copied into chunks, a few of which lie between the two threads; the sinks get
// the same calls in the same order. The builder waits when all chunks are full, so memory stays
// bounded: some hundred KiB, more with long texts.
//
// Thread-safety: one thread pushes. The sinks are called by another one, after Finish() by none.
#ifndef SYNCLINE_TIMELINE_SINK_THREAD_H_
#define SYNCLINE_TIMELINE_SINK_THREAD_H_

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "timeline/sink.h"

namespace syncline::timeline {

class SinkThread final : public TimelineSink {
 public:
  // `sinks` outlive this.
  explicit SinkThread(std::vector<TimelineSink*> sinks);
  // Without Finish() the sinks get what is on its way, and no Finish() either.
  ~SinkThread() override;

  void OnText(TextId id, std::string_view text) override;
  void OnTrack(const Track& track) override;
  void OnSpanBegin(const Span& span) override;
  void OnSpanEnd(const Span& span) override;
  void OnInstant(const Instant& instant) override;
  void OnCounter(const CounterValue& value) override;
  void OnCodeSample(const CodeSample& sample) override;
  void OnThreadState(const ThreadState& state) override;
  void OnFlow(const Flow& flow) override;
  void OnHole(const Hole& hole) override;
  void OnClockBound(const ClockBound& bound) override;
  void OnClockEvent(const ClockEvent& event) override;
  // Returns when the sinks have had all that was pushed.
  void Drain();
  // When all sinks have had everything; the first of their errors.
  absl::Status Finish() override;

 private:
  enum class Call : uint8_t {
    kText,
    kTrack,
    kSpanBegin,
    kSpanEnd,
    kInstant,
    kCounter,
    kCodeSample,
    kThreadState,
    kFlow,
    kHole,
    kClockBound,
    kClockEvent,
  };
  struct Chunk {
    std::vector<Call> calls;  // each takes the next of its values
    std::vector<std::pair<TextId, std::string>> texts;
    std::vector<Track> tracks;
    // Begins and ends. Arguments one behind the other, so that both threads go through memory
    // straight on.
    std::vector<SpanFacts> spans;
    std::vector<uint32_t> argument_counts;
    std::vector<Argument> arguments;
    std::vector<Instant> instants;
    std::vector<CounterValue> counters;
    std::vector<CodeSample> samples;
    std::vector<ThreadState> states;
    std::vector<Flow> flows;
    std::vector<Hole> holes;
    std::vector<ClockBound> bounds;
    std::vector<ClockEvent> events;

    void Clear();
  };
  static constexpr size_t kChunks = 4;
  static constexpr size_t kChunkCalls = 512;

  void PushSpan(Call call, const Span& span);
  void Count(Call call);
  template <class T>
  void Push(Call call, std::vector<T> Chunk::*values, const T& value);
  void HandOver();
  void Run();
  static void Replay(const Chunk& chunk, TimelineSink* sink);
  void End();

  const std::vector<TimelineSink*> sinks_;
  std::array<Chunk, kChunks> chunks_;  // the one with number n is at n % kChunks
  Chunk* filling_;
  std::mutex mutex_;
  std::condition_variable moved_;
  size_t filled_ ABSL_GUARDED_BY(mutex_) = 0;    // chunks before this one are the sinks'
  size_t replayed_ ABSL_GUARDED_BY(mutex_) = 0;  // chunks before this one are the builder's again
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_SINK_THREAD_H_
