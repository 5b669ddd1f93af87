// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/why_profiles.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "analysis/why/device_explain.h"
#include "common/status.h"
#include "coordinator/merge/input_list.h"
#include "coordinator/merge/inputs.h"
#include "coordinator/merge/losses.h"
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

// The profiles, read. Ranks point into the timeline.
struct Read {
  OpenedInputs inputs;
  timeline::BuiltTimeline built;
  std::vector<why::DeviceRank> ranks;
  bool incomplete = false;
  std::vector<std::string> notes;  // what is missing
};

absl::StatusOr<Read> ReadProfiles(const WhyOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.input.inputs));
  if (!list.is_profiles) return absl::InvalidArgumentError("no profiles");
  Read read;
  SYNCLINE_ASSIGN_OR_RETURN(read.inputs, OpenInputs(options.input, list));
  OpenedInputs& inputs = read.inputs;
  inputs.build.threads = ThreadsOf(options.threads);
  if (options.progress) {
    inputs.build.progress = [&](const timeline::Progress& progress) {
      options.progress({inputs.nodes[progress.node].name, progress.time, progress.events, false});
    };
  }
  SYNCLINE_ASSIGN_OR_RETURN(read.built, timeline::BuildTimeline(inputs.nodes, inputs.build, {}));
  inputs.build.progress = nullptr;
  read.ranks = RanksOf(inputs, &read.built);
  read.incomplete = inputs.incomplete;
  for (size_t i = 0; i < read.built.nodes.size(); ++i) {
    if (read.built.nodes[i].losses.empty()) continue;
    read.incomplete = true;
    read.notes.push_back(absl::StrCat("something of the profile of ", inputs.nodes[i].name,
                                      " is lost: `syncline report --section losses` says what"));
  }
  // Not the notes: they are about how files are placed, and nothing here depends on that.
  for (std::string& complaint : inputs.complaints) read.notes.push_back(std::move(complaint));
  return read;
}

}  // namespace

absl::StatusOr<bool> AreProfiles(const InputOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const InputList list, ListInputs(options.inputs));
  return list.is_profiles;
}

absl::StatusOr<why::DeviceAnswer> ExplainProfiles(const WhyOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(Read read, ReadProfiles(options));
  why::DeviceAnswer answer = why::ExplainDevices(read.ranks);
  answer.incomplete = answer.incomplete || read.incomplete;
  for (std::string& note : read.notes) answer.notes.push_back(std::move(note));
  return answer;
}

absl::StatusOr<why::DeviceSide> ReadProfileSide(const WhyOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(Read read, ReadProfiles(options));
  why::DeviceSide side = why::DeviceSideOf(read.ranks);
  side.incomplete = side.incomplete || read.incomplete;
  for (std::string& note : read.notes) side.notes.push_back(std::move(note));
  side.lost_events = LossesOf(read.inputs, read.built).lost_events;
  return side;
}

}  // namespace syncline::merge
