// SPDX-License-Identifier: Apache-2.0
// A window in which no step ended, and where the ranks stood right behind it: together they say
// whether the job stands still, and who is behind. A recording keeps both as RUN/stacks.json, so
// that it says the same later (docs/recording-format.md).
//
// A job moves if a rank made a call in the last half of the window, or if the numbers of a process
// group changed between the two looks. If nothing of that is so, it stands still, or is inside of
// calls that take longer: from outside these two are alike, and the text says both.
//
// Thread-safe: no state.
#ifndef SYNCLINE_COORDINATOR_STACKS_STANDSTILL_H_
#define SYNCLINE_COORDINATOR_STACKS_STANDSTILL_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "analysis/why/no_step.h"
#include "coordinator/stacks/verdict.h"

namespace syncline::stacks {

// What RUN/stacks.json holds.
struct KeptLook {
  analysis::why::NoStep no_step;
  std::vector<NodeLook> looks;
};

// Points into the look.
struct Standstill {
  bool moves = false;
  std::vector<GroupVerdict> groups;
  // It does not move, and of a group it is known who is behind, or that nobody is.
  bool answered() const;
};

Standstill JudgeStandstill(const KeptLook& look);

// One paragraph: that no step ended, and whether the job moved.
std::string StandstillSentence(const KeptLook& look, const Standstill& standstill);

// Without other jobs' ranks. `job`: ID or ID/INCARNATION.
KeptLook OnlyJob(KeptLook look, const std::string& job);

// For `why --json`: the key `standstill` of docs/why-json.md.
std::string StandstillJson(const KeptLook& look, const Standstill& standstill);

// FailedPrecondition: of another format_version; InvalidArgument: no such file.
absl::StatusOr<KeptLook> ParseKeptLook(std::string_view json);
std::string FormatKeptLook(const KeptLook& look);

// NotFound: the recording has none.
absl::StatusOr<KeptLook> ReadKeptLook(const std::filesystem::path& run);
absl::Status WriteKeptLook(const std::filesystem::path& run, const KeptLook& look);

}  // namespace syncline::stacks

#endif  // SYNCLINE_COORDINATOR_STACKS_STANDSTILL_H_
