// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/report/units.h"
#include "export/why/stalls_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::Answer;
using analysis::why::Cause;
using analysis::why::NotACause;
using analysis::why::Part;
using analysis::why::PartName;
using analysis::why::RankFinding;
using analysis::why::RankSummary;
using analysis::why::StoodIn;
using analysis::why::Taker;

constexpr size_t kShownMax = 6;
constexpr double kManyFaults = 1;  // a step
constexpr double kMostlyBlocked = 0.5;
constexpr uint64_t kStepsWanted = 60;  // what `syncline why` records by default

std::string NodeOf(const RankSummary& rank) { return "node " + Printed(rank.node); }

std::string OnNode(const RankSummary& rank) {
  return absl::StrCat("rank ", rank.rank, " on ", NodeOf(rank));
}

std::string ForWaiting(const RankSummary& rank, const Cause& cause) {
  const std::string own_cpu = absl::StrCat("give ", OnNode(rank), " a CPU of its own (pin it)");
  const Taker taker = cause.taker.value_or(Taker{});
  switch (taker.kind) {
    case Taker::Kind::kOutside:
      if (taker.name.empty()) break;
      return absl::StrCat("move, stop or pin elsewhere ", Printed(taker.name), " (pid ", taker.pid,
                          " on ", NodeOf(rank), "), or ", own_cpu);
    case Taker::Kind::kRank:
      return absl::StrCat("pin the ranks on ", NodeOf(rank),
                          " to different CPUs, or start fewer processes there");
    case Taker::Kind::kOwnLoader:
      return absl::StrCat("pin the loader workers of ", OnNode(rank),
                          " to other CPUs than the rank's, or give the rank more CPUs");
    case Taker::Kind::kOwnThread:
      return absl::StrCat("start fewer threads on ", OnNode(rank),
                          " (torch.set_num_threads), or give the rank more CPUs");
    case Taker::Kind::kSyncline:
      return absl::StrCat("pin the Syncline agent on ", NodeOf(rank),
                          " to a CPU that no rank uses");
    case Taker::Kind::kNobody:
      return absl::StrCat("look for a CPU quota above the control groups that ", NodeOf(rank),
                          " shows, or for a busy hypervisor: the CPU was idle while ", OnNode(rank),
                          " was ready to run");
    case Taker::Kind::kUnknown:
      break;
  }
  return absl::StrCat(own_cpu, "; `top` on ", NodeOf(rank), " may show who runs there");
}

// Where the group's memory was full: what would show that more of it helps. Else empty.
std::string IfReadAgain(const RankSummary& rank, const Cause& cause) {
  if (!IsFullOften(cause)) return "";
  return absl::StrCat("raise the memory limit of ",
                      Printed(cause.full_memory->group.path, kGroupColumns), " on ", NodeOf(rank),
                      " if workingset_refault_file or workingset_refault_anon grows in its "
                      "memory.stat: then what was dropped is read again; else ");
}

std::string ForBlocked(const RankSummary& rank, const Cause& cause) {
  const std::string stack = absl::StrCat(
      "what it waits for, as root there: `while sleep 0.01; do grep -q ^State:.D /proc/", rank.pid,
      "/status && cat /proc/", rank.pid, "/stack; done`");
  const std::string memory = IfReadAgain(rank, cause);
  if (memory.empty() && cause.blocked.has_value() &&
      cause.blocked->faults.value_or(0) >= kManyFaults) {
    return absl::StrCat("give ", OnNode(rank),
                        " more memory (limit of its container, swap), or do not map files that "
                        "storage serves slowly; ",
                        stack);
  }
  return absl::StrCat(memory, "keep what ", OnNode(rank),
                      " reads or writes in memory or on faster ",
                      "storage, or leave it to loader workers; ", stack);
}

constexpr char kForMemory[] =
    "let the program keep memory that it frees, unless it maps files or forks in each step: start "
    "it with MALLOC_TRIM_THRESHOLD_=4294967296 MALLOC_MMAP_THRESHOLD_=33554432 (glibc), or with "
    "tcmalloc or jemalloc in LD_PRELOAD; it may then need more of it";

