// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/verdict.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coordinator/stacks/without_group.h"

namespace syncline::stacks {
namespace {

constexpr size_t kRanksMax = size_t{1} << 16;
// Of all groups together: what a process says of its groups must not take the caller's memory.
constexpr size_t kAllRanksMax = size_t{1} << 20;
// Durations of two nodes' clocks are compared: what they differ by in seconds, many times over.
constexpr int64_t kDriftNs = 2'000'000;

struct Key {
  JobKey job;
  std::string name;
  std::string ranks;
  auto operator<=>(const Key&) const = default;
};

// When what both looks of a node say was so, by the caller's clock.
struct Window {
  int64_t begin_ns = std::numeric_limits<int64_t>::min();
  int64_t end_ns = std::numeric_limits<int64_t>::max();

  void Cut(const NodeLook& look) {
    const v1::StacksResponse& answer = *look.answer;
    begin_ns = std::max(begin_ns, look.answered_ns - (answer.answered_monotonic_ns() -
                                                      answer.first_look_end_monotonic_ns()));
    end_ns = std::min(end_ns, look.asked_ns + (answer.second_look_begin_monotonic_ns() -
                                               answer.asked_monotonic_ns()));
  }
  bool any() const { return begin_ns + kDriftNs <= end_ns; }
};

struct Group {
  std::vector<int32_t> ranks;
  std::vector<Member> members;
  Window window;
  bool answered_twice = true;
  bool too_large = false;
};

std::string Collective(const std::string& name, int64_t number) {
  return absl::StrCat(name.empty() ? "collective" : name, " #", number);
}

// Whether the program's own code is there: not a package's, not Python's.
bool IsOwn(const v1::StackFrame& frame) {
  for (const char* part : {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen"}) {
    if (absl::StrContains(frame.file(), part)) return false;
  }
  return true;
}

std::map<Key, Group> GroupsOf(const std::vector<NodeLook>& looks) {
  std::map<Key, Group> groups;
  size_t all_ranks = 0;
  for (const NodeLook& look : looks) {
    if (!look.answer.ok()) continue;
    for (const v1::ProcessStacks& process : look.answer->processes()) {
      const v1::ProcessInfo& info = process.process();
      if (HasEndedMeanwhile(info, *look.answer)) continue;
      for (const v1::ProcessGroupState& state : process.groups()) {
        const auto [entry, is_new] =
            groups.try_emplace(Key{JobOf(info), state.name(), state.ranks()});
        Group& group = entry->second;
        if (is_new) {
          auto ranks = ParseRanks(state.ranks());
          if (!ranks.ok()) {
            groups.erase(entry);
            continue;
          }
          group.too_large = all_ranks + ranks->size() > kAllRanksMax;
          if (!group.too_large) {
            all_ranks += ranks->size();
            group.ranks = *std::move(ranks);
          }
        }
        group.window.Cut(look);
        group.answered_twice = group.answered_twice && process.answered_twice();
        group.members.push_back({state.rank(), &look.node, &process, &state,
                                 NumberOf(state).value_or(-1), AgeNs(info, *look.answer)});
      }
    }
  }
  return groups;
}

bool Moves(const Member& member) {
  const v1::ProcessGroupState& state = *member.state;
  return state.sequence_number() != state.first_look_sequence_number() ||
         state.collective_number() != state.first_look_collective_number() ||
         state.pending_number() != state.first_look_pending_number();
}

// Why its processes cannot be told to be one group's; empty: they are. By rank.
std::string WhyNoGroup(const std::vector<Member>& members) {
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].rank < 0) {
      return absl::StrCat("process ", members[i].process->process().pid(), " on ", *members[i].node,
                          " does not say which rank it is");
    }
    if (i > 0 && members[i].rank == members[i - 1].rank) {
      return absl::StrCat("two processes say that they are rank ", members[i].rank,
                          " of it: jobs that cannot be told apart; SYNCLINE_JOB names a job");
    }
  }
  return "";
}

