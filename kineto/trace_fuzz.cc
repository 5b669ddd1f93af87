// SPDX-License-Identifier: Apache-2.0
// Any text in the place of Kineto's JSON: never a crash, a hang or a read outside; every event that
// was counted is given, in order, and decodes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kineto/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = syncline::kineto::Trace::Of(text, "fuzz");
  uint64_t events = 0;
  std::vector<syncline::FieldValue> values;
  for (const syncline::StreamInfo& stream : trace->streams()) {
    const auto cursor = trace->Open(stream.index);
    if (!cursor.ok()) std::abort();
    int64_t last_ns = syncline::kUnknownLo;
    for (;;) {
      const auto batch = (*cursor)->NextBatch();
      if (!batch.ok()) std::abort();
      if (batch->empty()) break;
      for (const syncline::EventRecord& record : *batch) {
        if (record.time_ns < last_ns || !(*cursor)->Decode(record, &values)) std::abort();
        last_ns = record.time_ns;
        ++events;
      }
    }
  }
  if (events != trace->events()) std::abort();
  for (const syncline::kineto::CollectiveKernel& kernel : trace->collective_kernels()) {
    if (kernel.name.size() > 512 || kernel.end_ns < kernel.begin_ns) std::abort();
  }
  return 0;
}
