// SPDX-License-Identifier: Apache-2.0
#include "agent/node/torch_sight.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/host/cpu_list.h"
#include "common/process_part.h"

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
                             " runs PyTorch without Syncline's hook: its operators, collectives "
                             "and transfers will not be recorded"),
                "python -S, -I and -E disable the hook, and so does a program that overwrites "
                "PYTHONPATH; start the process without these under `syncline run`",
                complaints);
  }
  const auto collector = EnvironmentOf(proc, pid, "INTEL_LIBITTNOTIFY64");
  if (collector.has_value() && absl::EndsWith(*collector, "libsyncline_itt.so")) return;
  Note(pid,
       absl::StrCat("Process ", pid,
                    " has another ITT collector than Syncline's: its collectives and transfers "
                    "will be recorded, its operators will not"),
       "let the tool that sets INTEL_LIBITTNOTIFY64 start `syncline run`, not the other way round",
       complaints);
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
         absl::StrCat("Process ", pid, " is limited to ", name, "=", *isa,
                      " on a processor with AVX-512"),
         "unset the variable, unless the limit is intended", complaints);
  }
}

// The first of the variables by which PyTorch sizes its pool of threads that is a number.
std::optional<uint32_t> ThreadsAskedFor(const std::filesystem::path& proc, int32_t pid) {
  for (const char* name : {"MKL_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const auto text = EnvironmentOf(proc, pid, name);
    const uint32_t threads = ThreadsAskedBy(text.value_or(""));
    if (threads > 0) return threads;
  }
  return std::nullopt;
}

// What the ranks of this node will run on, by what they were started with.
class ThreadCount {
 public:
  explicit ThreadCount(Processor processor) : processor_(std::move(processor)) {}

  void Add(const std::filesystem::path& proc, int32_t pid) {
    if (ranks_++ == 0) first_pid_ = pid;
    const auto set = ThreadsAskedFor(proc, pid);
    most_asked_ = std::max(most_asked_, set.value_or(0));
    if (set.has_value()) {
      threads_ += *set;
      return;
    }
    ++silent_;
    // One for each core that it may run on.
    const auto allowed = CpusAllowed(proc, pid);
    const size_t cpus = allowed.has_value() ? allowed->size() : processor_.cpus;
    threads_ += std::max<size_t>(1, cpus / std::max(1u, processor_.threads_per_core));
  }

  void Complain(Complaints* complaints) const {
    if (processor_.cpus == 0 || threads_ <= processor_.cpus) return;
    const std::string on = absl::StrCat(threads_, " threads on ", processor_.cpus, " CPUs");
    std::string what;
    if (silent_ == 0) {
      what = absl::StrCat("OMP_NUM_THREADS of ", ranks_, ranks_ == 1 ? " rank asks" : " ranks ask",
                          " for ", on, ": the ranks will wait for each other");
    } else if (ranks_ > 1) {  // one alone takes what there is, and nobody waits
      what = absl::StrCat("OMP_NUM_THREADS is not set for ", silent_, " of ", ranks_,
                          " ranks: unless the program calls torch.set_num_threads, the ranks run ",
                          on, " and wait for each other");
    } else {
      return;
    }
    const uint64_t each = std::max<uint64_t>(1, processor_.cpus / ranks_);
    // Nothing is gained by what they have already.
    std::string fix = silent_ == 0 && most_asked_ <= each
                          ? std::string("start fewer ranks on this node")
                          : absl::StrCat("OMP_NUM_THREADS=", each, " for each of them");
    Note(first_pid_, std::move(what), std::move(fix), complaints);
  }

 private:
  const Processor processor_;
  uint64_t ranks_ = 0;
  uint64_t silent_ = 0;  // of them, those that ask for no number
  uint64_t threads_ = 0;
  uint32_t most_asked_ = 0;
  int32_t first_pid_ = 0;
};

}  // namespace

Complaints ComplainOfTorch(const std::filesystem::path& proc,
                           std::span<const v1::ProcessInfo> infos,
                           const std::optional<Processor>& processor) {
  Complaints complaints;
  ThreadCount threads(processor.value_or(Processor()));
  for (const v1::ProcessInfo& info : infos) {
    if (info.pid() == 0 || FrameworkOf(proc, info.pid()) != "PyTorch") continue;
    if (info.part() == kPartLauncher || info.part() == kPartLoaderWorker) continue;
    ComplainOfHook(proc, info, &complaints);
    if (info.part() == kPartChild || !processor.has_value()) continue;
    ComplainOfIsa(proc, info.pid(), *processor, &complaints);
    if (info.rank() >= 0) threads.Add(proc, info.pid());
  }
  threads.Complain(&complaints);
  return complaints;
}

}  // namespace syncline::agent
