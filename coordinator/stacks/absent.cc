// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/absent.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"

namespace syncline::stacks {
namespace {

constexpr size_t kListed = 8;     // ranks
constexpr size_t kExplained = 3;  // ranks, nodes
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kSameStartNs = 60 * kSecondNs;  // ranks of one start begin within (guess)
constexpr int64_t kOnceNs = kSecondNs;            // what is known so well is one time

// A process of a rank that is no member.
struct Candidate {
  const NodeLook* look = nullptr;
  const v1::ProcessStacks* living = nullptr;
  const v1::EndedProcess* ended = nullptr;
};

enum class Start : uint8_t { kThis, kDoubtful, kEarlier };

struct Judged {
  Candidate candidate;
  Start start = Start::kDoubtful;
  int64_t apart_ns = std::numeric_limits<int64_t>::max();  // from the member that began nearest
};

Ago EndedAgo(const Candidate& candidate) {
  const int64_t answered_ns = candidate.look->answer->answered_monotonic_ns();
  const int64_t least_ns =
      std::max<int64_t>(0, answered_ns - candidate.ended->ended_monotonic_ns());
  return {least_ns, std::max(least_ns, answered_ns - candidate.ended->alive_monotonic_ns())};
}

Judged JudgeStart(const Candidate& candidate, const std::vector<Member>& members) {
  Judged judged{candidate};
  const auto age_ns = AgeNs(candidate.ended->process(), *candidate.look->answer);
  std::optional<int64_t> youngest_ns;
  for (const Member& member : members) {
    if (!member.age_ns.has_value()) continue;
    youngest_ns = std::min(youngest_ns.value_or(*member.age_ns), *member.age_ns);
    if (age_ns.has_value()) {
      judged.apart_ns = std::min(judged.apart_ns, std::abs(*age_ns - *member.age_ns));
    }
  }
  const Ago ago = EndedAgo(candidate);
  if (youngest_ns.has_value() && ago.least_ns > *youngest_ns + kSecondNs) {
    judged.start = Start::kEarlier;
  } else if (youngest_ns.has_value() && ago.most_ns + kSecondNs < *youngest_ns) {
    judged.start = Start::kThis;
  } else if (judged.apart_ns <= kSameStartNs) {
    judged.start = Start::kThis;
  }
  return judged;
}

std::string SignalText(uint32_t number) {
  static const std::map<uint32_t, const char*> kNames = {
      {1, "SIGHUP"},   {2, "SIGINT"},   {3, "SIGQUIT"},  {4, "SIGILL"},   {6, "SIGABRT"},
      {7, "SIGBUS"},   {8, "SIGFPE"},   {9, "SIGKILL"},  {10, "SIGUSR1"}, {11, "SIGSEGV"},
      {12, "SIGUSR2"}, {13, "SIGPIPE"}, {14, "SIGALRM"}, {15, "SIGTERM"}};
  const auto name = kNames.find(number);
  return name == kNames.end() ? absl::StrCat("signal ", number)
                              : absl::StrCat("signal ", number, " (", name->second, ")");
}

std::string HowText(const v1::EndedProcess& ended) {
  if (ended.status_known() && ended.signal_number() != 0) {
    return absl::StrCat("killed by ", SignalText(ended.signal_number()));
  }
  if (ended.status_known()) return absl::StrCat("with exit code ", ended.exit_code());
  switch (ended.ending()) {
    case v1::EndedProcess::IN_ORDER:
      return "after its exit handlers ran, with an exit code that is not known";
    case v1::EndedProcess::ABRUPT:
      return "by a signal or _exit, which of the two is not known";
    default:
      return "how is not known";
  }
}

std::string WhenText(const Candidate& candidate, const Ago& ago) {
  if (ago.most_ns - ago.least_ns <= kOnceNs) {
    return absl::StrCat(DurationText(ago.least_ns), " before the look");
  }
  // Its agent began to watch when it was over.
  if (candidate.ended->process().pid() == 0) {
    return absl::StrCat("at most ", DurationText(ago.most_ns), " before the look");
  }
  return absl::StrCat("between ", DurationText(ago.most_ns), " and ", DurationText(ago.least_ns),
                      " before the look");
}

int32_t PidOf(const v1::ProcessInfo& process) {
  return process.pid() != 0 ? process.pid() : process.own_pid();
}

std::string NameOf(int32_t rank, const NodeLook& look, const v1::ProcessInfo& process) {
  return absl::StrCat("rank ", rank, " (node ", look.node, ", pid ", PidOf(process), ")");
}

// Its last collective in the group, when it answered a look last.
const v1::ProcessGroupState* LastKnown(const v1::EndedProcess& ended,
                                       const v1::ProcessGroupState* group) {
  if (group == nullptr) return nullptr;
  for (const v1::ProcessGroupState& one : ended.groups()) {
    if (one.name() == group->name() && one.ranks() == group->ranks() && NumberOf(one)) return &one;
  }
  return nullptr;
}

AbsentRank OfEnded(int32_t rank, const Judged& judged, const v1::ProcessStacks* successor,
                   const Wanted& wanted) {
  const Candidate& candidate = judged.candidate;
  const v1::EndedProcess& ended = *candidate.ended;
  AbsentRank absent{rank, AbsentState::kEnded, &candidate.look->node, &ended.process(), &ended};
  absent.ended_ago = EndedAgo(candidate);
  absent.sentence = absl::StrCat(NameOf(rank, *candidate.look, ended.process()), " has ended, ",
                                 HowText(ended), ", ", WhenText(candidate, absent.ended_ago));
  if (const auto* const last = LastKnown(ended, wanted.group); last != nullptr) {
    absent.last_number = NumberOf(*last);
    const int64_t ago_ns =
        candidate.look->answer->answered_monotonic_ns() - ended.groups_monotonic_ns();
    absl::StrAppend(&absent.sentence,
                    "; the last collective that it was seen to have entered: ", last->collective(),
                    last->collective().empty() ? "#" : " #", *absent.last_number, ", ",
                    DurationText(std::max<int64_t>(0, ago_ns)), " before the look");
  }
  if (successor != nullptr) {
    absl::StrAppend(&absent.sentence, "; process ", PidOf(successor->process()),
                    " there has its number, and began later");
  }
  return absent;
}

AbsentRank OfLiving(int32_t rank, const Candidate& candidate) {
  const v1::ProcessStacks& living = *candidate.living;
  const bool stopped = living.process().stopped();
  AbsentRank absent{rank, stopped ? AbsentState::kStopped : AbsentState::kSilent,
                    &candidate.look->node, &living.process()};
  const std::string name = NameOf(rank, *candidate.look, living.process());
  if (stopped) {
    absent.sentence = absl::StrCat(name,
                                   " is stopped (SIGSTOP, or a debugger): it does nothing "
                                   "until it is continued (kill -CONT)");
    return absent;
  }
  absent.sentence = absl::StrCat(
      name, ": ",
      living.absence().empty()
          ? "it answered without this group, which it has left, has not made yet, or could not tell"
          : living.absence());
  return absent;
}

using Candidates = std::map<int32_t, std::vector<Candidate>>;

Candidates CandidatesOf(const Wanted& wanted, const std::vector<NodeLook>& looks) {
  Candidates candidates;
  for (const int32_t rank : *wanted.ranks) candidates[rank];
  const auto add = [&](const v1::ProcessInfo& info, Candidate candidate) {
    if (!IsRankItself(info) || JobOf(info) != wanted.job) return;
    const auto found = candidates.find(info.rank());
    if (found != candidates.end()) found->second.push_back(candidate);
  };
  for (const NodeLook& look : looks) {
    if (!look.answer.ok()) continue;
    for (const v1::ProcessStacks& one : look.answer->processes()) {
      if (!HasEndedMeanwhile(one.process(), *look.answer)) add(one.process(), {&look, &one});
    }
    for (const v1::EndedProcess& one : look.answer->ended()) {
      add(one.process(), {&look, nullptr, &one});
    }
  }
  return candidates;
}

// Of those that ended the one that most likely was the rank: the others are of earlier starts, or
// children of it.
std::optional<Judged> BestEnded(const std::vector<Candidate>& candidates,
                                const std::vector<Member>& members) {
  std::optional<Judged> best;
  for (const Candidate& candidate : candidates) {
    if (candidate.ended == nullptr) continue;
    const Judged judged = JudgeStart(candidate, members);
    if (judged.start == Start::kEarlier) continue;
    if (!best.has_value() ||
        std::pair(judged.start, judged.apart_ns) < std::pair(best->start, best->apart_ns)) {
      best = judged;
    }
  }
  return best;
}

// Whether the living process came after the one that ended: a child that it left, or a new try.
bool CameLater(const Candidate& living, const Candidate& ended) {
  return living.look == ended.look &&
         living.living->process().start_ticks() > ended.ended->process().start_ticks();
}

// Whether the one that ended was the group's member, and not the living one, which has its number:
// an earlier look saw that, or the living one answered without the group. One that is silent may be
// the member, and the other of another start, or another program that ran before it.
bool WasMember(const Candidate& ended, const Candidate& living, const Wanted& wanted) {
  if (!CameLater(living, ended)) return false;
  return living.living->source() == v1::ProcessStacks::HOOK ||
         LastKnown(*ended.ended, wanted.group) != nullptr;
}

std::string NodesText(const std::vector<std::string>& nodes) {
  const size_t shown = std::min(nodes.size(), kExplained);
  std::string text = absl::StrCat(nodes.size() == 1 ? "node " : "nodes ",
                                  absl::StrJoin(nodes.begin(), nodes.begin() + shown, ", "));
  if (shown < nodes.size()) absl::StrAppend(&text, " and ", nodes.size() - shown, " more");
  return text;
}

std::string DoubtText(int32_t rank, const Candidate& ended) {
  return absl::StrCat("a process that was ", NameOf(rank, *ended.look, ended.ended->process()),
                      " of a job of this name has ended, but may be of an earlier start of it");
}

}  // namespace

bool EndedBadly(const AbsentRank& one) {
  if (one.state != AbsentState::kEnded) return false;
  const v1::EndedProcess& ended = *one.ended;
  if (ended.status_known()) return ended.signal_number() != 0 || ended.exit_code() != 0;
  return ended.ending() == v1::EndedProcess::ABRUPT;
}

bool AbsentRanks::Any(AbsentState state) const {
  return std::any_of(known.begin(), known.end(),
                     [state](const AbsentRank& one) { return one.state == state; });
}

AbsentRanks FindAbsent(const Wanted& wanted, const std::vector<NodeLook>& looks) {
  AbsentRanks absent;
  for (const NodeLook& look : looks) {
    if (!look.answer.ok()) {
      absent.silent_nodes.push_back(look.node);
      continue;
    }
    const auto& all = look.answer->processes();
    absent.unknown_programs +=
        static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const v1::ProcessStacks& one) {
          return one.source() != v1::ProcessStacks::HOOK && !one.process().has_control_block();
        }));
  }
  for (const auto& [rank, candidates] : CandidatesOf(wanted, looks)) {
    const auto living = std::find_if(candidates.begin(), candidates.end(),
                                     [](const auto& one) { return one.living != nullptr; });
    const std::optional<Judged> ended = BestEnded(candidates, *wanted.members);
    const bool sure = ended.has_value() && ended->start == Start::kThis;
    if (living == candidates.end() && sure) {
      absent.known.push_back(OfEnded(rank, *ended, nullptr, wanted));
    } else if (living != candidates.end() && sure && WasMember(ended->candidate, *living, wanted)) {
      absent.known.push_back(OfEnded(rank, *ended, living->living, wanted));
    } else if (living != candidates.end()) {
      absent.known.push_back(OfLiving(rank, *living));
    } else {
      absent.nowhere.push_back(rank);
      if (ended.has_value() && absent.doubts.size() < kExplained) {
        absent.doubts.push_back(DoubtText(rank, ended->candidate));
      }
    }
  }
  return absent;
}

