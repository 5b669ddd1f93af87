// SPDX-License-Identifier: Apache-2.0
#include "export/report/machines_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/process_part.h"
#include "common/utf8.h"
#include "export/report/json_values.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::MachineReport;
using analysis::OtherUsage;
using analysis::ProcessUsage;
using analysis::Report;

constexpr size_t kGroupColumns = 240;  // of the path of a control group
constexpr int64_t kPpm = 1'000'000;
// What is said of others in one line: from a tenth of a CPU on. In full: from a hundredth on.
constexpr int64_t kMuchPpm = 100'000;
constexpr int64_t kLittlePpm = 10'000;
// A wait of less is not said in one line.
constexpr int64_t kWaitPpm = 20'000;
constexpr int64_t kFaultsPpm = 30'000;  // nor page faults that take less
// Below that, the row's time is said to be a part of the window.
constexpr int64_t kSampledPercent = 90;

// Of the time in which its CPUs had something to do. nullopt: not measured, or they had nothing.
std::optional<int64_t> StolenPpm(const ProcessUsage& usage) {
  const int64_t all_ns = usage.cpus_busy_ns + usage.cpus_stolen_ns;
  if (all_ns <= 0) return std::nullopt;
  return static_cast<int64_t>(static_cast<double>(usage.cpus_stolen_ns) * kPpm /
                              static_cast<double>(all_ns));
}

std::string StolenText(const ProcessUsage& usage) {
  const std::optional<int64_t> ppm = StolenPpm(usage);
  return ppm.has_value() ? PercentOfPpm(*ppm) : "-";
}

std::string ClockText(const ProcessUsage& usage) {
  constexpr double kKhzInGhz = 1e6;
  if (usage.clock_khz <= 0) return "-";
  return absl::StrFormat("%.2f", static_cast<double>(usage.clock_khz) / kKhzInGhz);
}

struct Row {
  std::string name;
  const ProcessUsage* usage = nullptr;
  int64_t window_ns = 0;

  // Runnable without a CPU, of the time of its main thread.
  int64_t kept_ns() const { return usage->waiting_ns + usage->throttled_ns; }
  int64_t kept_ppm() const { return kept_ns() * kPpm / usage->sampled_ns; }
  int64_t blocked_ppm() const { return usage->blocked_ns.value_or(0) * kPpm / usage->sampled_ns; }
  int64_t faults_ppm() const { return usage->faults_ns() * kPpm / usage->sampled_ns; }
  int64_t stolen_ppm() const { return StolenPpm(*usage).value_or(0); }
  int64_t throttled_ppm() const { return usage->throttled_ns * kPpm / usage->sampled_ns; }
};

bool IsRank(const MachineReport::Process& process) {
  return process.rank >= 0 && process.part != kPartLauncher && process.part != kPartLoaderWorker;
}

// The ranks; where there is none, all processes.
std::vector<Row> RowsOf(const Report& report) {
  std::vector<Row> ranks;
  std::vector<Row> all;
  for (const MachineReport& machine : report.machines) {
    for (const MachineReport::Process& process : machine.processes) {
      const Row row{process.name, &process.usage, machine.window_ns};
      all.push_back(row);
      if (IsRank(process)) ranks.push_back(row);
    }
  }
  return ranks.empty() ? all : ranks;
}

// "1.84": of a time, how many at once.
std::string MeanText(int64_t sum_ns, int64_t time_ns) {
  return absl::StrFormat("%.2f", static_cast<double>(sum_ns) / static_cast<double>(time_ns));
}

// "-": not known.
std::string BlockedText(const ProcessUsage& usage) {
  return usage.blocked_ns.has_value() ? Percent(*usage.blocked_ns, usage.sampled_ns) : "-";
}

std::string ReadText(const ProcessUsage& usage) {
  if (!usage.read_bytes.has_value()) return "-";
  return absl::StrFormat(
      "%.1f", static_cast<double>(*usage.read_bytes) * 1e3 / static_cast<double>(usage.sampled_ns));
}

std::string FaultsText(const ProcessUsage& usage) {
  if (!usage.minor_faults.has_value()) return "-";
  return Count(static_cast<uint64_t>(static_cast<double>(*usage.minor_faults) * 1e9 /
                                     static_cast<double>(usage.sampled_ns)));
}

struct Other {
  std::string name;
  int64_t running_ns = 0;
  bool blocked = false;  // for so long that it is said
};

