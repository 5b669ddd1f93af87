// SPDX-License-Identifier: Apache-2.0
// Reading an XSpace: the walk when it is opened, and every field of every event after that.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "xspace/space.h"
#include "xspace/testing/space_builder.h"

namespace syncline::xspace {
namespace {

constexpr int kEvents = 1'000'000;

// The mix of a level 2 profile: operators without stats, executor activity and allocations with.
std::string Profile() {
  PlaneBuilder plane("/host:CPU");
  LineBuilder line("tf_Compute/1", 1000);
  const int64_t process = plane.EventId("ExecutorState::Process");
  const int64_t op = plane.EventId("gradients/Conv2D_1_grad/Conv2DBackpropInput:Conv2D");
  const int64_t allocation = plane.EventId("MemoryAllocation");
  std::vector<std::string> allocated;
  for (const char* name : {"bytes_reserved", "bytes_allocated", "bytes_available", "peak", "addr",
                           "requested_bytes", "allocation_bytes", "data_type"}) {
    allocated.push_back(IntStat(plane.StatId(name), 25'265'766'400));
  }
  for (int i = 0; i < kEvents; i += 4) {
    const int64_t at = int64_t{i} * 1000;
    line.Event(process, {at, 3500},
               {IntStat(plane.StatId("id"), 135'758'124'206'211'284),
                IntStat(plane.StatId("iter_num"), 0)});
    line.Event(op, {at + 10, 900});
    line.Event(allocation, {at + 20, 0}, allocated);
    line.Event(op, {at + 1000, 900});
  }
  plane.Add(line);
  return SpaceBytes({plane.Bytes(), EnvironmentPlane(1, 1000)});
}

void BM_OpenAndDecodeEverything(benchmark::State& state) {
  const std::string bytes = Profile();
  uint64_t sum = 0;
  std::vector<FieldValue> values;
  for (auto unused : state) {
    const auto space =
        Space::Of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, "benchmark");
    auto cursor = *space->Open(0);
    for (;;) {
      const auto batch = *cursor->NextBatch();
      if (batch.empty()) break;
      for (const EventRecord& record : batch) {
        cursor->Decode(record, &values);
        for (const FieldValue& value : values) sum += value.u;
      }
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * kEvents);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(BM_OpenAndDecodeEverything)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline::xspace
