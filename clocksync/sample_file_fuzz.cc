// SPDX-License-Identifier: Apache-2.0
// Bytes of clocks/*.samples and *.tuples from anywhere: never crash; what decodes encodes to the
// same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "clocksync/sample_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace cs = syncline::clocksync;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto edge = cs::DecodeSamples(bytes); edge.ok() && edge->damage.records == 0) {
    std::string again = cs::EncodeSamplesHeader(edge->local, edge->remote);
    for (const cs::ProbeSample& sample : edge->samples) cs::AppendSample(sample, &again);
    if (again != bytes.substr(0, size - edge->truncated_bytes)) std::abort();
  }
  if (const auto host = cs::DecodeTuples(bytes); host.ok() && host->damage.records == 0) {
    std::string again = cs::EncodeTuplesHeader(host->node);
    for (const cs::ClockTuple& tuple : host->tuples) cs::AppendTuple(tuple, &again);
    if (again != bytes.substr(0, size - host->truncated_bytes)) std::abort();
  }
  return 0;
}
