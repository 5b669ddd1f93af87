// SPDX-License-Identifier: Apache-2.0
#include "coordinator/stacks/standstill.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "coordinator/stacks/stacks_json.h"

namespace syncline::stacks {
namespace {

using analysis::why::NoStep;
using analysis::why::RankActivity;
using Json = nlohmann::ordered_json;

constexpr size_t kNamed = 3;

bool IsQuiet(const NoStep& window, const RankActivity& rank) {
  return rank.lost == 0 && rank.quiet_ns >= window.window_ns / 2;
}

std::string NameOf(const RankActivity& rank) {
  const std::string place = absl::StrCat("pid ", rank.pid, " on ", rank.node);
  return rank.rank < 0 ? place : absl::StrCat("rank ", rank.rank, " (", place, ")");
}

std::string Calls(uint64_t count) { return absl::StrCat(count, count == 1 ? " call" : " calls"); }

// "rank 1 (pid 11 on b) made 5310 calls, the last one 20.0 ms before the window's end".
std::string MovementOf(const RankActivity& rank) {
  if (rank.calls == 0) {
    return absl::StrCat(NameOf(rank), " made ", Calls(rank.lost), " that were not recorded");
  }
  return absl::StrCat(NameOf(rank), " made ", Calls(rank.calls), ", the last one ",
                      DurationText(rank.quiet_ns), " before the window's end");
}

// What moved, in some words; not empty if something did.
std::vector<std::string> Movements(const KeptLook& look, const std::vector<GroupVerdict>& groups) {
  std::vector<const RankActivity*> moving;
  for (const RankActivity& rank : look.no_step.ranks) {
    if (!IsQuiet(look.no_step, rank)) moving.push_back(&rank);
  }
  std::stable_sort(moving.begin(), moving.end(), [](const RankActivity* a, const RankActivity* b) {
    return a->quiet_ns < b->quiet_ns;
  });
  std::vector<std::string> movements;
  for (size_t i = 0; i < std::min(kNamed, moving.size()); ++i) {
    movements.push_back(MovementOf(*moving[i]));
  }
  if (moving.size() > kNamed) {
    movements.push_back(absl::StrCat(moving.size() - kNamed, " more ranks made calls"));
  }
  for (const GroupVerdict& group : groups) {
    if (group.kind != GroupKind::kMoves) continue;
    movements.push_back(absl::StrCat("after the window the numbers of group ", group.name,
                                     " changed between two looks"));
    break;
  }
  return movements;
}

// "rank 1 (pid 11 on b), rank 2 (pid 12 on b) and 3 more ranks"; empty: none ended.
std::string EndedRanks(const NoStep& window) {
  std::vector<std::string> names;
  for (const RankActivity& rank : window.ranks) {
    if (rank.ended) names.push_back(NameOf(rank));
  }
  const size_t more = names.size() - std::min(kNamed, names.size());
  names.resize(names.size() - more);
  const std::string text = absl::StrJoin(names, ", ");
  if (more == 0) return text;
  return absl::StrCat(text, " and ", more, more == 1 ? " more rank" : " more ranks");
}

bool IsKnown(const GroupVerdict& group) {
  return group.kind == GroupKind::kDead || group.kind == GroupKind::kStopped ||
         group.kind == GroupKind::kBehind || group.kind == GroupKind::kMismatch ||
         group.kind == GroupKind::kWaiting || group.kind == GroupKind::kIdle;
}

Json RanksJson(const NoStep& window) {
  Json ranks = Json::array();
  for (const RankActivity& rank : window.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"node", rank.node},
                     {"pid", rank.pid},
                     {"job", rank.job},
                     {"calls", rank.calls},
                     {"collectives", rank.collectives},
                     {"lost", rank.lost},
                     {"quiet_ns", rank.quiet_ns},
                     {"ended", rank.ended}});
  }
  return ranks;
}

}  // namespace

bool Standstill::answered() const {
  return !moves && std::any_of(groups.begin(), groups.end(), IsKnown);
}

Standstill JudgeStandstill(const KeptLook& look) {
  Standstill standstill;
  standstill.groups = Judge(look.looks);
  standstill.moves = !Movements(look, standstill.groups).empty();
  return standstill;
}

std::string StandstillSentence(const KeptLook& look, const Standstill& standstill) {
  const NoStep& window = look.no_step;
  const std::string whole = DurationText(window.window_ns);
  std::string text = window.certain ? "no step ended in " : "no step was seen to end in ";
  absl::StrAppend(&text,
                  window.steps == 0 ? absl::StrCat("the window of ", whole)
                                    : absl::StrCat("the last ", DurationText(window.quiet_ns()),
                                                   " of the window of ", whole),
                  window.certain ? "" : ", of which something is missing in the recording");
  const std::string ended = EndedRanks(window);
  const std::vector<std::string> movements = Movements(look, standstill.groups);
  if (!movements.empty()) {
    return absl::StrCat(text, ", but the job moved on meanwhile: ", absl::StrJoin(movements, "; "),
                        ended.empty() ? "" : absl::StrCat("; ended meanwhile: ", ended),
                        ". Either a step takes longer, or no optimizer of PyTorch makes one: "
                        "record for longer, e.g. `syncline why --for 60s`");
  }
  const bool never = window.quiet_ns() == window.window_ns;
  absl::StrAppend(&text, ", and no rank made a call that is recorded in ",
                  never ? "it" : absl::StrCat("its last ", DurationText(window.quiet_ns())));
  if (!ended.empty()) {
    return absl::StrCat(text, ". Ended meanwhile: ", ended,
                        ". The others stand still, or are inside of calls that take longer");
  }
  return absl::StrCat(text, ": the job stands still, or is inside of calls that take longer");
}

KeptLook OnlyJob(KeptLook look, const std::string& job) {
  const auto is_other = [&job](const std::string& id, const std::string& incarnation) {
    return id != job && absl::StrCat(id, "/", incarnation) != job;
  };
  for (NodeLook& node : look.looks) {
    if (!node.answer.ok()) continue;
    auto* const processes = node.answer->mutable_processes();
    const auto others = std::remove_if(processes->begin(), processes->end(), [&](const auto& one) {
      return is_other(one.process().job(), one.process().incarnation());
    });
    processes->erase(others, processes->end());
    auto* const ended = node.answer->mutable_ended();
    ended->erase(std::remove_if(ended->begin(), ended->end(),
                                [&](const auto& one) {
                                  return is_other(one.process().job(), one.process().incarnation());
                                }),
                 ended->end());
  }
  return look;
}

std::string StandstillJson(const KeptLook& look, const Standstill& standstill) {
  // The same groups, by the same names, as `syncline stacks --json`.
  Json groups = Json::parse(StacksJson(look.looks, standstill.groups), nullptr,
                            /*allow_exceptions=*/false)["groups"];
  const Json json = {
      {"moves", standstill.moves},       {"sentence", StandstillSentence(look, standstill)},
      {"steps", look.no_step.steps},     {"quiet_ns", look.no_step.quiet_ns()},
      {"certain", look.no_step.certain}, {"groups", std::move(groups)},
      {"ranks", RanksJson(look.no_step)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string FormatKeptLook(const KeptLook& look) {
  const std::vector<GroupVerdict> groups = Judge(look.looks);
  Json json = Json::parse(StacksJson(look.looks, groups), nullptr, /*allow_exceptions=*/false);
  json["window"] = {{"length_ns", look.no_step.window_ns},
                    {"steps", look.no_step.steps},
                    {"certain", look.no_step.certain},
                    {"ranks", RanksJson(look.no_step)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::stacks