std::string RanksText(const std::vector<int32_t>& ranks) {
  const size_t shown = std::min(ranks.size(), kListed);
  std::string text = absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                                  absl::StrJoin(ranks.begin(), ranks.begin() + shown, ", "));
  if (shown < ranks.size()) absl::StrAppend(&text, " and ", ranks.size() - shown, " more");
  return text;
}

std::string AbsentText(const AbsentRanks& absent, AbsentState state) {
  std::vector<std::string> parts;
  size_t more = 0;
  for (const AbsentRank& one : absent.known) {
    if (one.state != state) continue;
    if (parts.size() < kExplained) {
      parts.push_back(one.sentence);
    } else {
      ++more;
    }
  }
  if (more > 0) parts.push_back(absl::StrCat("so it is with ", more, " more ranks"));
  return absl::StrJoin(parts, "; ");
}

std::string NowhereText(const AbsentRanks& absent) {
  if (absent.nowhere.empty()) return "";
  std::string text = absl::StrCat(RanksText(absent.nowhere), ": no process of ",
                                  absent.nowhere.size() == 1 ? "it" : "them",
                                  " is known on any node that answered");
  if (absent.unknown_programs > 0) {
    absl::StrAppend(&text, ", where ", absent.unknown_programs, " training ",
                    absent.unknown_programs == 1 ? "program was" : "programs were",
                    " not started under `syncline run`");
  }
  if (!absent.silent_nodes.empty()) {
    absl::StrAppend(&text, ", and ", NodesText(absent.silent_nodes), " did not answer");
  }
  for (const std::string& doubt : absent.doubts) absl::StrAppend(&text, "; ", doubt);
  return text;
}

const char* StateName(AbsentState state) {
  switch (state) {
    case AbsentState::kEnded:
      return "ended";
    case AbsentState::kStopped:
      return "stopped";
    case AbsentState::kSilent:
      return "silent";
  }
  return "silent";
}

}  // namespace syncline::stacks