Other OtherOf(const OtherUsage& other) {
  const char* what = other.relation == evidence::Relation::kDescendant ? ", child of the job"
                     : other.relation == evidence::Relation::kSyncline ? ", of Syncline"
                                                                       : "";
  return {absl::StrCat(other.name, " (pid ", other.pid, what, ")"), other.running_ns};
}

// What ran beside the rows, who ran most first: of those that were recorded, who is no rank.
std::vector<Other> OthersOn(const Report& report, const MachineReport& machine,
                            const std::vector<Row>& rows) {
  std::vector<Other> others;
  for (const OtherUsage& other : machine.others) others.push_back(OtherOf(other));
  const std::string prefix = report.nodes[machine.node].name + " · ";
  for (const MachineReport::Process& process : machine.processes) {
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const Row& row) { return row.usage == &process.usage; })) {
      continue;
    }
    absl::string_view name = process.name;
    absl::ConsumePrefix(&name, prefix);
    const Row row{process.name, &process.usage, machine.window_ns};
    const bool blocked = row.blocked_ppm() >= kWaitPpm;
    others.push_back({absl::StrCat(name, " (recorded", blocked ? ", blocked " : "",
                                   blocked ? PercentOfPpm(row.blocked_ppm()) : "", ")"),
                      process.usage.threads_running_ns, blocked});
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const Other& a, const Other& b) { return a.running_ns > b.running_ns; });
  return others;
}

// Of each node those that ran beside the rows for `least_ppm` of the window or more.
std::vector<std::string> OthersOf(const Report& report, const std::vector<Row>& rows,
                                  int64_t least_ppm) {
  std::vector<std::string> nodes;
  for (const MachineReport& machine : report.machines) {
    std::vector<std::string> others;
    for (const Other& other : OthersOn(report, machine, rows)) {
      if (machine.window_ns <= 0 || others.size() == kNamed) break;
      if (!other.blocked && other.running_ns < machine.window_ns / kPpm * least_ppm) continue;
      others.push_back(
          absl::StrCat(other.name, " ", MeanText(other.running_ns, machine.window_ns), " CPUs"));
    }
    if (others.empty()) continue;
    nodes.push_back(
        absl::StrCat(report.nodes[machine.node].name, ": ", absl::StrJoin(others, ", ")));
  }
  return nodes;
}

// Ranks whose samples are of a part of the window.
std::string PartlySampled(const std::vector<Row>& rows) {
  std::vector<SpreadValue> partly;
  for (const Row& row : rows) {
    const int64_t sampled_ns = row.usage->sampled_ns;
    if (sampled_ns >= row.window_ns / 100 * kSampledPercent) continue;
    const int64_t ppm = sampled_ns * kPpm / row.window_ns;
    partly.push_back({row.name, ppm, PercentOfPpm(ppm)});
  }
  if (partly.empty()) return "";
  const SpreadStyle least_first{PercentOfPpm, [](int64_t ppm) { return -ppm; }};
  return absl::StrCat(
      "Sampled in a part of the window only: ", SpreadText(std::move(partly), least_first), ".");
}

// "node-1: /job (300.0 MB) 120 times in 10.0 s": each group once, the most often first.
std::vector<std::string> FullGroupsOf(const Report& report) {
  std::map<std::tuple<size_t, int, std::string>, analysis::FullGroup> groups;
  for (const MachineReport& machine : report.machines) {
    for (const MachineReport::Process& process : machine.processes) {
      const std::optional<analysis::FullGroup>& full = process.usage.full_group;
      if (!full.has_value()) continue;
      analysis::FullGroup& most = groups[{machine.node, full->version, full->path}];
      if (full->times > most.times) most = *full;
    }
  }
  std::vector<std::pair<int64_t, std::string>> texts;
  for (const auto& [key, group] : groups) {
    const std::string limit =
        group.limit_bytes < 0
            ? ""
            : absl::StrCat(" (", BytesText(static_cast<double>(group.limit_bytes)), ")");
    texts.emplace_back(
        -group.times,
        absl::StrCat(report.nodes[std::get<0>(key)].name, ": ",
                     Fit(OnlyPrintable(group.path, '?'), kGroupColumns), limit, " ",
                     Plural(static_cast<uint64_t>(group.times), "time"),
                     absl::StrFormat(" in %.1f s", static_cast<double>(group.time_ns) / 1e9)));
  }
  std::sort(texts.begin(), texts.end());
  if (texts.size() > kNamed) texts.resize(kNamed);
  std::vector<std::string> lines;
  for (auto& [times, text] : texts) lines.push_back(std::move(text));
  return lines;
}

