// SPDX-License-Identifier: Apache-2.0
#include "export/why/stalls_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "export/report/units.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Part;
using analysis::why::PartName;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::StallGroup;
using analysis::why::Stalls;
using analysis::why::StoodIn;
using Kind = StallGroup::Kind;

constexpr size_t kGroupsShown = 3;
constexpr size_t kRanksShown = 4;
constexpr int64_t kSmallDivisor = 10;  // a part of less of a stall is not worth a word

std::string RanksText(const Answer& answer, const StallGroup& group) {
  if (group.kind == Kind::kEverybody) return "the ranks";
  if (group.ranks.size() == 1) {
    const RankSummary& rank = answer.ranks[group.ranks[0]];
    return absl::StrCat("rank ", rank.rank, " (node ", Printed(rank.node), ", pid ", rank.pid, ")");
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kRanksShown, group.ranks.size()); ++i) {
    names.push_back(absl::StrCat(answer.ranks[group.ranks[i]].rank));
  }
  if (group.ranks.size() > kRanksShown) {
    names.push_back(absl::StrCat(group.ranks.size() - kRanksShown, " more"));
  }
  return "ranks " + absl::StrJoin(names, ", ");
}

std::string EveryText(const StallGroup& group) {
  if (!group.every_steps.has_value()) return "";
  const bool all = group.in_rhythm == group.stalls;
  return absl::StrCat(", ", all ? "" : absl::StrCat(group.in_rhythm, " of them "), "one every ",
                      *group.every_steps, " steps");
}

// "; most of it in host code (+401.2 ms), blocked in kernel (+98.0 ms)".
std::string PartsText(const StallGroup& group) {
  std::vector<std::string> parts;
  for (const Part part : LargestFirst(group.longer)) {
    const int64_t ns = group.longer[static_cast<size_t>(part)];
    if (part == Part::kWaitAndTransfer) continue;
    if (ns * kSmallDivisor < group.longer_ns) break;
    parts.push_back(absl::StrCat(PartName(part), " (+", Ms(ns), " ms)"));
  }
  return parts.empty() ? "" : absl::StrCat("; most of it in ", absl::StrJoin(parts, ", "));
}

std::string ProcessorText(const StallGroup& group) {
  if (!group.on_cpu_ns.has_value() || !group.run_queue_ns.has_value()) return "";
  return absl::StrCat("; of such a step about ", Ms(*group.on_cpu_ns), " ms on a CPU and ",
                      Ms(*group.run_queue_ns), " ms ready to run, by samples");
}

std::string StoodText(const StallGroup& group) {
  const StoodIn& stood = *group.stood;
  const std::string within =
      stood.within.empty()
          ? ""
          : absl::StrCat(", there mostly in ", Printed(stood.within, kPlaceColumns));
  return absl::StrCat("of ", stood.host_samples, " samples of ",
                      group.kind == Kind::kEverybody || group.ranks.size() > 1 ? "their" : "its",
                      " Python stack in these steps ", stood.samples, " are in ",
                      Printed(stood.place, kPlaceColumns), within, "; of the ", stood.others_host,
                      " in usual steps ",
                      stood.others == 0 ? std::string("none") : absl::StrCat(stood.others));
}

std::string CountText(const Answer& answer, const StallGroup& group) {
  const uint64_t stalls = answer.stalls->stalls;
  if (stalls == 1) return "it takes";
  return group.stalls == stalls ? absl::StrCat("all ", stalls, " take")
                                : absl::StrCat(group.stalls, " of the ", stalls, " take");
}

// " 430.2 to 512.9 ms".
std::string LengthsText(const StallGroup& group) {
  return group.stalls == 1
             ? absl::StrCat(" ", Ms(group.longest_ns), " ms")
             : absl::StrCat(" ", Ms(group.shortest_ns), " to ", Ms(group.longest_ns), " ms");
}

