// SPDX-License-Identifier: Apache-2.0
#include "export/report/sections.h"

#include <algorithm>

#include "export/report/communicators_text.h"
#include "export/report/device_health_text.h"
#include "export/report/devices_text.h"
#include "export/report/hot_text.h"
#include "export/report/machines_text.h"
#include "export/report/network_text.h"
#include "export/report/primitives_text.h"
#include "export/report/scheduling_text.h"
#include "export/report/section_printers.h"
#include "export/report/vtune_text.h"

namespace syncline::report {
namespace {

bool Always(const analysis::Report& /*report*/) { return true; }

constexpr Section kSections[] = {
    {"recording", "Recording", Always, RecordingInFull, RecordingInShort},
    {"nodes", "Nodes", HasNodes, NodesInFull, NodesInShort},
    {"coverage", "Coverage", HasCoverage, CoverageInFull, CoverageInShort},
    {"losses", "Losses", Always, LossesInFull, LossesInShort},
    {"clock-events", "Clock events", HasClockEvents, ClockEventsInFull, ClockEventsInShort},
    {"wall-clocks", "What a merge by wall clock would get wrong", HasWallClocks, WallClocksInFull,
     WallClocksInShort},
    {"steps", "Steps", HasSteps, StepsInFull, StepsInShort},
    {"machines", "What the machines did", HasMachines, MachinesInFull, MachinesInShort,
     MachinesInJson, "it needs recorded processes, and samples, which `--no-evidence` leaves out"},
    {"scheduling", "Scheduling", HasScheduling, SchedulingInFull, SchedulingInShort,
     SchedulingInJson,
     "`syncline record --scheduling` records when each thread ran, and who had its CPU when it was "
     "ready to"},
    {"network", "Network", HasNetwork, NetworkInFull, NetworkInShort, NetworkInJson,
     "it needs TCP connections of recorded processes, and samples, which `--no-evidence` leaves "
     "out"},
    {"devices", "Devices", HasDevices, DevicesInFull, DevicesInShort, DevicesInJson,
     "start PyTorch jobs with `syncline run --kineto`, other programs on GPUs with `syncline run "
     "--devices`"},
    {"device-health", "Device health", HasDeviceHealth, DeviceHealthInFull, DeviceHealthInShort,
     DeviceHealthInJson,
     "it needs an NVIDIA or AMD GPU that an agent sees (`syncline nodes`), and samples, which "
     "`--no-evidence` leaves out"},
    {"nccl", "NCCL's communicators", HasCommunicators, CommunicatorsInFull, CommunicatorsInShort,
     CommunicatorsInJson,
     "start jobs that use NCCL or RCCL with `syncline run --nccl` (docs/nccl.md)"},
    {"collectives", "Collectives", HasCollectives, CollectivesInFull, CollectivesInShort},
    {"transfers", "Sends and receives", HasTransfers, TransfersInFull, TransfersInShort},
    {"tensors", "Tensors between processes", HasTensors, TensorsInFull, TensorsInShort},
    {"operators", "Operators and tasks", HasOperators, OperatorsInFull, OperatorsInShort},
    {"primitives", "oneDNN's primitives", HasPrimitives, PrimitivesInFull, PrimitivesInShort,
     PrimitivesInJson,
     "it needs oneDNN in processes that were started with `syncline run` (docs/onednn.md)"},
    {"hot", "Hot code", HasHotCode, HotCodeInFull, HotCodeInShort, HotCodeInJson,
     "`syncline record --samples` samples which code the recorded threads run"},
    {"vtune", "VTune", HasVtune, VtuneInFull, nullptr, VtuneInJson,
     "`syncline vtune ANALYSIS` lets VTune collect in the window of a recording (docs/vtune.md)"},
    {"messages", "Messages between processes", HasMessages, MessagesInFull, MessagesInShort},
    {"partitions", "Partitions", HasPartitions, PartitionsInFull, nullptr},
    {"profiles", "Profiles", HasProfiles, ProfilesInFull, ProfilesInShort, nullptr,
     "start PyTorch jobs with `syncline run --kineto`; for TensorFlow: "
     "docs/tensorflow-profiler.md"},
    {"overhead", "Overhead of the recording", HasOverhead, OverheadInFull, OverheadInShort,
     OverheadInJson},
};

}  // namespace

std::span<const Section> Sections() { return kSections; }

const Section* FindSection(std::string_view name) {
  const auto found = std::find_if(std::begin(kSections), std::end(kSections),
                                  [&](const Section& section) { return section.name == name; });
  return found == std::end(kSections) ? nullptr : found;
}

std::vector<std::string> SectionNames() {
  std::vector<std::string> names;
  for (const Section& section : kSections) names.emplace_back(section.name);
  return names;
}

std::vector<std::string> SectionNames(const analysis::Report& report) {
  std::vector<std::string> names;
  for (const Section& section : kSections) {
    if (section.has(report)) names.emplace_back(section.name);
  }
  return names;
}

}  // namespace syncline::report
