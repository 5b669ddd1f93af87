// SPDX-License-Identifier: Apache-2.0
// Bytes of an XSpace from anywhere: never a crash, a hang or a read outside; every event that was
// counted is given, in order, and decodes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "xspace/space.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto space = syncline::xspace::Space::Of({data, size}, "fuzz");
  uint64_t events = 0;
  std::vector<syncline::FieldValue> values;
  for (const syncline::StreamInfo& stream : space->streams()) {
    const auto cursor = space->Open(stream.index);
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
  const bool placed = space->profile_begin_ns().has_value();
  if (events != (placed ? space->events() : 0)) std::abort();
  if (!placed && space->events() > 0 && space->losses().empty()) std::abort();
  return 0;
}
