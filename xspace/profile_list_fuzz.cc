// SPDX-License-Identifier: Apache-2.0
// profiles.json from anywhere: never crash; times that are read can be added without overflow.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "xspace/profile_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto records =
      syncline::xspace::ParseProfileList({reinterpret_cast<const char*>(data), size});
  if (!records.ok()) return 0;
  for (const syncline::xspace::ProfileRecord& record : *records) {
    int64_t end_ns = 0;
    if (__builtin_add_overflow(record.asked_start_realtime_ns, record.asked_duration_ns, &end_ns) ||
        end_ns < 0 || record.begin_realtime_ns < 0 || record.end_realtime_ns < 0) {
      std::abort();
    }
  }
  return 0;
}
