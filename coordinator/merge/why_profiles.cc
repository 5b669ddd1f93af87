// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why_profiles.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "analysis/why/device_explain.h"
#include "common/status.h"
#include "coordinator/merge/input_list.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/outputs.h"
#include "coordinator/merge/why_devices.h"
#include "timeline/builder.h"

namespace syncline::merge {
namespace {

namespace why = analysis::why;

std::vector<why::DeviceRank> RanksOf(const OpenedInputs& inputs, timeline::BuiltTimeline* built) {
  std::vector<why::DeviceRank> ranks;
  for (uint32_t i = 0; i < inputs.nodes.size(); ++i) {
    for (const timeline::KnownProcess& process : inputs.nodes[i].processes) {
      ProcessKey key = process.key;
      key.node = i;
      ranks.push_back(
          {process.rank, inputs.nodes[i].name, process.world_size, DevicesOf(key, built)});
    }
  }
  return ranks;
}

}  // namespace

absl::StatusOr<bool> AreProfiles(const InputOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.inputs));
  return list.is_profiles;
}

absl::StatusOr<why::DeviceAnswer> ExplainProfiles(const WhyOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.input.inputs));
  if (!list.is_profiles) return absl::InvalidArgumentError("no profiles");
  SYNCLINE_ASSIGN_OR_RETURN(OpenedInputs inputs, OpenInputs(options.input, list));
  inputs.build.threads = ThreadsOf(options.threads);
  if (options.progress) {
    inputs.build.progress = [&](const timeline::Progress& progress) {
      options.progress({inputs.nodes[progress.node].name, progress.time, progress.events, false});
    };
  }
  SYNCLINE_ASSIGN_OR_RETURN(timeline::BuiltTimeline built,
                            timeline::BuildTimeline(inputs.nodes, inputs.build, {}));
  inputs.build.progress = nullptr;
  const std::vector<why::DeviceRank> ranks = RanksOf(inputs, &built);
  why::DeviceAnswer answer = why::ExplainDevices(ranks);
  answer.incomplete = answer.incomplete || inputs.incomplete;
  for (size_t i = 0; i < built.nodes.size(); ++i) {
    if (built.nodes[i].losses.empty()) continue;
    answer.incomplete = true;
    answer.notes.push_back(absl::StrCat("something of the profile of ", inputs.nodes[i].name,
                                        " is lost: `syncline report --section losses` says what"));
  }
  for (std::string& complaint : inputs.complaints) {
    answer.notes.push_back(std::move(complaint));
  }
  // Not the notes: they are about how files are placed, and nothing here depends on that.
  return answer;
}

}  // namespace syncline::merge
