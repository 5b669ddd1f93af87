// SPDX-License-Identifier: Apache-2.0
// Why ranks of a job are not among those that answered: their process has ended, is stopped, does
// not answer, or is nowhere.
//
// A rank is said to have ended only where an agent knew its process and the kernel says that there
// is none any more. Of a rank whose node does not answer nothing is known, and that is said.
//
// A process that ended may be one of an earlier start of the job under the same name. It is one for
// certain if it had ended before the last member began. It is none if it was alive after that. In
// between the process counts if it began within a minute of a member; otherwise it is said that it
// may be of an earlier start. Where a process with the rank's number lives on that node, which
// began later, the one that ended is the rank only if a look saw it in the group, or the living one
// answered without the group. No clocks of two nodes are compared for that: ages are durations,
// each by its own node's clock.
//
// Pure.
#ifndef SYNCLINE_COORDINATOR_STACKS_ABSENT_H_
#define SYNCLINE_COORDINATOR_STACKS_ABSENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/stacks/members.h"

namespace syncline::stacks {

enum class AbsentState : uint8_t {
  kEnded,    // its process
  kStopped,  // by a signal or a debugger
  kSilent,   // its process is there, and did not answer, or answered without the group
};

// Before its node's answer: at least `least_ns` ago, and at most `most_ns`.
struct Ago {
  int64_t least_ns = 0;
  int64_t most_ns = 0;
};

// A rank of which a process is known. Points into the looks.
struct AbsentRank {
  int32_t rank = -1;
  AbsentState state = AbsentState::kSilent;
  const std::string* node = nullptr;
  const v1::ProcessInfo* process = nullptr;
  const v1::EndedProcess* ended = nullptr;  // of kEnded alone
  Ago ended_ago;
  std::optional<int64_t> last_number;  // of its last collective in the group, as far as known
  std::string sentence;                // no dot at its end
};

// By a signal, `_exit`, or with an exit code other than 0; false: in order, or it is not known.
bool EndedBadly(const AbsentRank& one);

struct AbsentRanks {
  std::vector<AbsentRank> known;          // by rank
  std::vector<int32_t> nowhere;           // in no process that is known on a node that answered
  size_t unknown_programs = 0;            // that train, on these nodes; not under `syncline run`
  std::vector<std::string> doubts;        // about some of `nowhere`
  std::vector<std::string> silent_nodes;  // did not answer

  bool Any(AbsentState state) const;
};

// Whom to look for.
struct Wanted {
  JobKey job;
  const std::vector<int32_t>* ranks = nullptr;
  const std::vector<Member>* members = nullptr;  // who answered
  const v1::ProcessGroupState* group = nullptr;  // of one of them; null: there is no group
};

AbsentRanks FindAbsent(const Wanted& wanted, const std::vector<NodeLook>& looks);

// "rank 1", "ranks 0, 2 and 3", of many some.
std::string RanksText(const std::vector<int32_t>& ranks);

// Those in the state, in some words; empty: there are none.
std::string AbsentText(const AbsentRanks& absent, AbsentState state);
// The ranks that are nowhere: "rank 3: no process of it is known on any node that answered; ...";
// empty likewise.
std::string NowhereText(const AbsentRanks& absent);

const char* StateName(AbsentState state);

}  // namespace syncline::stacks

#endif  // SYNCLINE_COORDINATOR_STACKS_ABSENT_H_
