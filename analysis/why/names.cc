#include "analysis/why/model.h"

namespace syncline::analysis::why {

const char* PartName(Part part) {
  switch (part) {
    case Part::kCompute:
      return "compute";
    case Part::kThrottled:
      return "throttled";
    case Part::kWaitingForCpu:
      return "waiting for a CPU";
    case Part::kInput:
      return "input";
    case Part::kHostCode:
      return "host code";
    case Part::kGarbageCollection:
      return "garbage collection";
    case Part::kWaitAndTransfer:
      return "wait and transfer";
    case Part::kNotCovered:
      return "not covered";
  }
  return "";
}

const char* PartJsonName(Part part) {
  switch (part) {
    case Part::kCompute:
      return "compute";
    case Part::kThrottled:
      return "throttled";
    case Part::kWaitingForCpu:
      return "waiting_for_cpu";
    case Part::kInput:
      return "input";
    case Part::kHostCode:
      return "host_code";
    case Part::kGarbageCollection:
      return "garbage_collection";
    case Part::kWaitAndTransfer:
      return "wait_and_transfer";
    case Part::kNotCovered:
      return "not_covered";
  }
  return "";
}

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
    case Refusal::kSeveralGroups:
      return "several_groups";
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

}  // namespace syncline::analysis::why