std::string ForCause(const RankSummary& rank, const Cause& cause) {
  switch (cause.part) {
    case Part::kThrottled:
      if (cause.group.empty()) {
        return absl::StrCat("raise the CPU quota of the container of ", OnNode(rank));
      }
      return absl::StrCat("raise the quota of ", Printed(cause.group, kGroupColumns), " on ",
                          NodeOf(rank), " (from ", CpusText(cause), ")");
    case Part::kWaitingForCpu:
      return ForWaiting(rank, cause);
    case Part::kBlocked:
      return ForBlocked(rank, cause);
    case Part::kInput: {
      const double blocked = cause.loader_blocked.value_or(0);
      const std::string memory = blocked >= kLoaderBlockedLeast ? IfReadAgain(rank, cause) : "";
      if (blocked >= kMostlyBlocked) {
        return absl::StrCat(memory, "make the storage faster that the data loader of ",
                            OnNode(rank), " reads from, or give it more workers");
      }
      return absl::StrCat(memory, "give the data loader of ", OnNode(rank),
                          " more workers, or make its preprocessing or its storage faster");
    }
    case Part::kGarbageCollection:
      return absl::StrCat("call gc.freeze() after set-up on ", OnNode(rank),
                          ", or collect garbage at the same step on all ranks");
    case Part::kCompute:
      if (cause.threads.has_value()) {
        return absl::StrCat("give ", OnNode(rank),
                            " as many threads as the others have (OMP_NUM_THREADS, "
                            "torch.set_num_threads), and as many CPUs (taskset, cpuset)");
      }
      return absl::StrCat("see whether ONEDNN_MAX_CPU_ISA limits ", OnNode(rank),
                          " (`syncline nodes --check`); else its CPU may have no higher set, or "
                          "its data another layout (`syncline report --section primitives`)");
    default:
      return "`syncline report` shows more";
  }
}

// `finding` has one.
std::string ForPlace(const Answer& answer, const RankFinding& finding) {
  const RankSummary& rank = answer.ranks[finding.index];
  const StoodIn& stood = *finding.stood;
  if (IsHeldUpByItsThreads(answer, finding)) {
    return absl::StrCat("see which threads of ", OnNode(rank), " run Python meanwhile: ",
                        "`syncline stacks` a few times, or py-spy on pid ", rank.pid);
  }
  if (stood.place.empty()) {
    return absl::StrCat("find out what Python code ", OnNode(rank),
                        " runs between its operators: ", "py-spy on pid ", rank.pid,
                        ", or marks in your own code ", "(torch.profiler.record_function)");
  }
  const std::string within =
      stood.within.empty()
          ? ""
          : absl::StrCat(", in what it calls (", Printed(stood.within, kPlaceColumns), ")");
  return absl::StrCat("look at ", Printed(stood.place, kPlaceColumns), within, ": ", OnNode(rank),
                      " spends more time there than the others");
}

// Its operators take most of it longer.
bool IsInOperators(const RankFinding& finding) {
  return finding.longer.has_value() && finding.longer->longer_ns * 2 >= finding.unexplained_ns();
}

// `finding` has such operators. `alone`: the job has no other node.
std::string ForOperators(const RankSummary& rank, const RankFinding& finding, bool alone) {
  if (finding.longer->all.has_value()) {
    const std::string data =
        absl::StrCat("see whether ", OnNode(rank), " works on more data than the others; else ");
    return absl::StrCat(finding.shapes_known ? "" : data, "compare the ",
                        alone ? "CPUs of " : "processor of ", alone ? OnNode(rank) : NodeOf(rank),
                        " with ", alone ? "those of the other ranks" : "those of the other nodes",
                        " (model, clock frequency, what else uses their caches and memory): "
                        "`lscpu`, `syncline nodes --check`");
  }
  return absl::StrCat("look at ", Printed(finding.longer->operators[0].name), " on ", OnNode(rank),
                      ": what it works on (sizes, denormal numbers, layout, memory of another NUMA "
                      "node), and how (its code, settings of libraries); `syncline record "
                      "--samples` and `syncline report --section hot` say in which functions it "
                      "spends its time");
}

// Page faults may be most of it, and no single operator is.
bool SeemsMemory(const RankFinding& finding) {
  const int64_t unknown_ns = finding.unexplained_ns();
  if (!finding.page_faults.has_value() || finding.page_faults->more_ns * 2 < unknown_ns) {
    return false;
  }
  const bool named = finding.longer.has_value() && !finding.longer->operators.empty();
  return !named || finding.longer->operators[0].longer.est_ns * 2 < unknown_ns;
}

