// SPDX-License-Identifier: Apache-2.0
// A table from anywhere: never a crash, a hang or a read outside; every row is given as an event,
// in order, and decodes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "spans/table.h"

namespace {

void Read(std::string_view text, syncline::spans::Format format) {
  uint64_t rows = 0;
  const absl::Status status =
      syncline::spans::ReadRows(text, format, [&](const syncline::spans::Row&) { ++rows; });
  const auto processes = syncline::spans::ReadTable(text, format);
  if (processes.ok() != (status.ok() && rows > 0)) std::abort();
  if (!processes.ok()) return;
  uint64_t events = 0;
  std::vector<syncline::FieldValue> values;
  for (const auto& process : *processes) {
    for (const syncline::StreamInfo& stream : process->streams()) {
      const auto cursor = process->Open(stream.index);
      if (!cursor.ok()) std::abort();
      int64_t last_ns = stream.begin_ns;
      for (;;) {
        const auto batch = (*cursor)->NextBatch();
        if (!batch.ok()) std::abort();
        if (batch->empty()) break;
        for (const syncline::EventRecord& record : *batch) {
          if (record.time_ns < last_ns || !(*cursor)->Decode(record, &values)) std::abort();
          if (values.size() != record.event_class->fields.size()) std::abort();
          last_ns = record.time_ns;
          ++events;
        }
      }
    }
  }
  if (events != rows) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto format = syncline::spans::FormatOf(text)) Read(text, *format);
  return 0;
}
