// SPDX-License-Identifier: Apache-2.0
// Any text in the place of a node's scheduling: never a crash, a hang or a read outside; what
// refers to something refers to what is there, and no time is negative.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "evidence/scheduling.h"

namespace {

using syncline::evidence::Scheduling;
using syncline::evidence::Who;

void Require(bool condition) {
  if (!condition) std::abort();
}

void RequireThere(const Who& who, const Scheduling& all) {
  if (who.kind == Who::Kind::kThread) Require(who.index < all.threads.size());
  if (who.kind == Who::Kind::kOther) Require(who.index < all.others.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // With and without a head: else nearly nothing that is tried gets behind it.
  (void)syncline::evidence::ParseScheduling(bytes);
  std::string text;
  syncline::evidence::AppendSchedulingHead(1, &text);
  text += bytes;
  const auto all = syncline::evidence::ParseScheduling(text);
  Require(all.ok());
  for (const auto& one : all->threads) Require(one.process < all->processes.size());
  for (const auto& turn : all->turns) {
    Require(turn.thread < all->threads.size() && turn.cpu >= 0);
    Require(turn.from_ns() >= 0 && turn.ran_ns >= 0 && turn.ready_ns >= 0 && turn.pause_ns >= 0);
    Require(turn.first_taker + turn.takers <= all->takers.size());
    RequireThere(turn.waker, *all);
  }
  for (const auto& one : all->takers) {
    Require(one.ns >= 0);
    RequireThere(one.who, *all);
  }
  for (const auto& one : all->losses) Require(one.from_ns >= 0 && one.until_ns >= one.from_ns);
  return 0;
}
