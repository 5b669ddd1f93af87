// SPDX-License-Identifier: Apache-2.0
// Any text in the place of samples of connections: never a crash, a hang or a read outside; what
// refers to something refers to what is there, and amounts are such that their differences are
// numbers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "evidence/connection_samples.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace evidence = syncline::evidence;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // With and without a head: else nearly nothing that is tried gets behind it.
  (void)evidence::ParseConnectionSamples(bytes);
  std::string text;
  evidence::AppendConnectionsHead(&text);
  text += bytes;
  const auto found = evidence::ParseConnectionSamples(text);
  Require(found.ok());
  for (const auto& one : found->connections) Require(one.process < found->processes.size());
  for (const auto& one : found->samples) {
    Require(one.connection < found->connections.size());
    Require(0 <= one.at_ns && one.at_ns <= one.until_ns);
    for (size_t i = 0; i < evidence::kConnectionValues; ++i) {
      const auto amount = one.values.Get(static_cast<evidence::ConnectionValue>(i));
      Require(!amount.has_value() || (0 <= *amount && *amount <= int64_t{1} << 60));
    }
  }
  return 0;
}
