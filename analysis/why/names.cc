// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "analysis/why/cut_model.h"
#include "analysis/why/device_model.h"
#include "analysis/why/model.h"

namespace syncline::analysis::why {

namespace {

struct Names {
  const char* text;
  const char* json;
};

// By Part.
constexpr std::array<Names, kParts> kPartNames = {{{"compute", "compute"},
                                                   {"throttled", "throttled"},
                                                   {"waiting for a CPU", "waiting_for_cpu"},
                                                   {"blocked in kernel", "blocked"},
                                                   {"input", "input"},
                                                   {"host code", "host_code"},
                                                   {"garbage collection", "garbage_collection"},
                                                   {"wait and transfer", "wait_and_transfer"},
                                                   {"not covered", "not_covered"}}};

constexpr std::array<Names, kDeviceParts> kDevicePartNames = {
    {{"computing", "computing"},
     {"copies", "copies"},
     {"waiting for input", "input"},
     {"waiting for a launch", "launch"},
     {"launched, not started", "not_started"},
     {"idle, launch not known", "launch_unknown"},
     {"exposed communication", "communication"}}};

}  // namespace

const char* PartName(Part part) { return kPartNames[static_cast<size_t>(part)].text; }

const char* PartJsonName(Part part) { return kPartNames[static_cast<size_t>(part)].json; }

const char* VerdictJsonName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNotJudged:
      return "none";
    case Verdict::kNobody:
      return "nobody";
    case Verdict::kCause:
      return "cause";
    case Verdict::kLateCauseUnknown:
      return "late_cause_unknown";
    case Verdict::kWorkDiffers:
      return "work_differs";
    case Verdict::kEverybody:
      return "everybody";
    case Verdict::kStandsStill:
      return "stands_still";
  }
  return "";
}

const char* RefusalJsonName(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "";
    case Refusal::kNothingRecorded:
      return "nothing_recorded";
    case Refusal::kForeignTrace:
      return "foreign_trace";
    case Refusal::kTensorFlowJob:
      return "tensorflow_job";
    case Refusal::kNoPyTorchOperators:
      return "no_pytorch_operators";
    case Refusal::kGpuJob:
      return "gpu_job";
    case Refusal::kSecondLauncher:
      return "second_launcher";
    case Refusal::kNoSteps:
      return "no_steps";
    case Refusal::kTooFewSteps:
      return "too_few_steps";
    case Refusal::kRanksDisagree:
      return "ranks_disagree";
    case Refusal::kNotCovered:
      return "not_covered";
    case Refusal::kRankMissing:
      return "rank_missing";
  }
  return "";
}

const char* DevicePartName(DevicePart part) {
  return kDevicePartNames[static_cast<size_t>(part)].text;
}

const char* DevicePartJsonName(DevicePart part) {
  return kDevicePartNames[static_cast<size_t>(part)].json;
}

const char* DeviceVerdictJsonName(DeviceVerdict verdict) {
  switch (verdict) {
    case DeviceVerdict::kNotJudged:
      return "none";
    case DeviceVerdict::kNobody:
      return "nobody";
    case DeviceVerdict::kLate:
      return "late";
    case DeviceVerdict::kUndecided:
      return "undecided";
  }
  return "";
}

const char* DeviceRefusalJsonName(DeviceRefusal refusal) {
  switch (refusal) {
    case DeviceRefusal::kNone:
      return "";
    case DeviceRefusal::kNoDeviceWork:
      return "no_device_work";
    case DeviceRefusal::kNoSteps:
      return "no_steps";
    case DeviceRefusal::kNoRank:
      return "no_rank";
    case DeviceRefusal::kSeveralDevices:
      return "several_devices";
    case DeviceRefusal::kHostCollectives:
      return "host_collectives";
    case DeviceRefusal::kPeerToPeer:
      return "peer_to_peer";
    case DeviceRefusal::kRanksDisagree:
      return "ranks_disagree";
  }
  return "";
}

const char* CutRefusalJsonName(CutRefusal refusal) {
  switch (refusal) {
    case CutRefusal::kNone:
      return "none";
    case CutRefusal::kNoTensors:
      return "no_tensors";
    case CutRefusal::kSeveralJobs:
      return "several_jobs";
    case CutRefusal::kDevices:
      return "devices";
    case CutRefusal::kNoSteps:
      return "no_steps";
    case CutRefusal::kStepsOverlap:
      return "steps_overlap";
    case CutRefusal::kPathUnknown:
      return "path_unknown";
    case CutRefusal::kSeveralClients:
      return "several_clients";
    case CutRefusal::kStepsDiffer:
      return "steps_differ";
    case CutRefusal::kTooFewSteps:
      return "too_few_steps";
  }
  return "none";
}

}  // namespace syncline::analysis::why
