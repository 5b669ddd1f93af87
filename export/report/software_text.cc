// SPDX-License-Identifier: Apache-2.0
#include "export/report/software_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "export/report/hot_words.h"
#include "export/report/json_values.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::HotTask;
using analysis::Report;
using analysis::Share;
using analysis::ShareOf;
using analysis::SoftwareCount;
using analysis::SoftwareNode;
using analysis::SoftwareTask;
using evidence::kSoftwareKinds;
using evidence::SoftwareKind;

constexpr size_t kTasksMax = 25;
// A task whose page faults certainly take less than that of its processor time is not spoken of.
constexpr double kNoticeable = 0.05;
constexpr int64_t kAllButNs = 100'000'000;  // the window, but for the agent's last turn
constexpr std::array<const char*, kSoftwareKinds> kKindNames = {"minor_faults", "major_faults",
                                                                "blocked", "preempted", "moved"};

constexpr char kLegend[] =
    "Each counts for the innermost task that was open on the thread; a task for which none was "
    "noted "
    "is not listed. minor faults: pages that were given to the program, of memory that it has "
    "asked "
    "for or of files that were in memory; in faults: part of its samples, of all of the window; "
    "major: pages read from storage; blocked: it left the processor to wait for something; "
    "preempted: it could have run on, for: how long it had none then; moved: it went on on another "
    "processor.";

std::string NameOf(const SoftwareTask& task) {
  return HotPlaceText(task.where, task.domain, task.name);
}

// Of a damaged recording a sum may be anything.
int64_t Whole(double number) { return std::llround(std::clamp(number, 0.0, 1e18)); }

std::string Rounded(double count) { return Count(static_cast<uint64_t>(Whole(count))); }

std::string CountText(const SoftwareCount& count) {
  if (count.count <= 0 && count.half_width <= 0) return "0";
  const std::string text = Rounded(count.count);
  if (count.half_width <= 0) return text;
  return absl::StrCat(text, " ± ", Rounded(std::ceil(count.half_width)));
}

std::string ACall(const SoftwareTask& task, SoftwareKind kind) {
  if (task.calls == 0) return "";
  const double count = task.Of(kind).count / static_cast<double>(task.calls);
  return count >= 100 ? Rounded(count) : absl::StrFormat("%.*f", count >= 10 ? 1 : 2, count);
}

// The code samples of the same task; nullptr: it has none.
const HotTask* SampledTask(const Report& report, const SoftwareTask& task) {
  for (const HotTask& hot : report.hot.tasks) {
    const bool same = hot.where == task.where && hot.domain == task.domain && hot.name == task.name;
    if (same) return &hot;
  }
  return nullptr;
}

// Whether what the kernel did has samples, on every node.
bool KernelIsSampled(const Report& report) {
  return std::all_of(report.hot.nodes.begin(), report.hot.nodes.end(),
                     [](const analysis::HotNode& node) { return node.kernel; });
}

std::string FaultShare(const Report& report, const SoftwareTask& task) {
  const HotTask* const hot = SampledTask(report, task);
  if (hot == nullptr || !KernelIsSampled(report)) return "";
  return HotShareText(hot->fault_samples, hot->samples);
}

int64_t UsedNs(const Report& report, uint32_t node) {
  int64_t used_ns = 0;
  for (const analysis::HotNode& hot : report.hot.nodes) {
    if (hot.node == node) used_ns += hot.on_cpu_ns;
  }
  return used_ns;
}

void PrintNode(const Report& report, const SoftwareNode& node, Page* page) {
  const std::string& name = report.nodes[node.node].name;
  const auto total = [&](SoftwareKind kind) {
    return Count(node.kernels[static_cast<size_t>(kind)]);
  };
  page->Line(absl::StrCat(name, ": the kernel counted ", total(SoftwareKind::kMinorFault),
                          " minor and ", total(SoftwareKind::kMajorFault),
                          " major page faults, and ", total(SoftwareKind::kBlocked),
                          " voluntary and ", total(SoftwareKind::kPreempted),
                          " involuntary switches of the threads that lived until the end."));
  if (!node.kernel) {
    page->Line(absl::StrCat(name,
                            ": page faults in the kernel's own work for a thread (reading into "
                            "new memory) are in that count and not in the table, as the agent may "
                            "not see them (it needs root or CAP_PERFMON)."));
  }
  if (node.watched_ns < 0) return;
  std::string text =
      absl::StrCat(name, ": watching cost the threads some ", DurationText(node.cost_ns),
                   " of processor time (", Percent(node.cost_ns, UsedNs(report, node.node)), ")");
  if (node.watched_ns < node.all_ns) {
    absl::StrAppend(&text, "; it was ended after ", DurationText(node.watched_ns),
                    ", because it cost too much");
  }
  page->Line(text + ".");
  if (node.lost > 0) {
    page->Warn(absl::StrCat(name, ": the kernel had no room for ", Plural(node.lost, "record"),
                            " of page faults and switches"));
  }
  if (node.table_ns < node.all_ns - kAllButNs) {
    page->Line(absl::StrCat(name, ": the table is of the first ", DurationText(node.table_ns),
                            " of the window; the kernel's counts are of all of it."));
  }
}

bool IsNoticeable(uint64_t part, uint64_t whole) { return ShareOf(part, whole).lo >= kNoticeable; }

