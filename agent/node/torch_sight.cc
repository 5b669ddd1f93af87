#include "agent/node/torch_sight.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace syncline::agent {
namespace {

using Complaints = std::vector<v1::Complaint>;

bool Has(const v1::ProcessInfo& info, std::string_view source) {
  return std::find(info.sources().begin(), info.sources().end(), source) != info.sources().end();
}

void Note(int32_t pid, std::string what, std::string fix, Complaints* complaints) {
  v1::Complaint& complaint = complaints->emplace_back();
  complaint.set_severity(v1::Complaint::NOTE);
  complaint.set_pid(pid);
  complaint.set_what(std::move(what));
  complaint.set_fix(std::move(fix));
}

// What the hook, or its absence, leaves out.
void ComplainOfHook(const std::filesystem::path& proc, const v1::ProcessInfo& info,
                    Complaints* complaints) {
  const int32_t pid = info.pid();
  if (!Has(info, "python")) {
    return Note(pid,
                absl::StrCat("Process ", pid,
                             " runs PyTorch without Syncline's hook: no operators, "
                             "collectives or transfers of it will be recorded"),
                "python -S, -I and -E leave it out, and so does a program that sets PYTHONPATH "
                "anew; start it without these under `syncline run`",
                complaints);
  }
  const auto collector = EnvironmentOf(proc, pid, "INTEL_LIBITTNOTIFY64");
  if (collector.has_value() && absl::EndsWith(*collector, "libsyncline_itt.so")) return;
  Note(pid,
       absl::StrCat("Process ", pid,
                    " has another ITT collector than Syncline's: collectives and "
                    "transfers of it will be recorded, operators will not"),
       "leave INTEL_LIBITTNOTIFY64 to `syncline run`", complaints);
}

// oneDNN is held below what the processor has.
void ComplainOfIsa(const std::filesystem::path& proc, int32_t pid, const Processor& processor,
                   Complaints* complaints) {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const auto isa = EnvironmentOf(proc, pid, name);
    const auto& features = processor.features;
    const bool has_avx512 =
        std::find(features.begin(), features.end(), "avx512f") != features.end();
    if (!isa.has_value() || !has_avx512) continue;
    if (absl::StrContains(*isa, "AVX512") || absl::StrContains(*isa, "AVX10") ||
        *isa == "DEFAULT" || *isa == "ALL" || isa->empty()) {
      continue;
    }
    Note(pid,
         absl::StrCat("Process ", pid, " is held to ", name, "=", *isa,
                      " on a processor with AVX-512"),
         "unset it, unless that is meant", complaints);
  }
}

}  // namespace

Complaints ComplainOfTorch(const std::filesystem::path& proc,
                           std::span<const v1::ProcessInfo> infos, const Processor& processor) {
  Complaints complaints;
  uint64_t threads = 0;
  uint64_t asking = 0;
  int32_t first_pid = 0;
  for (const v1::ProcessInfo& info : infos) {
    if (info.pid() == 0 || FrameworkOf(proc, info.pid()) != "PyTorch") continue;
    ComplainOfHook(proc, info, &complaints);
    ComplainOfIsa(proc, info.pid(), processor, &complaints);
    uint32_t wanted = 0;
    const auto openmp = EnvironmentOf(proc, info.pid(), "OMP_NUM_THREADS");
    if (info.rank() < 0 || !openmp.has_value() || !absl::SimpleAtoi(*openmp, &wanted)) continue;
    threads += wanted;
    if (asking++ == 0) first_pid = info.pid();
  }
  if (processor.cpus > 0 && threads > processor.cpus) {
    Note(first_pid,
         absl::StrCat("OMP_NUM_THREADS of ", asking, asking == 1 ? " rank asks" : " ranks ask",
                      " for ", threads, " threads on ", processor.cpus,
                      " CPUs: they will wait for each other"),
         absl::StrCat("OMP_NUM_THREADS=",
                      std::max<uint64_t>(1, processor.cpus / std::max<uint64_t>(1, asking)),
                      " for each of them"),
         &complaints);
  }
  return complaints;
}

}  // namespace syncline::agent
