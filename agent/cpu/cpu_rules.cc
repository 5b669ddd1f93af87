// SPDX-License-Identifier: Apache-2.0
#include "agent/cpu/cpu_rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace syncline::agent {
namespace {

using Processes = std::vector<const CpuProcessFacts*>;

constexpr int kBlocktimeDefaultMs = 200;  // of the Intel and LLVM runtimes

// oneDNN's instruction sets from the lowest on, with the flags that each adds to `base`.
struct Isa {
  const char* name;
  const char* base;
  std::set<std::string> flags;
};
const std::vector<Isa>& Isas() {
  static const auto* const isas = new std::vector<Isa>{
      {"SSE41", "", {"sse4_1"}},
      {"AVX", "SSE41", {"avx"}},
      {"AVX2", "AVX", {"avx2"}},
      {"AVX2_VNNI", "AVX2", {"avx_vnni"}},
      {"AVX512_CORE", "AVX2", {"avx512f", "avx512bw", "avx512vl", "avx512dq"}},
      {"AVX512_CORE_VNNI", "AVX512_CORE", {"avx512_vnni"}},
      {"AVX512_CORE_BF16", "AVX512_CORE_VNNI", {"avx512_bf16"}},
      {"AVX512_CORE_FP16", "AVX512_CORE_BF16", {"avx512_fp16", "avx_vnni"}},
      {"AVX512_CORE_AMX", "AVX512_CORE_FP16", {"amx_tile", "amx_int8", "amx_bf16"}},
  };
  return *isas;
}

// All flags of one; empty: oneDNN has none of this name that could be a limit here.
std::set<std::string> FlagsOf(const std::string& name) {
  for (const Isa& isa : Isas()) {
    if (name != isa.name) continue;
    std::set<std::string> flags = FlagsOf(isa.base);
    flags.insert(isa.flags.begin(), isa.flags.end());
    return flags;
  }
  return {};
}

bool Includes(const std::set<std::string>& all, const std::set<std::string>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

std::string Setting(const CpuProcessFacts& process, const std::string& name) {
  const auto found = process.settings.find(name);
  return found == process.settings.end() ? "" : found->second;
}

v1::CpuFinding& Add(std::string kind, std::string text, std::string change,
                    const Processes& processes, v1::CpuCheck* check) {
  v1::CpuFinding& finding = *check->add_findings();
  finding.set_kind(std::move(kind));
  finding.set_text(std::move(text));
  finding.set_change(std::move(change));
  for (const CpuProcessFacts* process : processes) {
    v1::CpuProcess& added = *finding.add_processes();
    added.set_pid(process->pid);
    added.set_rank(process->rank);
    added.set_job(process->job);
  }
  return finding;
}

struct Words {
  std::string text, change;
  auto operator<=>(const Words&) const = default;
};

// What a rule says of single processes: those of which it says the same are together.
void AddEach(const std::string& kind, const CpuFacts& facts,
             const std::function<Words(const CpuProcessFacts&)>& rule, v1::CpuCheck* check) {
  std::map<Words, Processes> said;
  for (const CpuProcessFacts& process : facts.processes) {
    Words words = rule(process);
    if (!words.text.empty()) said[std::move(words)].push_back(&process);
  }
  for (const auto& [words, processes] : said) {
    Add(kind, words.text, words.change, processes, check);
  }
}

void CheckIsa(const CpuFacts& facts, v1::CpuCheck* check) {
  const std::string best = BestIsa(facts.flags);
  check->set_best_isa(best);
  const auto rule = [&](const CpuProcessFacts& process) -> Words {
    for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
      const std::string value = Setting(process, name);
      if (value.empty()) continue;
      const std::set<std::string> limit = FlagsOf(absl::AsciiStrToUpper(value));
      if (limit.empty() || Includes(limit, FlagsOf(best))) return {};
      return {absl::StrCat(name, "=", value, " holds oneDNN below ", best, ", which this CPU has"),
              absl::StrCat("unset ", name)};
    }
    return {};
  };
  if (!best.empty()) AddEach("isa", facts, rule, check);
}

Processes Ranks(const CpuFacts& facts) {
  Processes ranks;
  for (const CpuProcessFacts& process : facts.processes) {
    if (process.rank >= 0) ranks.push_back(&process);
  }
  return ranks;
}

CpuSet AllowedOf(const CpuFacts& facts, const CpuProcessFacts& process) {
  return process.allowed.value_or(facts.online);
}

CpuSet UnionOf(const CpuFacts& facts, const Processes& processes) {
  CpuSet cpus;
  for (const CpuProcessFacts* process : processes) cpus.merge(AllowedOf(facts, *process));
  return cpus;
}

size_t CoresIn(const CpuFacts& facts, const CpuSet& cpus) {
  CpuSet cores;
  for (const uint32_t cpu : cpus) {
    const auto core = facts.core_of.find(cpu);
    cores.insert(core == facts.core_of.end() ? cpu : core->second);
  }
  return cores.size();
}

// The first of the variables by which PyTorch sizes its pool of threads that is a number; 0: none.
uint32_t ThreadsAskedFor(const CpuProcessFacts& process, std::string* variable = nullptr) {
  for (const char* name : {"MKL_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const uint32_t threads = ThreadsAskedBy(Setting(process, name));
    if (threads == 0) continue;
    if (variable != nullptr) *variable = name;
    return threads;
  }
  return 0;
}

struct Threads {
  uint64_t count = 0;
  size_t silent = 0;  // of the processes, those that ask for no number
  uint32_t most_asked = 0;
  std::set<std::string> asked;  // "OMP_NUM_THREADS=3"
};
Threads ThreadsOf(const CpuFacts& facts, const Processes& processes) {
  Threads threads;
  for (const CpuProcessFacts* process : processes) {
    std::string variable;
    const uint32_t asked = ThreadsAskedFor(*process, &variable);
    threads.most_asked = std::max(threads.most_asked, asked);
    if (asked == 0) ++threads.silent;
    if (asked != 0) threads.asked.insert(absl::StrCat(variable, "=", asked));
    // PyTorch takes one for each core that it may run on.
    threads.count +=
        asked != 0 ? asked : std::max<size_t>(1, CoresIn(facts, AllowedOf(facts, *process)));
  }
  return threads;
}

std::string WhatIsSet(const Threads& threads, size_t ranks) {
  if (threads.silent == ranks) return "OMP_NUM_THREADS is not set";
  std::string text = absl::StrJoin(threads.asked, ", ");
  if (threads.silent > 0) absl::StrAppend(&text, ", not set for ", threads.silent);
  return text;
}

// `room` is where they run: "2 CPUs". Without a finding: false.
bool CheckRoom(const CpuFacts& facts, const Processes& ranks, double cpus, const std::string& kind,
               const std::string& room, v1::CpuCheck* check) {
  const Threads threads = ThreadsOf(facts, ranks);
  if (cpus <= 0 || static_cast<double>(threads.count) <= cpus) return false;
  // One alone that asks for nothing takes what it is given; a quota does not lower that.
  if (threads.silent == ranks.size() && ranks.size() == 1 && kind != "threads-quota") return false;
  const auto each =
      static_cast<uint64_t>(std::max(1.0, std::floor(cpus / static_cast<double>(ranks.size()))));
  const bool too_many_ranks = threads.silent == 0 && threads.most_asked <= each;
  Add(kind,
      absl::StrCat(WhatIsSet(threads, ranks.size()), ": ",
                   threads.silent > 0 ? "unless the program chooses, " : "", ranks.size(),
                   ranks.size() == 1 ? " rank asks for " : " ranks ask for ", threads.count,
                   " threads on ", room),
      too_many_ranks
          ? std::string("start fewer ranks on this node")
          : absl::StrCat(threads.asked.size() == 1 && threads.asked.begin()->starts_with("MKL")
                             ? "MKL"
                             : "OMP",
                         "_NUM_THREADS=", each),
      ranks, check);
  return true;
}

std::string CpusText(size_t cpus) { return absl::StrCat(cpus, cpus == 1 ? " CPU" : " CPUs"); }

// Returns whether the ranks have more threads than CPUs.
bool CheckThreads(const CpuFacts& facts, v1::CpuCheck* check) {
  const Processes ranks = Ranks(facts);
  if (ranks.empty()) return false;
  std::map<CpuSet, Processes> by_cpus;
  std::map<std::string, std::pair<double, Processes>> by_group;
  for (const CpuProcessFacts* rank : ranks) {
    by_cpus[AllowedOf(facts, *rank)].push_back(rank);
    for (const CpuQuota& quota : rank->quotas) {
      by_group[quota.group].first = quota.cpus;
      by_group[quota.group].second.push_back(rank);
    }
  }
  bool crowded = false;
  for (const auto& [cpus, sharers] : by_cpus) {
    crowded |= CheckRoom(facts, sharers, static_cast<double>(cpus.size()), "threads-cpus",
                         CpusText(cpus.size()), check);
  }
  const CpuSet all = UnionOf(facts, ranks);
  if (!crowded && by_cpus.size() > 1) {
    crowded = CheckRoom(facts, ranks, static_cast<double>(all.size()), "threads-cpus",
                        CpusText(all.size()), check);
  }
  const size_t cores = CoresIn(facts, all);
  if (!crowded && cores < all.size()) {
    CheckRoom(facts, ranks, static_cast<double>(cores), "threads-cores",
              absl::StrCat(cores, cores == 1 ? " core (" : " cores (", CpusText(all.size()), ")"),
              check);
  }
  for (const auto& [group, quota] : by_group) {
    const double cpus = std::round(quota.first * 100) / 100;
    CheckRoom(facts, quota.second, quota.first, "threads-quota",
              absl::StrCat("a quota of ", cpus, cpus == 1 ? " CPU" : " CPUs", " (control group ",
                           group, "), and may be throttled"),
              check);
  }
  return crowded;
}

bool Intersect(const CpuSet& a, const CpuSet& b) {
  return std::any_of(a.begin(), a.end(), [&](uint32_t cpu) { return b.count(cpu) != 0; });
}

// Ranks with the same CPUs share them on purpose, or are too many for them (CheckThreads).
void CheckOverlap(const CpuFacts& facts, v1::CpuCheck* check) {
  const Processes ranks = Ranks(facts);
  Processes overlapping;
  for (const CpuProcessFacts* one : ranks) {
    if (!one->allowed.has_value() || *one->allowed == facts.online) return;  // not each is pinned
    const bool overlaps = std::any_of(ranks.begin(), ranks.end(), [&](const auto* other) {
      return other->allowed.has_value() && *other->allowed != *one->allowed &&
             Intersect(*one->allowed, *other->allowed);
    });
    if (overlaps) overlapping.push_back(one);
  }
  if (overlapping.empty()) return;
  Add("affinity-overlap", "the CPUs that these ranks are pinned to overlap in part",
      "pin each rank to CPUs of its own (taskset, numactl, --cpu-bind, --bind-to core)",
      overlapping, check);
}

void CheckNuma(const CpuFacts& facts, v1::CpuCheck* check) {
  const Processes ranks = Ranks(facts);
  if (facts.numa_nodes.size() < 2 || ranks.size() < facts.numa_nodes.size()) return;
  std::map<size_t, Processes> spanning;
  for (const CpuProcessFacts* rank : ranks) {
    if (!rank->allowed.has_value()) continue;
    const auto nodes = static_cast<size_t>(
        std::count_if(facts.numa_nodes.begin(), facts.numa_nodes.end(),
                      [&](const auto& node) { return Intersect(*rank->allowed, node.second); }));
    if (nodes > 1) spanning[nodes].push_back(rank);
  }
  for (const auto& [nodes, processes] : spanning) {
    Add("numa",
        absl::StrCat("may run on CPUs of ", nodes,
                     " NUMA nodes, and memory of another node is "
                     "slower to reach"),
        "start each rank under numactl --cpunodebind=N --membind=N", processes, check);
  }
}

bool IsFalse(const std::string& text) {
  return absl::AsciiStrToLower(text) == "false" || text == "0";
}

void CheckOpenMp(const CpuFacts& facts, bool crowded, v1::CpuCheck* check) {
  const auto rule = [&](const CpuProcessFacts& process) -> Words {
    std::string kmp;
    for (const auto& [name, value] : process.settings) {
      if (name.starts_with("KMP_")) absl::StrAppend(&kmp, kmp.empty() ? "" : ", ", name);
    }
    if (process.has_gnu_openmp && !process.has_intel_openmp) {
      if (kmp.empty()) return {};
      return {absl::StrCat(kmp, " without effect: only GNU's OpenMP (libgomp) is loaded"),
              absl::StrCat("unset ", kmp, ", or LD_PRELOAD=libiomp5.so")};
    }
    const std::string affinity = Setting(process, "KMP_AFFINITY");
    if (affinity.empty() || !process.has_intel_openmp) return {};
    if (const std::string gomp = Setting(process, "GOMP_CPU_AFFINITY"); !gomp.empty()) {
      return {absl::StrCat("KMP_AFFINITY=", affinity, " and GOMP_CPU_AFFINITY=", gomp,
                           " both set where threads run"),
              "unset GOMP_CPU_AFFINITY"};
    }
    if (const std::string bind = Setting(process, "OMP_PROC_BIND"); IsFalse(bind)) {
      return {absl::StrCat("KMP_AFFINITY=", affinity, " overrides OMP_PROC_BIND=", bind),
              "unset OMP_PROC_BIND or KMP_AFFINITY"};
    }
    return {};
  };
  AddEach("openmp", facts, rule, check);
  if (!crowded) return;
  AddEach(
      "blocktime", facts,
      [](const CpuProcessFacts& process) -> Words {
        const std::string value = Setting(process, "KMP_BLOCKTIME");
        int ms = 0;
        const bool infinite = absl::AsciiStrToLower(value) == "infinite";
        if (process.rank < 0 || !process.has_intel_openmp) return {};
        if (!infinite && (!absl::SimpleAtoi(value, &ms) || ms <= kBlocktimeDefaultMs)) return {};
        return {absl::StrCat("KMP_BLOCKTIME=", value,
                             ": threads that wait keep spinning on CPUs "
                             "that other threads need"),
                "KMP_BLOCKTIME=0"};
      },
      check);
}

void CheckNode(const CpuFacts& facts, v1::CpuCheck* check) {
  if (facts.huge_pages == "never") {
    Add("huge-pages", "transparent huge pages are off (never)",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled", {}, check);
  }
  // There "powersave" is the name of an algorithm that follows the load.
  const bool own_algorithm =
      facts.scaling_driver == "intel_pstate" || facts.scaling_driver == "amd-pstate-epp";
  if (facts.governors.count("powersave") != 0 && !own_algorithm) {
    Add("governor",
        absl::StrCat("the frequency governor is powersave (driver ",
                     facts.scaling_driver.empty() ? "unknown" : facts.scaling_driver,
                     "): CPUs stay at their lowest frequency"),
        "cpupower frequency-set -g performance", {}, check);
  }
}

}  // namespace

std::string BestIsa(const std::set<std::string>& flags) {
  std::string best;
  for (const Isa& isa : Isas()) {
    if (Includes(flags, FlagsOf(isa.name))) best = isa.name;
  }
  return best;
}

v1::CpuCheck CheckFacts(const CpuFacts& facts) {
  v1::CpuCheck check;
  CheckIsa(facts, &check);
  const bool crowded = CheckThreads(facts, &check);
  CheckOverlap(facts, &check);
  CheckNuma(facts, &check);
  CheckOpenMp(facts, crowded, &check);
  CheckNode(facts, &check);
  for (const std::string& what : facts.not_read) check.add_not_read(what);
  return check;
}

}  // namespace syncline::agent