void PrintNoticeable(Page* page) {
  const Report& report = page->report();
  if (!KernelIsSampled(report)) return;
  for (const HotTask& hot : report.hot.tasks) {
    std::vector<std::string> parts;
    if (IsNoticeable(hot.fault_samples, hot.samples)) {
      parts.push_back(absl::StrCat("page faults take ",
                                   HotShareText(hot.fault_samples, hot.samples),
                                   " of its processor time"));
    }
    if (IsNoticeable(hot.release_samples, hot.samples)) {
      parts.push_back(absl::StrCat("giving memory back to the system takes ",
                                   HotShareText(hot.release_samples, hot.samples)));
    }
    if (!parts.empty()) {
      page->Line(absl::StrCat(HotPlaceText(hot.where, hot.domain, hot.name), ": ",
                              absl::StrJoin(parts, "; "), "."));
    }
  }
}

bool HasAny(const SoftwareTask& task) {
  return std::any_of(task.kinds.begin(), task.kinds.end(),
                     [](const SoftwareCount& count) { return count.count > 0; });
}

Json OfCount(const SoftwareCount& count) {
  return {{"count", count.count}, {"half_width", count.half_width}};
}

Json OfTask(const Report& report, const SoftwareTask& task) {
  Json json = {{"where", HotPlaceJsonName(task.where)},
               {"domain", task.domain},
               {"name", task.name},
               {"calls", task.calls}};
  for (size_t kind = 0; kind < kSoftwareKinds; ++kind) {
    json[kKindNames[kind]] = OfCount(task.kinds[kind]);
  }
  json["blocked_ns"] = Whole(task.Of(SoftwareKind::kBlocked).away_ns);
  json["preempted_ns"] = Whole(task.Of(SoftwareKind::kPreempted).away_ns);
  const HotTask* const hot = SampledTask(report, task);
  if (hot == nullptr || !KernelIsSampled(report)) return json;
  json["samples"] = hot->samples;
  json["fault_samples"] = hot->fault_samples;
  json["release_samples"] = hot->release_samples;
  return json;
}

Json OfNode(const Report& report, const SoftwareNode& node) {
  const bool known = node.watched_ns >= 0;
  Json kernels;
  for (size_t kind = 0; kind < kSoftwareKinds; ++kind) {
    if (kind != static_cast<size_t>(SoftwareKind::kMoved)) {
      kernels[kKindNames[kind]] = node.kernels[kind];
    }
  }
  return {{"node", report.nodes[node.node].name},
          {"kernel", node.kernel},
          {"watched_ns", known ? Json(node.watched_ns) : Json(nullptr)},
          {"window_ns", known ? Json(node.all_ns) : Json(nullptr)},
          {"cost_ns", known ? Json(node.cost_ns) : Json(nullptr)},
          {"lost", node.lost},
          {"table_ns", node.table_ns},
          {"kernel_counts", kernels}};
}

}  // namespace

void PrintSoftware(Page* page) {
  const Report& report = page->report();
  const analysis::SoftwareReport& software = report.hot.software;
  if (software.nodes.empty()) return;
  page->Raw("\n");
  for (const SoftwareNode& node : software.nodes) PrintNode(report, node, page);
  Table table({{"faults and switches of", Table::Align::kLeft, true, 24},
               {"calls", Table::Align::kRight},
               {"minor faults", Table::Align::kRight},
               {"a call", Table::Align::kRight},
               {"in faults", Table::Align::kRight},
               {"major", Table::Align::kRight},
               {"blocked", Table::Align::kRight},
               {"a call", Table::Align::kRight},
               {"preempted", Table::Align::kRight},
               {"for", Table::Align::kRight},
               {"moved", Table::Align::kRight}});
  size_t with_any = 0;
  for (const SoftwareTask& task : software.tasks) {
    if (!HasAny(task) || ++with_any > kTasksMax) continue;
    const SoftwareCount& preempted = task.Of(SoftwareKind::kPreempted);
    table.Add(
        {NameOf(task), task.calls > 0 ? Count(task.calls) : "",
         CountText(task.Of(SoftwareKind::kMinorFault)), ACall(task, SoftwareKind::kMinorFault),
         FaultShare(report, task), CountText(task.Of(SoftwareKind::kMajorFault)),
         CountText(task.Of(SoftwareKind::kBlocked)), ACall(task, SoftwareKind::kBlocked),
         CountText(preempted), preempted.away_ns > 0 ? DurationText(Whole(preempted.away_ns)) : "",
         CountText(task.Of(SoftwareKind::kMoved))});
  }
  if (with_any > 0) page->Print(table);
  if (with_any > kTasksMax) {
    page->Line(absl::StrCat("and ", Plural(with_any - kTasksMax, "other task"), "."));
  }
  if (with_any > 0) page->Line(kLegend);
  PrintNoticeable(page);
}

Json SoftwareInJson(const Report& report) {
  Json nodes = Json::array(), tasks = Json::array();
  for (const SoftwareNode& node : report.hot.software.nodes) nodes.push_back(OfNode(report, node));
  for (const SoftwareTask& task : report.hot.software.tasks) tasks.push_back(OfTask(report, task));
  return {{"nodes", nodes}, {"tasks", tasks}};
}

}  // namespace syncline::report
