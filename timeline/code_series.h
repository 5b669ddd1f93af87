// SPDX-License-Identifier: Apache-2.0
// Samples of the code that a node's threads ran, as they come beside its traces: known before the
// events are walked. Each thread's are a lane of the group "sampled code" of its process.
//
// Thread-safety: plain values; one thread.
#ifndef SYNCLINE_TIMELINE_CODE_SERIES_H_
#define SYNCLINE_TIMELINE_CODE_SERIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/identity.h"
#include "timeline/series_place.h"

namespace syncline::timeline {

class Emitter;

// As CodeFrame and CodeSample of sink.h, with texts.
struct NamedFrame {
  std::string function;
  std::string library;
  std::string file;
  int32_t line = 0;
};

struct SampledStack {
  std::vector<uint32_t> frames;  // index into SampledCode::frames, the outermost first; never empty
  size_t self = 0;               // index into `frames`
};

struct SampledPoint {
  int64_t clock_ns = 0;  // of the node's trace clock
  uint32_t stack = 0;    // index into SampledCode::stacks
};

struct SampledThread {
  ProcessKey process;  // key.node is filled in by the builder
  int32_t tid = 0;     // as the timeline's own tracks call it
  std::string name;
  std::vector<SampledPoint> points;  // by time
};

struct SampledCode {
  int64_t period_ns = 0;  // of processor time: what a sample stands for
  std::vector<NamedFrame> frames;
  std::vector<SampledStack> stacks;
  std::vector<SampledThread> threads;
};

void PushSampledCode(const SampledCode& code, const SeriesPlace& place, Emitter* emitter);

}  // namespace syncline::timeline

#endif  // SYNCLINE_TIMELINE_CODE_SERIES_H_