std::vector<std::string> GroupSentences(const Answer& answer, const StallGroup& group) {
  const std::string which =
      absl::StrCat(CountText(answer, group), LengthsText(group), EveryText(group));
  switch (group.kind) {
    case Kind::kCollectives:
      return {absl::StrCat(which,
                           ": no rank's own work is much longer; the time is in collectives (the "
                           "network, or who carries them out)")};
    case Kind::kUntold:
      return {absl::StrCat(which, ": whose own work takes longer there is not clear")};
    case Kind::kRanks:
    case Kind::kEverybody:
      break;
  }
  std::string text = absl::StrCat(which, ": the own work of ", RanksText(answer, group), " takes ",
                                  Ms(group.longer_ns), " ms longer than usual");
  if (group.ranks.size() < answer.ranks.size()) {
    absl::StrAppend(
        &text,
        answer.ranks.size() > 2 ? ", that of any other at most " : ", that of the other at most ",
        Ms(group.others_most_ns), " ms");
  }
  std::vector<std::string> lines = {absl::StrCat(text, PartsText(group), ProcessorText(group))};
  if (group.stood.has_value()) lines.push_back(StoodText(group));
  return lines;
}

std::string GroupNext(const Answer& answer, const StallGroup& group) {
  if (group.kind == Kind::kCollectives) {
    return "`syncline report --section network` says what the connections did; `syncline report "
           "--section collectives` how long collectives took";
  }
  if (group.kind == Kind::kUntold) {
    return "look at what the ranks do in these steps besides collectives (a log, a checkpoint): "
           "mark it with torch.profiler.record_function, and record again";
  }
  const std::string who = RanksText(answer, group);
  if (group.stood.has_value()) {
    const std::string place = Printed(group.stood->place, kPlaceColumns);
    return group.kind == Kind::kEverybody
               ? absl::StrCat("look at ", place,
                              ": run it less often, make it shorter, or move it ",
                              "to a thread or process beside the training")
               : absl::StrCat("look at ", place, " on ", who, ", for which all wait: run it less ",
                              "often, share it among the ranks, or move it to a thread or process ",
                              "beside the training");
  }
  return absl::StrCat("find out what ", who, group.ranks.size() > 1 ? " do" : " does",
                      " in these steps (a checkpoint, an evaluation, a log?): mark it with ",
                      "torch.profiler.record_function, and record again");
}

}  // namespace

std::vector<std::string> StallSentences(const Answer& answer) {
  if (!answer.stalls.has_value()) return {};
  const Stalls& stalls = *answer.stalls;
  const int64_t percent =
      stalls.total_ns > 0 ? (stalls.longer_ns * 100 + stalls.total_ns / 2) / stalls.total_ns : 0;
  std::vector<std::string> lines = {absl::StrCat(
      stalls.stalls, " of ", stalls.steps, stalls.stalls == 1 ? " steps takes" : " steps take",
      " twice as long as the median step (", Ms(stalls.usual_ns), " ms) or longer: together ",
      DurationText(stalls.longer_ns), " more, ", percent, " % of the time of all these steps")};
  size_t shown = 0;
  uint64_t left = stalls.stalls;
  for (const StallGroup& group : stalls.groups) {
    if (shown == kGroupsShown || !IsLarge(stalls, group)) break;
    ++shown;
    left -= group.stalls;
    for (std::string& line : GroupSentences(answer, group)) lines.push_back(std::move(line));
  }
  if (left > 0) {
    lines.push_back(absl::StrCat("what is known of the other ", left, ": --json"));
  }
  return lines;
}

std::vector<std::string> StallNext(const Answer& answer) {
  if (!answer.stalls.has_value() || answer.stalls->groups.empty()) return {};
  return {GroupNext(answer, answer.stalls->groups[0])};
}

std::string WithoutStalls(const Answer& answer, const RankFinding& finding) {
  if (!answer.stalls.has_value() || !finding.quiet_lead.has_value()) return "";
  return absl::StrCat("; without the ", Plural(answer.stalls->judged.size(), "stall"),
                      " among these steps by ", WithInterval(*finding.quiet_lead));
}

bool MostInStalls(const Answer& answer, const RankFinding& finding) {
  if (!answer.stalls.has_value() || !finding.quiet_lead.has_value()) return false;
  const auto names_it = [&](const StallGroup& group) {
    return group.kind == Kind::kRanks && IsLarge(*answer.stalls, group) &&
           std::find(group.ranks.begin(), group.ranks.end(), finding.index) != group.ranks.end();
  };
  const auto& groups = answer.stalls->groups;
  return finding.quiet_lead->est_ns * 2 < finding.lead.est_ns &&
         std::any_of(groups.begin(), groups.end(), names_it);
}

}  // namespace syncline::report