const char* RelationName(evidence::Relation relation) {
  switch (relation) {
    case evidence::Relation::kRecorded:
      return "recorded";
    case evidence::Relation::kDescendant:
      return "child";
    case evidence::Relation::kSyncline:
      return "syncline";
    case evidence::Relation::kOther:
      return "other";
  }
  return "other";
}

Json OfProcess(const MachineReport::Process& process) {
  const ProcessUsage& usage = process.usage;
  return {{"process", process.name},
          {"rank", process.rank},
          {"sampled_ns", usage.sampled_ns},
          {"main_thread",
           {{"running_ns", usage.running_ns},
            {"waiting_ns", usage.waiting_ns},
            {"throttled_ns", usage.throttled_ns},
            {"asleep_ns", usage.asleep_ns()},
            {"blocked_ns", OrNull(usage.blocked_ns)},
            {"minor_faults", OrNull(usage.minor_faults)}}},
          {"page_ns", usage.page_ns > 0 ? Json(usage.page_ns) : Json()},
          {"cpus_busy_ns", StolenPpm(usage).has_value() ? Json(usage.cpus_busy_ns) : Json()},
          {"cpus_stolen_ns", StolenPpm(usage).has_value() ? Json(usage.cpus_stolen_ns) : Json()},
          {"clock_khz", usage.clock_khz > 0 ? Json(usage.clock_khz) : Json()},
          {"read_bytes", OrNull(usage.read_bytes)},
          {"full_memory", OrNull(usage.full_group)},
          {"threads", usage.threads},
          {"threads_running_ns", usage.threads_running_ns},
          {"threads_waiting_ns", usage.threads_waiting_ns}};
}

Json OfOther(const OtherUsage& other) {
  return {{"name", other.name},
          {"pid", other.pid},
          {"relation", RelationName(other.relation)},
          {"running_ns", other.running_ns}};
}

// What rows have of it, if it is so much of one of them. `ppm`: of Row.
void ShareInShort(const std::vector<Row>& rows, int64_t (Row::*ppm)() const, int64_t least_ppm,
                  const char* label, const char* what, Page* page) {
  std::vector<SpreadValue> shares;
  bool much = false;
  for (const Row& row : rows) {
    shares.push_back({row.name, (row.*ppm)(), PercentOfPpm((row.*ppm)())});
    much = much || (row.*ppm)() >= least_ppm;
  }
  if (!much) return;
  page->Item(label,
             absl::StrCat(what, ": ", SpreadText(shares, {.text = PercentOfPpm, .named = 1})));
}

}  // namespace

bool HasMachines(const Report& report) { return !RowsOf(report).empty(); }

void MachinesInFull(Page* page) {
  const std::vector<Row> rows = RowsOf(page->report());
  Table table({{"process", Table::Align::kLeft, true},
               {"running", Table::Align::kRight},
               {"waiting", Table::Align::kRight},
               {"throttled", Table::Align::kRight},
               {"asleep", Table::Align::kRight},
               {"blocked", Table::Align::kRight},
               {"steal", Table::Align::kRight},
               {"GHz", Table::Align::kRight},
               {"read MB/s", Table::Align::kRight},
               {"faults/s", Table::Align::kRight},
               {"CPUs", Table::Align::kRight},
               {"queued", Table::Align::kRight}});
  for (const Row* row : Ranked(rows, [](const Row& one) { return one.kept_ppm(); })) {
    const ProcessUsage& usage = *row->usage;
    table.Add({row->name, Percent(usage.running_ns, usage.sampled_ns),
               Percent(usage.waiting_ns, usage.sampled_ns),
               Percent(usage.throttled_ns, usage.sampled_ns),
               Percent(usage.asleep_ns(), usage.sampled_ns), BlockedText(usage), StolenText(usage),
               ClockText(usage), ReadText(usage), FaultsText(usage),
               MeanText(usage.threads_running_ns, usage.sampled_ns),
               MeanText(usage.threads_waiting_ns, usage.sampled_ns)});
  }
  page->Print(table);
  page->Line(
      "running to asleep: of the time of the process's main thread, by the kernel's own counters, "
      "which are sampled. waiting: it could run, but had no CPU. throttled: it could run, but the "
      "quota of its control group was used up (an estimate). asleep: the rest: it slept, waited "
      "for I/O, was stopped, or a hypervisor ran something else on its CPU. blocked: of that, "
      "uninterruptible sleep, mostly for storage (an estimate from samples; -: not known). steal: "
      "what a hypervisor took of the time in which the CPUs that the process may use had something "
      "to do (-: not known; 0.0 % also where the kernel is not told of it). GHz: the clock of the "
      "CPU that the main thread ran on, median (-: the kernel has none). read MB/s: read from "
      "storage for the process. "
      "faults/s: page faults of the main thread that needed no storage (memory comes anew from the "
      "kernel, or files are mapped). "
      "CPUs: how many the process's sampled threads used, mean. queued: how many of these threads "
      "could run, but did not, mean.");
  const std::string partly = PartlySampled(rows);
  if (!partly.empty()) page->Line(partly);
  for (const std::string& group : FullGroupsOf(page->report())) {
    page->Line(
        absl::StrCat("Memory limit reached, by the kernel's count (cached files may have to be "
                     "dropped then, or memory paged out), on ",
                     group));
  }
  for (const std::string& node : OthersOf(page->report(), rows, kLittlePpm)) {
    page->Line(absl::StrCat("Other processes, on ", node));
  }
}

