// SPDX-License-Identifier: Apache-2.0
// Any text in the place of evidence: never a crash, a hang or a read outside; what refers to a
// process, a thread or a group refers to one that is there, and no time overflows.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "evidence/evidence.h"
#include "evidence/write.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

template <class Sample>
void RequireBracket(const Sample& sample) {
  Require(sample.at_ns >= 0 && sample.at_ns <= sample.until_ns);
  Require(sample.until_ns <= int64_t{1} << 61);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // With and without a head: else nearly nothing that is tried gets behind it.
  (void)syncline::evidence::ParseEvidence(bytes);
  std::string text;
  syncline::evidence::AppendHead(&text);
  text += bytes;
  const auto evidence = syncline::evidence::ParseEvidence(text);
  Require(evidence.ok());
  for (const auto& one : evidence->processes) {
    for (const uint32_t group : one.groups) Require(group < evidence->groups.size());
  }
  for (const auto& one : evidence->threads) Require(one.process < evidence->processes.size());
  for (const auto& one : evidence->thread_samples) {
    Require(one.thread < evidence->threads.size());
    Require((one.state != 0) == (one.major_faults >= 0));
    Require(one.minor_faults == -1 || (one.minor_faults >= 0 && one.state != 0));
    RequireBracket(one);
  }
  for (const auto& one : evidence->group_samples) {
    Require(one.group < evidence->groups.size());
    RequireBracket(one);
  }
  for (const auto& one : evidence->process_samples) {
    Require(one.process < evidence->processes.size());
    RequireBracket(one);
  }
  for (const auto& one : evidence->steal_samples) {
    Require(one.busy_ns >= 0 && one.stolen_ns >= 0);
    Require(one.process < evidence->processes.size());
    RequireBracket(one);
  }
  for (const auto& one : evidence->recorded_samples) {
    Require(one.read_bytes >= -1);
    Require(one.process < evidence->processes.size());
    RequireBracket(one);
  }
  Require(syncline::evidence::Unescaped(syncline::evidence::Escaped(bytes)) == bytes);
  return 0;
}