// A hypervisor may have taken most of it.
bool SeemsStolen(const Answer& answer, const RankFinding& finding) {
  return finding.steal.has_value() && finding.steal->more_ns * 2 >= finding.unexplained_ns() &&
         !SleepsAtHome(answer, finding);
}

std::string ForStealTime(const RankSummary& rank) {
  return absl::StrCat("move ", NodeOf(rank),
                      " to a less busy host, or to an instance with processors of its own (one "
                      "whose CPU credits are used up, or whose own limit is reached, looks the "
                      "same); `vmstat 1` there shows steal "
                      "time as st");
}

// Its CPU's lower clock may be most of it.
bool SeemsSlowed(const RankFinding& finding) {
  return finding.clock.has_value() && finding.clock->more_ns * 2 >= finding.unexplained_ns();
}

std::string ForSlowClock(const RankSummary& rank) {
  return absl::StrCat("find out what keeps the clock of ", NodeOf(rank),
                      " down: its settings "
                      "(`syncline nodes --check`, `cpupower frequency-info`), heat (`grep . "
                      "/sys/devices/system/cpu/cpu*/thermal_throttle/*_total_time_ms` grows, on "
                      "Intel's), a power limit (`turbostat`, its BMC), or a slower kind of core");
}

// Not certainly enough to be named.
bool SeemsBlocked(const Answer& answer, const RankFinding& finding) {
  return std::any_of(finding.not_causes.begin(), finding.not_causes.end(),
                     [&](const NotACause& one) {
                       return one.part == Part::kBlocked && one.measured &&
                              one.amount_ns > LimitNs(answer, finding);
                     });
}

std::string ForUnknown(const Answer& answer, const RankFinding& finding) {
  const RankSummary& rank = answer.ranks[finding.index];
  if (!finding.work.empty()) {
    return absl::StrCat("balance the work: ", OnNode(rank), " does not do the same as the others");
  }
  if (SeemsSlowed(finding)) return ForSlowClock(rank);
  // Code that keeps the interpreter's lock may wait for storage (a mapped file).
  const bool told = finding.stood.has_value() && !IsInOperators(finding);
  if (told && !(finding.stood->place.empty() && SeemsBlocked(answer, finding))) {
    return ForPlace(answer, finding);
  }
  if (!rank.taken_away_known || !IsCompared(finding)) {
    return "record again with samples of processor time, which are evidence of throttling and of "
           "waiting for a CPU";
  }
  if (SeemsStolen(answer, finding)) return ForStealTime(rank);
  const bool unmeasured =
      std::any_of(finding.not_causes.begin(), finding.not_causes.end(),
                  [](const NotACause& one) { return one.part == Part::kBlocked && !one.measured; });
  if (unmeasured || SeemsBlocked(answer, finding)) {
    return absl::StrCat("record again with `--scheduling`, which says exactly how long ",
                        OnNode(rank), " is blocked in the kernel, and then `syncline why`");
  }
  const bool quota = std::any_of(
      finding.not_causes.begin(), finding.not_causes.end(),
      [](const NotACause& one) { return one.because == NotACause::Because::kSharedQuota; });
  if (quota)
    return "raise the CPU quotas of all ranks, which throttle them all, or balance their work";
  if (SeemsMemory(finding)) return kForMemory;
  if (SleepsAtHome(answer, finding)) {
    return absl::StrCat("find out what ", OnNode(rank), " waits for in its own work: sample ",
                        "the stack of pid ", rank.pid, " (`syncline stacks` a few times, py-spy, ",
                        "gdb), or mark your own code (torch.profiler.record_function)");
  }
  const bool alone = std::all_of(answer.ranks.begin(), answer.ranks.end(),
                                 [&](const RankSummary& one) { return one.node == rank.node; });
  if (IsInOperators(finding)) return ForOperators(rank, finding, alone);
  return absl::StrCat(alone ? "compare what " : "compare hardware and load of ",
                      alone ? absl::StrCat(OnNode(rank), " does with what the other ranks do")
                            : absl::StrCat(NodeOf(rank), " with those of the other nodes"),
                      "; `syncline report` lists its operators; a longer recording (`syncline why ",
                      "--for 60s`) shows whether the lead stays");
}

std::string ForPlaceOfEverybody(const StoodIn& stood) {
  const std::string place = Printed(stood.place, kPlaceColumns);
  if (stood.within.find("(torch/") != std::string::npos) {
    return absl::StrCat("most of host code is PyTorch's own, called by ", place,
                        ": fewer and larger operators make less of it (larger batches, ",
                        "torch.compile)");
  }
  return absl::StrCat("look at ", place,
                      ", where all ranks spend time: make it shorter, or move it out of the step");
}