bool HasMachineLines(const Report& report) {
  const std::vector<Row> rows = RowsOf(report);
  return std::any_of(rows.begin(), rows.end(),
                     [](const Row& row) {
                       return std::max({row.kept_ppm(), row.blocked_ppm(), row.stolen_ppm()}) >=
                                  kWaitPpm ||
                              row.faults_ppm() >= kFaultsPpm;
                     }) ||
         !OthersOf(report, rows, kMuchPpm).empty();
}

void MachinesInShort(Page* page) {
  const std::vector<Row> rows = RowsOf(page->report());
  std::vector<SpreadValue> kept;
  int64_t most_ppm = 0;
  const Row* throttled = nullptr;  // who was most
  for (const Row& row : rows) {
    kept.push_back({row.name, row.kept_ppm(), PercentOfPpm(row.kept_ppm())});
    most_ppm = std::max(most_ppm, row.kept_ppm());
    const int64_t before_ppm = throttled == nullptr ? kWaitPpm - 1 : throttled->throttled_ppm();
    if (row.throttled_ppm() > before_ppm) throttled = &row;
  }
  if (most_ppm >= kWaitPpm) {
    std::string text = absl::StrCat("main threads, of their time: ",
                                    SpreadText(kept, {.text = PercentOfPpm, .named = 1}));
    if (throttled != nullptr) {
      const int64_t ppm = throttled->throttled_ppm();
      absl::StrAppend(
          &text, "; of that throttled by a quota, most: ",
          SpreadText({{throttled->name, ppm, PercentOfPpm(ppm)}}, {.text = PercentOfPpm}));
    }
    page->Item("CPU wait", text);
  }
  ShareInShort(rows, &Row::blocked_ppm, kWaitPpm, "Blocked",
               "main threads in the kernel, mostly for storage, of their time", page);
  ShareInShort(rows, &Row::stolen_ppm, kWaitPpm, "Steal time",
               "taken by a hypervisor, of the time in which their CPUs had something to do", page);
  ShareInShort(rows, &Row::faults_ppm, kFaultsPpm, "Page faults",
               "main threads, without storage, of their time, as pages cost", page);
  const std::vector<std::string> others = OthersOf(page->report(), rows, kMuchPpm);
  if (others.empty()) return;
  const std::string more =
      others.size() == 1 ? "" : absl::StrCat("; ", Plural(others.size() - 1, "more node"));
  page->Item("Other load", others.front() + more);
}

void MachinesInJson(const Report& report, Json* json) {
  Json machines = Json::array();
  for (const MachineReport& machine : report.machines) {
    Json one = {{"node", report.nodes[machine.node].name}, {"window_ns", machine.window_ns}};
    one["processes"] = Json::array();
    for (const auto& process : machine.processes) one["processes"].push_back(OfProcess(process));
    one["others"] = Json::array();
    for (const OtherUsage& other : machine.others) one["others"].push_back(OfOther(other));
    machines.push_back(std::move(one));
  }
  (*json)["machines"] = std::move(machines);
}

}  // namespace syncline::report