// Why nothing of a group that stands still can be known; empty: it can.
std::string Hindrance(const Group& group) {
  if (group.too_large) return "the processes name more ranks than are judged at once";
  if (!group.answered_twice) return "not all of its processes answered twice";
  if (!group.window.any()) return "the nodes were not looked at at the same time";
  for (const Member& member : group.members) {
    if (member.number >= 0) continue;
    return absl::StrCat("of rank ", member.rank,
                        " the number of its last collective is not known: PyTorch 2.13 tells it, "
                        "of a group with one backend, without TORCH_DISTRIBUTED_DEBUG=DETAIL, "
                        "while its record of the last collectives has one of the group");
  }
  return "";
}

// Some have entered what others have not.
void JudgeBehind(int64_t most, GroupVerdict* verdict) {
  std::vector<int32_t> waiting;
  std::vector<int32_t> ahead;
  std::set<int64_t> numbers;
  const Member* first_behind = nullptr;
  std::string name;
  for (const Member& member : verdict->members) {
    if (member.number < most) {
      verdict->behind.push_back(member.rank);
      numbers.insert(member.number);
      if (first_behind == nullptr || member.number < first_behind->number) first_behind = &member;
      continue;
    }
    ahead.push_back(member.rank);
    if (member.state->collective_pending()) waiting.push_back(member.rank);
    if (name.empty()) name = member.state->collective();
  }
  verdict->kind = GroupKind::kBehind;
  const bool one = verdict->behind.size() == 1;
  std::string last = numbers.size() == 1
                         ? absl::StrCat("#", *numbers.begin())
                         : absl::StrCat("#", *numbers.begin(), " to #", *numbers.rbegin());
  if (numbers.size() == 1 && *numbers.begin() == 0) last = "none so far";
  std::string who = RanksText(verdict->behind);
  if (one)
    absl::StrAppend(&who, " (node ", *first_behind->node, ", pid ",
                    first_behind->process->process().pid(), ")");
  const std::string not_over =
      waiting.empty()    ? ""
      : waiting == ahead ? ", and which is not over there"
                         : absl::StrCat(", and which is not over on ", RanksText(waiting));
  verdict->sentence =
      absl::StrCat(who, one ? " has" : " have", " not entered ", Collective(name, most), ", which ",
                   RanksText(ahead), ahead.size() == 1 ? " has" : " have", " entered", not_over,
                   "; ", one ? "its" : "their", " last: ", last, ".");
  AppendSentence(Where(*first_behind), &verdict->sentence);
}

// "all have", or whoever answered.
std::string WhoHave(const GroupVerdict& verdict) {
  if (verdict.unknown.empty()) return "all have";
  std::vector<int32_t> ranks;
  for (const Member& member : verdict.members) ranks.push_back(member.rank);
  if (ranks.size() == 1) return absl::StrCat(RanksText(ranks), ", the only one that answered, has");
  return absl::StrCat("all that answered (", RanksText(ranks), ") have");
}

// Under one number.
void JudgeMismatch(int64_t number, const std::map<std::string, std::vector<int32_t>>& by_name,
                   GroupVerdict* verdict) {
  verdict->kind = GroupKind::kMismatch;
  std::vector<std::string> parts;
  for (const auto& [name, ranks] : by_name) {
    parts.push_back(absl::StrCat(RanksText(ranks), ": ", name));
  }
  verdict->sentence = absl::StrCat(
      "as #", number, " they ask for different collectives: ", absl::StrJoin(parts, "; "));
}

// All have the same number.
void JudgeTogether(int64_t number, GroupVerdict* verdict) {
  const bool whole = verdict->unknown.empty();
  if (number == 0) {
    verdict->kind = GroupKind::kIdle;
    verdict->sentence = whole ? "no rank has entered a collective so far"
                              : "no rank that answered has entered a collective so far";
    return;
  }
  std::map<std::string, std::vector<int32_t>> by_name;
  std::vector<int32_t> pending;
  for (const Member& member : verdict->members) {
    if (!member.state->collective().empty()) {
      by_name[member.state->collective()].push_back(member.rank);
    }
    if (member.state->collective_pending()) pending.push_back(member.rank);
  }
  if (by_name.size() > 1) return JudgeMismatch(number, by_name, verdict);
  const std::string what =
      Collective(by_name.empty() ? std::string() : by_name.begin()->first, number);
  const std::string entered = absl::StrCat(WhoHave(*verdict), " entered ", what);
  if (by_name.empty()) {  // NCCL
    verdict->sentence = absl::StrCat(entered, "; whether it is over, its backend does not tell");
    return;
  }
  const bool one = verdict->members.size() == 1;
  if (pending.empty()) {
    verdict->kind = GroupKind::kIdle;
    verdict->sentence =
        absl::StrCat(entered, ", and ", one ? "does not wait in it" : "none waits in it");
    return;
  }
  verdict->kind = GroupKind::kWaiting;
  const std::string where = one ? "it is not over there"
                            : pending.size() == verdict->members.size()
                                ? "it is over on none"
                                : absl::StrCat("it is not over on ", RanksText(pending));
  verdict->sentence =
      absl::StrCat(entered, ", and ", where, whole ? ": by the numbers nobody is behind" : "");
}

