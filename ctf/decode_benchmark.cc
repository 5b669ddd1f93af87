// SPDX-License-Identifier: Apache-2.0
// How fast one stream is stepped through, and how fast every field of it is decoded.
// Counters: events and bytes per second, one core, bytes in memory.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "ctf/generator.h"
#include "ctf/reader.h"

namespace syncline::ctf {
namespace {

struct Input {
  std::shared_ptr<const TraceLayout> layout;
  GeneratedStream stream;
};

const Input& TheInput() {
  static const Input input = [] {
    Input made;
    made.layout = BuildLayout(ParseMetadata(GeneratedMetadata()).value()).value();
    made.stream = GenerateStream({.events_per_stream = 1'000'000}, 0);
    return made;
  }();
  return input;
}

void Count(benchmark::State& state, const Input& input) {
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(input.stream.events));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(input.stream.bytes.size()));
}

void BM_Step(benchmark::State& state) {
  const Input& input = TheInput();
  for (auto _ : state) {
    auto cursor = MakeCursor(input.layout, std::make_unique<MemorySource>(input.stream.bytes), {});
    uint64_t events = 0;
    for (auto batch = cursor->NextBatch(); !batch->empty(); batch = cursor->NextBatch()) {
      events += batch->size();
    }
    if (events != input.stream.events) state.SkipWithError("events are missing");
  }
  Count(state, input);
}
BENCHMARK(BM_Step)->Unit(benchmark::kMillisecond);

void BM_DecodeEveryField(benchmark::State& state) {
  const Input& input = TheInput();
  std::vector<FieldValue> values;
  for (auto _ : state) {
    auto cursor = MakeCursor(input.layout, std::make_unique<MemorySource>(input.stream.bytes), {});
    uint64_t sum = 0;
    for (auto batch = cursor->NextBatch(); !batch->empty(); batch = cursor->NextBatch()) {
      for (const EventRecord& record : *batch) {
        cursor->Decode(record, &values);
        for (const FieldValue& value : values) sum += value.u + value.text.size();
      }
    }
    if (sum != input.stream.sum) state.SkipWithError("the sum of all fields is wrong");
  }
  Count(state, input);
}
BENCHMARK(BM_DecodeEveryField)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline::ctf
