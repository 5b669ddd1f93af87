// SPDX-License-Identifier: Apache-2.0
#include "agent/cpu/read_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/cpu/cpu_rules.h"
#include "agent/evidence/proc_text.h"
#include "agent/host/cpu_list.h"
#include "common/files.h"
#include "common/process_part.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFileBytesMax = 64 << 20;

std::optional<std::string> Read(const fs::path& path) {
  auto text = ReadFile(path, kFileBytesMax);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

std::string Line(const fs::path& path) {
  return std::string(absl::StripAsciiWhitespace(Read(path).value_or("")));
}

std::set<std::string> ReadFlags(const fs::path& proc) {
  const std::string text = Read(proc / "cpuinfo").value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "flags")) continue;
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    std::set<std::string> flags;
    for (absl::string_view flag : absl::StrSplit(field.second, ' ', absl::SkipEmpty())) {
      flags.emplace(flag);
    }
    return flags;
  }
  return {};
}

void ReadTopology(const fs::path& sys, CpuFacts* facts) {
  const fs::path cpus = sys / "devices/system/cpu";
  facts->online = ParseCpuList(Line(cpus / "online")).value_or(CpuSet());
  if (facts->online.empty()) facts->not_read.emplace_back("online CPUs");
  for (const uint32_t cpu : facts->online) {
    const fs::path one = cpus / absl::StrCat("cpu", cpu);
    const auto siblings = ParseCpuList(Line(one / "topology/thread_siblings_list"));
    if (siblings.has_value() && !siblings->empty()) facts->core_of[cpu] = *siblings->begin();
    const std::string governor = Line(one / "cpufreq/scaling_governor");
    if (governor.empty()) continue;
    facts->governors.insert(governor);
    facts->scaling_driver = Line(one / "cpufreq/scaling_driver");
  }
  const fs::path nodes = sys / "devices/system/node";
  const auto numbers = ParseCpuList(Line(nodes / "online"));
  for (const uint32_t node : numbers.value_or(CpuSet())) {
    auto on_node = ParseCpuList(Line(nodes / absl::StrCat("node", node) / "cpulist"));
    // A node may have memory only.
    if (on_node.has_value() && !on_node->empty()) facts->numa_nodes[node] = *std::move(on_node);
  }
}

// "always" of "[always] madvise never".
std::string ChosenMode(const std::string& text) {
  const size_t begin = text.find('[');
  const size_t end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return text.substr(begin + 1, end - begin - 1);
}

// What the rules ask for.
bool IsOfInterest(absl::string_view name) {
  return absl::StartsWith(name, "KMP_") || name == "OMP_NUM_THREADS" || name == "OMP_PROC_BIND" ||
         name == "MKL_NUM_THREADS" || name == "GOMP_CPU_AFFINITY" || name == "ONEDNN_MAX_CPU_ISA" ||
         name == "DNNL_MAX_CPU_ISA";
}

// CPUs that one group allows; nullopt: it has no limit.
std::optional<double> QuotaOf(const fs::path& directory, int version) {
  std::optional<int64_t> quota;
  std::optional<int64_t> period;
  if (version == 1) {
    quota = ParseMicroseconds(Line(directory / "cpu.cfs_quota_us"));
    period = ParseMicroseconds(Line(directory / "cpu.cfs_period_us"));
  } else if (const auto limit = ParseCpuMax(Line(directory / "cpu.max")); limit.has_value()) {
    quota = limit->quota_ns;
    period = limit->period_ns;
  }
  if (quota.value_or(-1) <= 0 || period.value_or(0) <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// False: they cannot be read.
bool ReadQuotas(const CpuRoots& roots, const std::vector<CgroupMount>& mounts,
                CpuProcessFacts* facts) {
  const auto text = Read(roots.proc / absl::StrCat(facts->pid) / "cgroup");
  if (!text.has_value()) return false;
  const std::vector<SeenGroup> groups = GroupsOf(ParseCgroups(*text), mounts);
  for (const SeenGroup& group : groups) {
    absl::string_view directory = group.directory;
    const fs::path here = absl::ConsumePrefix(&directory, "/sys/")
                              ? roots.sys / std::string(directory)
                              : fs::path(group.directory);
    const auto cpus = QuotaOf(here, group.version);
    if (cpus.has_value()) facts->quotas.push_back({group.path, *cpus});
  }
  return !groups.empty();
}

bool ReadProcessFacts(const CpuRoots& roots, CpuProcessFacts* facts) {
  const fs::path directory = roots.proc / absl::StrCat(facts->pid);
  const auto environment = Read(directory / "environ");
  if (!environment.has_value()) return false;
  for (absl::string_view entry : absl::StrSplit(*environment, '\0')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    if (IsOfInterest(pair.first)) {
      facts->settings.emplace(std::string(pair.first), std::string(pair.second));
    }
  }
  const std::string maps = Read(directory / "maps").value_or("");
  facts->has_gnu_openmp = absl::StrContains(maps, "/libgomp");
  facts->has_intel_openmp =
      absl::StrContains(maps, "/libiomp5") || absl::StrContains(maps, "/libomp");
  return true;
}

}  // namespace

CpuFacts ReadCpuFacts(const CpuRoots& roots, const std::vector<v1::ProcessInfo>& processes) {
  CpuFacts facts;
  facts.flags = ReadFlags(roots.proc);
  if (facts.flags.empty()) facts.not_read.emplace_back("flags of the CPU");
  ReadTopology(roots.sys, &facts);
  facts.huge_pages = ChosenMode(Line(roots.sys / "kernel/mm/transparent_hugepage/enabled"));
  const std::vector<CgroupMount> mounts =
      ParseMounts(Read(roots.proc / "self/mountinfo").value_or(""));
  bool quotas = true, settings = true, affinity = true;
  for (const v1::ProcessInfo& info : processes) {
    const std::string& part = info.part();
    if (info.pid() == 0 || part == kPartLauncher || part == kPartLoaderWorker ||
        part == kPartChild) {
      continue;
    }
    CpuProcessFacts process;
    process.pid = info.pid();
    process.rank = info.rank();
    process.job = info.job();
    settings &= ReadProcessFacts(roots, &process);
    process.allowed = CpusAllowed(roots.proc, process.pid);
    affinity &= process.allowed.has_value();
    quotas &= ReadQuotas(roots, mounts, &process);
    facts.processes.push_back(std::move(process));
  }
  if (!settings) facts.not_read.emplace_back("environment of some processes");
  if (!affinity) facts.not_read.emplace_back("affinity of some processes");
  if (!quotas) facts.not_read.emplace_back("cgroup quota");
  return facts;
}

v1::CpuCheck CheckCpu(const CpuRoots& roots, const std::vector<v1::ProcessInfo>& processes) {
  return CheckFacts(ReadCpuFacts(roots, processes));
}

}  // namespace syncline::agent
