// SPDX-License-Identifier: Apache-2.0
// A recording's stacks.json, from anywhere: never crash; what is read can be judged, said, and
// written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "coordinator/stacks/standstill.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto look = syncline::stacks::ParseKeptLook(text);
  if (!look.ok()) return 0;
  const syncline::stacks::Standstill standstill = syncline::stacks::JudgeStandstill(*look);
  if (syncline::stacks::StandstillSentence(*look, standstill).empty()) std::abort();
  if (syncline::stacks::StandstillJson(*look, standstill).empty()) std::abort();
  if (!syncline::stacks::ParseKeptLook(syncline::stacks::FormatKeptLook(*look)).ok()) std::abort();
  return 0;
}
