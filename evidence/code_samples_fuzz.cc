// SPDX-License-Identifier: Apache-2.0
// Any text in the place of code samples: never a crash, a hang or a read outside; what refers to
// something refers to what is there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "evidence/code_samples.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // With and without a head: else nearly nothing that is tried gets behind it.
  (void)syncline::evidence::ParseCodeSamples(bytes);
  std::string text;
  syncline::evidence::AppendCodeHead(1, false, &text);
  text += bytes;
  const auto code = syncline::evidence::ParseCodeSamples(text);
  Require(code.ok());
  for (const auto& one : code->threads) Require(one.process < code->processes.size());
  for (const auto& one : code->frames) Require(one.module < code->modules.size() && one.line >= 0);
  for (const auto& stack : code->stacks) {
    Require(!stack.empty());
    for (const uint32_t frame : stack) Require(frame < code->frames.size());
  }
  for (const auto& one : code->samples) {
    Require(one.thread < code->threads.size() && one.stack < code->stacks.size());
    Require(one.at_ns >= 0);
  }
  for (const auto& one : code->losses) Require(one.thread < code->threads.size());
  for (const auto& one : code->thread_times) Require(one.thread < code->threads.size());
  return 0;
}
