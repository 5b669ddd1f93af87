// SPDX-License-Identifier: Apache-2.0
// What a process answers, and what py-spy prints of it, from anywhere: never crash; what is read is
// within its limits, and a message that can be sent.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/stacks/py_spy.h"
#include "agent/stacks/stack_answer.h"

namespace {

void Check(const syncline::v1::ProcessStacks& stacks) {
  if (stacks.threads_size() > 256 || stacks.groups_size() > 1024) std::abort();
  for (const auto& threads : stacks.threads()) {
    if (threads.frames_size() > 256 || threads.count() == 0) std::abort();
  }
  std::string bytes;
  syncline::v1::ProcessStacks again;
  if (!stacks.SerializeToString(&bytes) || !again.ParseFromString(bytes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto answer = syncline::agent::ParseStackAnswer(text); answer.ok()) {
    Check(answer->stacks);
    syncline::v1::ProcessStacks second = answer->stacks;
    syncline::agent::AddFirstLook(answer->stacks, &second);
    if (second.main_thread_moved()) std::abort();
  }
  syncline::v1::ProcessStacks printed;
  if (syncline::agent::ParsePySpy(text, 12, &printed).ok()) Check(printed);
  return 0;
}
