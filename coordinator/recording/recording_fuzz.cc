// SPDX-License-Identifier: Apache-2.0
// recording.json comes from other machines: whatever the bytes, it is read or refused, and what was
// read survives a round trip.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "coordinator/recording/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using syncline::recording::FormatRecording;
  using syncline::recording::ParseRecording;
  const auto read = ParseRecording({reinterpret_cast<const char*>(data), size});
  if (!read.ok()) return 0;
  const std::string text = FormatRecording(*read);
  const auto again = ParseRecording(text);
  if (!again.ok() || FormatRecording(*again) != text) std::abort();
  return 0;
}