std::string ForEverybody(const Answer& answer, Part part) {
  switch (part) {
    case Part::kThrottled:
      return "raise the CPU quotas of all ranks";
    case Part::kWaitingForCpu:
      if (answer.everybody_taker.has_value() &&
          answer.everybody_taker->kind == Taker::Kind::kOutside &&
          !answer.everybody_taker->name.empty()) {
        return absl::StrCat("move, stop or pin elsewhere what runs beside the job (most by ",
                            Printed(answer.everybody_taker->name), ", pid ",
                            answer.everybody_taker->pid, " on ",
                            NodeOf(answer.ranks[answer.everybody_taker_rank]),
                            "), or give each rank CPUs of its own");
      }
      return "start fewer processes and threads on the nodes, or give each rank CPUs of its own";
    case Part::kBlocked:
      return "keep what the ranks read or write in memory or on faster storage; what one of them "
             "waits for, as root: `while sleep 0.01; do grep -q ^State:.D /proc/PID/status && cat "
             "/proc/PID/stack; done`";
    case Part::kInput:
      return "give the data loaders of all ranks more workers, or make preprocessing or storage "
             "faster";
    case Part::kGarbageCollection:
      return "call gc.freeze() after set-up, or collect garbage less often, on all ranks";
    case Part::kHostCode:
      if (answer.everybody_stood.has_value()) return ForPlaceOfEverybody(*answer.everybody_stood);
      return "find out what the ranks do between their operators: sample their stacks (py-spy, "
             "gdb), "
             "or mark your own code (torch.profiler.record_function)";
    default:
      return absl::StrCat("`syncline report` shows what ", PartName(part), " consists of");
  }
}

}  // namespace

std::vector<std::string> NextSentences(const Answer& answer) {
  std::vector<std::string> next = StallNext(answer);
  for (const RankFinding& finding : answer.findings) {
    if (finding.mostly_explained()) {
      for (const Cause& cause : finding.causes) {
        next.push_back(ForCause(answer.ranks[finding.index], cause));
      }
      if (finding.stood.has_value()) next.push_back(ForPlace(answer, finding));
    }
    const bool unknown = !finding.mostly_explained() && !MostInStalls(answer, finding);
    if (unknown) next.push_back(ForUnknown(answer, finding));
  }
  for (const Part part : answer.everybody) next.push_back(ForEverybody(answer, part));
  const auto add_once = [&](std::string one) {
    if (std::find(next.begin(), next.end(), one) == next.end()) next.push_back(std::move(one));
  };
  const RankSummary* const stolen = MostStolen(answer);
  if (stolen != nullptr) add_once(ForStealTime(*stolen));
  if (PageFaultsAreMuch(answer)) add_once(kForMemory);
  if (answer.path.has_value() && answer.path->small.has_value()) {
    next.emplace_back(
        "join small collectives where the program needs no result before it calls the next one: "
        "one for many tensors that are copied into one (torch.cat), as DistributedDataParallel "
        "does, or one at the end of several steps");
  }
  if (next.size() > kShownMax) {
    const size_t left = next.size() - kShownMax;
    next.resize(kShownMax);
    next.push_back(absl::StrCat("and so on for ", Plural(left, "cause"), " more"));
  }
  if (!next.empty()) return next;
  if (!answer.closest.has_value()) {
    return {"nothing to compare; `syncline report` lists the largest operators"};
  }
  if (answer.steps < kStepsWanted) {
    return {absl::StrCat("for a surer answer: `syncline why --for ", kStepsWanted, "steps`")};
  }
  if (answer.undecided) {
    return {"record for longer, or when the job runs evenly: `syncline why --for 60s`"};
  }
  int64_t all_ns = 0;
  for (const analysis::why::StepClass& one : answer.classes) all_ns += one.total_ns;
  const int64_t judged_ns = answer.classes.empty() ? 0 : answer.classes[0].total_ns;
  if ((all_ns - judged_ns) * 10 > all_ns) {
    return {
        "nothing to do for stragglers in the judged steps; steps of other classes take more "
        "than a tenth of the time, and are not judged"};
  }
  return {"nothing to do for stragglers"};
}

}  // namespace syncline::report
