// SPDX-License-Identifier: Apache-2.0
// syncline-vtune.json from anywhere: never crash; what was read is written and read again the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "vtune/result_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto record = syncline::vtune::ParseRecord({reinterpret_cast<const char*>(data), size});
  if (!record.ok()) return 0;
  const std::string text = syncline::vtune::FormatRecord(*record);
  const auto again = syncline::vtune::ParseRecord(text);
  if (!again.ok() || syncline::vtune::FormatRecord(*again) != text) std::abort();
  return 0;
}