// What those who answered say of the group by their numbers.
void JudgeMembers(const Group& group, GroupVerdict* verdict) {
  const bool moves = std::any_of(verdict->members.begin(), verdict->members.end(), Moves);
  if (group.answered_twice && moves) {
    verdict->kind = GroupKind::kMoves;
    verdict->sentence = "it does not stand still: between the two looks its numbers changed";
    return;
  }
  verdict->sentence = Hindrance(group);
  if (!verdict->sentence.empty()) return;
  const auto by_number = [](const Member& a, const Member& b) { return a.number < b.number; };
  const auto [least, most] =
      std::minmax_element(verdict->members.begin(), verdict->members.end(), by_number);
  if (least->number < most->number) {
    JudgeBehind(most->number, verdict);
  } else {
    JudgeTogether(most->number, verdict);
  }
}

// Where somebody stands who waits in a collective, else somebody.
std::string WhereOneWaits(const GroupVerdict& verdict) {
  const auto waits = [](const Member& member) { return member.state->collective_pending(); };
  const auto found = std::find_if(verdict.members.begin(), verdict.members.end(), waits);
  return Where(found == verdict.members.end() ? verdict.members.front() : *found);
}

std::string LastOfEnded(const AbsentRanks& absent) {
  std::vector<int32_t> ranks;
  for (const AbsentRank& one : absent.known) {
    if (one.state == AbsentState::kEnded && !one.last_number) ranks.push_back(one.rank);
  }
  if (ranks.empty()) return "";
  return absl::StrCat("Which collective ", RanksText(ranks), " entered last is not known.");
}

// What is known of those who did not answer comes to the verdict on the others, or before it.
void AddAbsent(GroupVerdict* verdict) {
  const AbsentRanks& absent = verdict->absent;
  const std::string dead = AbsentText(absent, AbsentState::kEnded);
  const std::string stopped = AbsentText(absent, AbsentState::kStopped);
  const std::string silent = AbsentText(absent, AbsentState::kSilent);
  const std::string nowhere = NowhereText(absent);
  const GroupKind of_others = verdict->kind;
  const std::string others = std::exchange(verdict->sentence, "");
  // Who has done its part and ended is missed by nobody, as long as nobody waits.
  const bool at_work = of_others == GroupKind::kIdle || of_others == GroupKind::kMoves;
  if (std::any_of(absent.known.begin(), absent.known.end(), EndedBadly) ||
      (!dead.empty() && !at_work)) {
    verdict->kind = GroupKind::kDead;
  } else if (!stopped.empty() && of_others != GroupKind::kMoves) {
    verdict->kind = GroupKind::kStopped;
  } else if (dead.empty() && (of_others == GroupKind::kWaiting || of_others == GroupKind::kIdle ||
                              of_others == GroupKind::kUndecided)) {
    verdict->kind = nowhere.empty() ? GroupKind::kUndecided : GroupKind::kMissing;
  }
  std::string* const sentence = &verdict->sentence;
  const bool missing = verdict->kind == GroupKind::kMissing;
  AppendSentence(dead, sentence);
  AppendSentence(stopped, sentence);
  if (missing) AppendSentence(nowhere, sentence);
  AppendSentence(others, sentence);
  if (verdict->kind != of_others && of_others != GroupKind::kBehind) {
    AppendSentence(WhereOneWaits(*verdict), sentence);
  }
  AppendSentence(LastOfEnded(absent), sentence);
  if (!silent.empty()) AppendSentence("Not known: " + silent, sentence);
  if (!missing) AppendSentence(nowhere, sentence);
}

