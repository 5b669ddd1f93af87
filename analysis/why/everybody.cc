// SPDX-License-Identifier: Apache-2.0
#include "analysis/why/everybody.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "analysis/why/scheduled_taker.h"

namespace syncline::analysis::why {
namespace {

constexpr int64_t kEverybodyPercent = 15;
constexpr size_t kQuotaNotesMax = 4;  // ranks of which it is said that all are throttled

void FindParts(Answer* answer) {
  for (size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    if (part == Part::kCompute || part == Part::kWaitAndTransfer || part == Part::kNotCovered) {
      continue;
    }
    const bool all =
        std::all_of(answer->ranks.begin(), answer->ranks.end(), [&](const RankSummary& rank) {
          return rank.mean[i] * 100 >= rank.mean_step_ns * kEverybodyPercent;
        });
    if (all && !answer->ranks.empty()) answer->everybody.push_back(part);
  }
}

// Says that all ranks have a quota that throttles them: no rank is named for it.
void NoteQuotas(const Judged& judged, Answer* answer) {
  size_t throttled = 0;
  for (const JudgedRank& rank : judged.ranks) {
    throttled += rank.samples.group.throttled_periods > 0 ? 1 : 0;
  }
  if (throttled < 2 || throttled < judged.ranks.size()) return;
  for (const JudgedRank& rank : judged.ranks) {
    const GroupFacts& group = rank.samples.group;
    if (answer->notes.size() >= kQuotaNotesMax) return;
    answer->notes.push_back(absl::StrCat(
        "rank ", rank.input->rank, ": its control group ", group.group->path, " was throttled in ",
        group.throttled_periods, " of ", group.periods, " periods, as those of all ranks were"));
  }
}

void FindTakerOfEverybody(const JobInput& input, const Judged& judged, Answer* answer) {
  const auto& parts = answer->everybody;
  if (std::find(parts.begin(), parts.end(), Part::kWaitingForCpu) == parts.end()) return;
  const auto waits = [&](size_t rank) {
    return answer->ranks[rank].mean[static_cast<size_t>(Part::kWaitingForCpu)];
  };
  size_t longest = 0;
  for (size_t rank = 1; rank < judged.ranks.size(); ++rank) {
    if (waits(rank) > waits(longest)) longest = rank;
  }
  const JudgedRank& rank = judged.ranks[longest];
  if (!rank.samples.measured()) return;
  answer->everybody_taker_rank = longest;
  answer->everybody_taker = WhoTook(input, rank);
}

void FindPlaceOfEverybody(const JobInput& input, const Judged& judged, Answer* answer) {
  const auto& parts = answer->everybody;
  if (std::find(parts.begin(), parts.end(), Part::kHostCode) == parts.end()) return;
  answer->everybody_stood = MostStoodIn(judged.places, input.names);
}

}  // namespace

void FindEverybody(const JobInput& input, const Judged& judged, Answer* answer) {
  NoteQuotas(judged, answer);
  FindParts(answer);
  FindTakerOfEverybody(input, judged, answer);
  FindPlaceOfEverybody(input, judged, answer);
}

}  // namespace syncline::analysis::why
