// SPDX-License-Identifier: Apache-2.0
// Ways to be wrong on purpose, for tests that must notice. Compiled in only with
// SYNCLINE_TEST_MUTANTS=1, which no shipped build has; then chosen by the environment variable
// SYNCLINE_MUTANT. (A bound that is halved shows where every delay is one-way: tests/sim.)
#ifndef SYNCLINE_COORDINATOR_MERGE_MUTANTS_H_
#define SYNCLINE_COORDINATOR_MERGE_MUTANTS_H_

#include <cstdint>

#if SYNCLINE_TEST_MUTANTS
#include <cstdlib>
#include <string_view>
#endif

namespace syncline::merge {

enum class Mutant : uint8_t {
  kNone,
  kWallClock,        // "wallclock": align by wall clock
  kZeroOffset,       // "zero-offset": every clock is taken for the reference's
  kSignFlipped,      // "sign-flipped": moved by the right amount, the wrong way
  kBoundOfASecond,   // "bound-of-a-second": a bound that is true and worth nothing
  kSwapNodes,        // "swap-nodes": each node gets another node's clock
  kKeysWithoutNode,  // "keys-without-node": equal pids of two nodes are one process
  kStale,            // "stale": keep yesterday's file
};

#if SYNCLINE_TEST_MUTANTS
inline Mutant CurrentMutant() {
  const char* chosen = std::getenv("SYNCLINE_MUTANT");
  const std::string_view name = chosen == nullptr ? "" : chosen;
  if (name == "wallclock") return Mutant::kWallClock;
  if (name == "zero-offset") return Mutant::kZeroOffset;
  if (name == "sign-flipped") return Mutant::kSignFlipped;
  if (name == "bound-of-a-second") return Mutant::kBoundOfASecond;
  if (name == "swap-nodes") return Mutant::kSwapNodes;
  if (name == "keys-without-node") return Mutant::kKeysWithoutNode;
  if (name == "stale") return Mutant::kStale;
  return Mutant::kNone;
}
#else
constexpr Mutant CurrentMutant() { return Mutant::kNone; }
#endif

}  // namespace syncline::merge

#endif  // SYNCLINE_COORDINATOR_MERGE_MUTANTS_H_