GroupVerdict JudgeGroup(const Key& key, Group* group, const std::vector<NodeLook>& looks) {
  GroupVerdict verdict;
  verdict.job = key.job.job;
  verdict.name = key.name;
  verdict.size = group->ranks.size();
  std::sort(group->members.begin(), group->members.end(),
            [](const Member& a, const Member& b) { return a.rank < b.rank; });
  verdict.members = group->members;
  verdict.description = group->members.front().state->description();
  std::set<int32_t> here;
  for (const Member& member : verdict.members) here.insert(member.rank);
  for (const int32_t rank : group->ranks) {
    if (here.count(rank) == 0) verdict.unknown.push_back(rank);
  }
  verdict.sentence = WhyNoGroup(verdict.members);
  if (!verdict.sentence.empty()) return verdict;
  JudgeMembers(*group, &verdict);
  if (verdict.unknown.empty()) return verdict;
  verdict.absent = FindAbsent({.job = key.job,
                               .ranks = &verdict.unknown,
                               .members = &verdict.members,
                               .group = verdict.members.front().state},
                              looks);
  AddAbsent(&verdict);
  return verdict;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ParseRanks(const std::string& text) {
  std::vector<int32_t> ranks;
  const absl::Status wrong = absl::InvalidArgumentError("not a list of ranks");
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int32_t first = 0;
    int32_t last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first ||
        static_cast<size_t>(last - first) >= kRanksMax - ranks.size()) {
      return wrong;
    }
    for (int32_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

const v1::StackFrame* MainPlace(const v1::ProcessStacks& process) {
  for (const v1::PythonThreads& threads : process.threads()) {
    if (!threads.main() || threads.frames().empty()) continue;
    for (const v1::StackFrame& frame : threads.frames()) {
      if (IsOwn(frame)) return &frame;
    }
    return &threads.frames(0);
  }
  return nullptr;
}

std::string PlaceText(const v1::StackFrame& frame) {
  const size_t slash = frame.file().rfind('/');
  const std::string file =
      slash == std::string::npos ? frame.file() : frame.file().substr(slash + 1);
  return absl::StrCat(frame.function(), " (", file,
                      frame.line_number() == 0 ? "" : absl::StrCat(":", frame.line_number()), ")");
}

std::string Where(const Member& member) {
  const v1::StackFrame* const place = MainPlace(*member.process);
  if (place == nullptr) return "";
  return absl::StrCat("Rank ", member.rank, "'s main thread ",
                      member.process->main_thread_moved() ? "moves; it was seen in " : "stood in ",
                      PlaceText(*place),
                      member.process->main_thread_moved() ? "." : " at both looks.");
}

void AppendSentence(std::string text, std::string* sentence) {
  if (text.empty()) return;
  if (!sentence->empty()) text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  absl::StrAppend(sentence, sentence->empty() || sentence->ends_with('.') ? "" : ".",
                  sentence->empty() ? "" : " ", text);
}

const char* KindName(GroupKind kind) {
  switch (kind) {
    case GroupKind::kDead:
      return "dead";
    case GroupKind::kStopped:
      return "stopped";
    case GroupKind::kMissing:
      return "missing";
    case GroupKind::kBehind:
      return "behind";
    case GroupKind::kMismatch:
      return "mismatch";
    case GroupKind::kWaiting:
      return "waiting";
    case GroupKind::kIdle:
      return "idle";
    case GroupKind::kMoves:
      return "moves";
    case GroupKind::kUndecided:
      return "undecided";
  }
  return "undecided";
}

std::vector<GroupVerdict> Judge(const std::vector<NodeLook>& looks) {
  std::vector<GroupVerdict> verdicts;
  for (auto& [key, group] : GroupsOf(looks)) verdicts.push_back(JudgeGroup(key, &group, looks));
  for (GroupVerdict& verdict : JudgeWithoutGroups(looks)) verdicts.push_back(std::move(verdict));
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const GroupVerdict& a, const GroupVerdict& b) { return a.kind < b.kind; });
  return verdicts;
}

}  // namespace syncline::stacks
