// SPDX-License-Identifier: Apache-2.0
// A trace from any bytes: metadata, a NUL, one stream. Without a NUL the bytes are a stream of the
// LTTng-like trace that the unit tests use. Every event is decoded; times must not go back; the
// fast ways must find the same as the ordinary one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "ctf/test_lanes.h"
#include "ctf/test_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace ctf = syncline::ctf;
  static const auto fixed = ctf::testing::LayoutOf(ctf::testing::kMetadata);
  const std::span<const uint8_t> all(data, size);
  const auto nul = std::find(all.begin(), all.end(), uint8_t{0});
  std::shared_ptr<const ctf::TraceLayout> layout = fixed;
  std::span<const uint8_t> stream = all;
  const bool has_metadata = size > 2 && ((data[0] == '/' && data[1] == '*') || data[0] == 0x1e);
  if (has_metadata && nul != all.end()) {
    const auto length = static_cast<size_t>(nul - all.begin());
    layout = ctf::testing::LayoutOf({reinterpret_cast<const char*>(data), length});
    stream = all.subspan(length + 1);
  }
  if (layout == nullptr) return 0;
  auto cursor = ctf::MakeCursor(layout, std::make_unique<ctf::MemorySource>(stream), {});
  std::vector<syncline::FieldValue> values;
  int64_t last_ns = syncline::kUnknownLo;
  for (;;) {
    const auto batch = cursor->NextBatch();
    if (!batch.ok() || batch->empty()) break;
    for (const syncline::EventRecord& record : *batch) {
      if (record.time_ns < last_ns || !cursor->Decode(record, &values)) std::abort();
      last_ns = record.time_ns;
    }
  }
  ctf::CtfCursor ordinary(layout, std::make_unique<ctf::MemorySource>(stream), {}, {});
  ctf::CtfCursor fast(layout, std::make_unique<ctf::MemorySource>(stream), {}, {});
  size_t in_lanes = 0;
  const auto found = ctf::testing::ReadWithLane(fast, *layout, &in_lanes);
  if (!(found == ctf::testing::ReadInOrder(ordinary))) std::abort();
  return 0;
}
