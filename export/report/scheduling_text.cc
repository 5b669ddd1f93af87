// SPDX-License-Identifier: Apache-2.0
#include "export/report/scheduling_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/duration_text.h"
#include "common/process_part.h"
#include "export/report/json_values.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::CpuTaker;
using analysis::NodeScheduling;
using analysis::ProcessScheduling;
using analysis::Report;
using analysis::SchedulingTimes;
using analysis::ThreadScheduling;

constexpr size_t kProcessesMax = 16;
constexpr size_t kThreadsMax = 6;
constexpr int64_t kUnknownPart = 50;  // less of the known time is not said
constexpr double kNsPerSecond = 1e9;
constexpr double kPpm = 1e6;
// Less is not said in one line.
constexpr int64_t kReadyPpm = 20'000;

// Children and workers of loaders have the number of their rank.
bool IsRank(const ProcessScheduling& process) {
  return process.rank >= 0 && (process.part.empty() || process.part == kPartRank);
}

int64_t BusyNs(const SchedulingTimes& times) { return times.running_ns + times.ready_ns; }

// Of its threads' time in which they could run.
int64_t ReadyPpm(const ProcessScheduling& process) {
  const SchedulingTimes& times = process.times;
  const auto busy_ns = static_cast<double>(BusyNs(times));
  return busy_ns <= 0 ? 0 : std::llround(static_cast<double>(times.ready_ns) / busy_ns * kPpm);
}

std::string NameOf(const ProcessScheduling& process) {
  return IsRank(process) ? absl::StrCat("rank ", process.rank) : process.name;
}

std::string NameOf(const NodeScheduling& node, const CpuTaker& taker) {
  switch (taker.kind) {
    case CpuTaker::Kind::kOther: {
      const bool says_process = !taker.process_name.empty() && taker.process_name != taker.name;
      return absl::StrCat(taker.name, says_process ? " of " + taker.process_name : "",
                          taker.pid != 0 ? absl::StrCat(" (pid ", taker.pid, ")") : "");
    }
    case CpuTaker::Kind::kOwnThreads:
      return "its own threads";
    case CpuTaker::Kind::kRecorded: {
      const ProcessScheduling& process = node.processes[taker.process];
      return absl::StrCat(NameOf(process), " (pid ", process.pid, ")");
    }
    case CpuTaker::Kind::kNobody:
      return "no one";
  }
  return "";
}

const char* KindName(CpuTaker::Kind kind) {
  switch (kind) {
    case CpuTaker::Kind::kOther:
      return "other";
    case CpuTaker::Kind::kOwnThreads:
      return "own_threads";
    case CpuTaker::Kind::kRecorded:
      return "recorded";
    case CpuTaker::Kind::kNobody:
      return "nobody";
  }
  return "";
}

// "900 ms stress (pid 90)": the first `most` of them; empty: nobody is named. The amount stands
// first because long names are cut.
std::string TakersText(const NodeScheduling& node, const std::vector<CpuTaker>& takers,
                       size_t most) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < takers.size() && i < most; ++i) {
    texts.push_back(absl::StrCat(DurationText(takers[i].ns), " ", NameOf(node, takers[i])));
  }
  return absl::StrJoin(texts, ", ");
}

std::string RateText(uint64_t count, int64_t ns) {
  if (ns <= 0) return "-";
  constexpr double kMuch = 10;
  const double rate = static_cast<double>(count) * kNsPerSecond / static_cast<double>(ns);
  return rate < kMuch ? absl::StrFormat("%.1f", rate) : absl::StrFormat("%.0f", rate);
}

void PrintThreads(const NodeScheduling& node, const ProcessScheduling& process, Page* page) {
  Table table({{"thread", Table::Align::kLeft, true, 22},
               {"running", Table::Align::kRight},
               {"ready", Table::Align::kRight},
               {"uninterr.", Table::Align::kRight},
               {"asleep", Table::Align::kRight},
               {"turns/s", Table::Align::kRight},
               {"longest", Table::Align::kRight},
               {"had the CPU most", Table::Align::kLeft, true, 22}});
  size_t shown = 0;
  uint64_t still = 0;
  uint64_t unknown = 0;
  SchedulingTimes rest;
  for (const ThreadScheduling& thread : process.threads) {
    const SchedulingTimes& times = thread.times;
    if (times.known_ns() == 0) {
      ++unknown;
    } else if (BusyNs(times) == 0) {
      ++still;
    } else if (shown == kThreadsMax) {
      rest += times;
    } else {
      ++shown;
      const int64_t known_ns = times.known_ns();
      const std::string takers = TakersText(node, thread.takers, 1);
      table.Add({absl::StrCat(thread.name, " (", thread.tid, ")"),
                 Percent(times.running_ns, known_ns), Percent(times.ready_ns, known_ns),
                 Percent(times.uninterruptible_ns, known_ns), Percent(times.asleep_ns, known_ns),
                 RateText(thread.turns, known_ns), DurationText(thread.longest_ready_ns),
                 takers.empty() ? "-" : takers});
    }
  }
  page->Print(table);
  const uint64_t more = process.threads.size() - shown - still - unknown;
  std::vector<std::string> others;
  if (more > 0) {
    others.push_back(absl::StrCat(Plural(more, "more thread"), ": running ",
                                  DurationText(rest.running_ns), ", ready ",
                                  DurationText(rest.ready_ns)));
  }
  if (still > 0) others.push_back(absl::StrCat(Plural(still, "thread"), " did not run"));
  if (unknown > 0) {
    others.push_back(absl::StrCat("nothing is known of ", Plural(unknown, "thread")));
  }
  if (!others.empty()) page->Below(absl::StrJoin(others, "; "));
}

void PrintProcess(const NodeScheduling& node, const ProcessScheduling& process, Page* page) {
  const SchedulingTimes& times = process.times;
  std::string text =
      absl::StrCat(process.name, " (pid ", process.pid,
                   "): ", Plural(process.threads.size(), "thread"), ", added up: running ",
                   DurationText(times.running_ns), ", ready ", DurationText(times.ready_ns));
  if (times.uninterruptible_ns > 0) {
    absl::StrAppend(&text, ", uninterruptible sleep ", DurationText(times.uninterruptible_ns));
  }
  if (times.stopped_ns > 0) absl::StrAppend(&text, ", stopped ", DurationText(times.stopped_ns));
  if (times.unknown_ns * kUnknownPart > times.known_ns()) {
    absl::StrAppend(&text, ", not known or not there ", DurationText(times.unknown_ns));
  }
  absl::StrAppend(&text, "; ", Plural(process.turns, "turn"), ", ",
                  Plural(process.preemptions, "preemption"), ", ",
                  Plural(process.migrations, "change"), " of CPU");
  const std::string takers = TakersText(node, process.takers, kNamed);
  if (!takers.empty()) {
    int64_t rest_ns = times.ready_ns;
    for (size_t i = 0; i < process.takers.size() && i < kNamed; ++i) {
      rest_ns -= process.takers[i].ns;
    }
    absl::StrAppend(&text, ". While ready, the CPU had: ", takers);
    if (rest_ns > 0) absl::StrAppend(&text, ", ", DurationText(rest_ns), " others, or not known");
  }
  page->Raw("\n");
  page->Line(text + ".");
  if (BusyNs(times) > 0) PrintThreads(node, process, page);
}

void PrintNode(const Report& report, const NodeScheduling& node, Page* page) {
  const std::string& name = report.nodes[node.node].name;
  for (const std::string& note : node.notes) page->Warn(absl::StrCat(name, ": ", note));
  uint64_t threads = 0;
  for (const ProcessScheduling& process : node.processes) threads += process.threads.size();
  std::string text =
      absl::StrCat(name, ": ", Plural(threads, "thread"), " of ", Count(node.processes.size()),
                   node.processes.size() == 1 ? " process" : " processes", ", in ",
                   DurationText(node.window_ns));
  if (node.cost_ns >= 0) {
    absl::StrAppend(&text, "; the agent took ", DurationText(node.cost_ns),
                    " of processor time for it");
  }
  if (!node.processes.empty()) page->Line(text + ".");
  if (node.lost_ns > 0) {
    page->Warn(absl::StrCat(name, ": of ", DurationText(node.lost_ns),
                            " nothing is known of any thread: the kernel had no room for ",
                            Plural(node.lost_events, "event"), " of its scheduler's trace"));
  }
  if (!node.complete) {
    page->Warn(absl::StrCat(name,
                            ": the trace of its scheduler ends early: the agent did not "
                            "finish it"));
  }
}

struct Row {
  const NodeScheduling* node = nullptr;
  const ProcessScheduling* process = nullptr;
};

// Those that did something, the most delayed first.
std::vector<Row> RowsOf(const Report& report) {
  std::vector<Row> rows;
  for (const NodeScheduling& node : report.scheduling) {
    for (const ProcessScheduling& process : node.processes) {
      if (BusyNs(process.times) > 0) rows.push_back({&node, &process});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.process->times.ready_ns > b.process->times.ready_ns;
  });
  return rows;
}

// Null: not known, or none.
Json PidOf(const NodeScheduling& node, const CpuTaker& taker) {
  if (taker.kind == CpuTaker::Kind::kRecorded) return node.processes[taker.process].pid;
  return taker.pid == 0 ? Json() : Json(taker.pid);
}

Json OfTakers(const NodeScheduling& node, const std::vector<CpuTaker>& takers) {
  Json all = Json::array();
  for (const CpuTaker& taker : takers) {
    const std::string name = taker.kind == CpuTaker::Kind::kOther ? taker.name
                             : taker.kind == CpuTaker::Kind::kRecorded
                                 ? NameOf(node.processes[taker.process])
                                 : NameOf(node, taker);
    all.push_back({{"kind", KindName(taker.kind)},
                   {"name", name},
                   {"process", taker.process_name.empty() ? Json() : Json(taker.process_name)},
                   {"pid", PidOf(node, taker)},
                   {"ns", taker.ns}});
  }
  return all;
}

// Fields that threads and processes have.
template <class Scheduled>
void PutTimes(const NodeScheduling& node, const Scheduled& scheduled, Json* json) {
  const SchedulingTimes& times = scheduled.times;
  (*json)["running_ns"] = times.running_ns;
  (*json)["ready_ns"] = times.ready_ns;
  (*json)["uninterruptible_ns"] = times.uninterruptible_ns;
  (*json)["asleep_ns"] = times.asleep_ns;
  (*json)["stopped_ns"] = times.stopped_ns;
  (*json)["unknown_ns"] = times.unknown_ns;
  (*json)["turns"] = scheduled.turns;
  (*json)["preemptions"] = scheduled.preemptions;
  (*json)["migrations"] = scheduled.migrations;
  (*json)["had_cpu"] = OfTakers(node, scheduled.takers);
  (*json)["unnamed_ns"] = scheduled.unnamed_ns();
}

Json OfProcess(const NodeScheduling& node, const ProcessScheduling& process) {
  Json json = {{"process", process.name},
               {"part", process.part},
               {"rank", process.rank},
               {"pid", process.pid}};
  PutTimes(node, process, &json);
  json["threads"] = Json::array();
  for (const ThreadScheduling& thread : process.threads) {
    Json one = {{"tid", thread.tid}, {"name", thread.name}};
    PutTimes(node, thread, &one);
    one["longest_ready_ns"] = thread.longest_ready_ns;
    json["threads"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

bool HasScheduling(const Report& report) { return !report.scheduling.empty(); }

void SchedulingInFull(Page* page) {
  const Report& report = page->report();
  for (const NodeScheduling& node : report.scheduling) PrintNode(report, node, page);
  const std::vector<Row> rows = RowsOf(report);
  const bool watched =
      std::any_of(report.scheduling.begin(), report.scheduling.end(),
                  [](const NodeScheduling& node) { return !node.processes.empty(); });
  if (!watched) return page->Line("No thread was watched.");
  if (rows.empty()) return page->Line("No thread that was watched is known to have run then.");
  for (size_t i = 0; i < rows.size() && i < kProcessesMax; ++i) {
    PrintProcess(*rows[i].node, *rows[i].process, page);
  }
  page->Raw("\n");
  if (rows.size() > kProcessesMax) {
    page->Line(absl::StrCat("Not shown here, but in the JSON: ", Count(rows.size() - kProcessesMax),
                            rows.size() == kProcessesMax + 1 ? " process" : " processes",
                            " with no more ready time than these."));
  }
  page->Line(
      "By the trace of the kernel's scheduler. Percentages and turns/s are of the time of which "
      "it is known what the thread did. running: it had a CPU. ready: it could have run, and "
      "waited for a CPU, which meanwhile another thread had, or no one: the CPU was idle, as "
      "while it wakes up, or where a quota (cpu.max) keeps a thread from running. uninterr.: "
      "uninterruptible sleep, where signals cannot wake it, mostly for a disk. asleep: it "
      "waited for anything else: data, a lock, a timer. A turn: it began to run. A preemption: "
      "its CPU was given to another thread before it had finished. longest: the longest it was "
      "ready without a CPU. Who had the CPU is said of waits that are known as a whole; of each "
      "the recording names up to three, of short-lived processes the one that started them.");
}

void SchedulingInShort(Page* page) {
  const std::vector<Row> rows = RowsOf(page->report());
  const bool ranks =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return IsRank(*row.process); });
  std::vector<SpreadValue> ready;
  const Row* worst = nullptr;
  for (const Row& row : rows) {
    if (ranks && !IsRank(*row.process)) continue;
    const int64_t ppm = ReadyPpm(*row.process);
    ready.push_back({row.process->name, ppm, PercentOfPpm(ppm)});
    if (worst == nullptr || ReadyPpm(*row.process) > ReadyPpm(*worst->process)) worst = &row;
  }
  if (worst == nullptr || ReadyPpm(*worst->process) < kReadyPpm) return;
  std::string text = absl::StrCat("ready, of the time running or ready: ",
                                  SpreadText(std::move(ready), {.text = PercentOfPpm, .named = 1}));
  const std::string takers = TakersText(*worst->node, worst->process->takers, 1);
  if (!takers.empty()) absl::StrAppend(&text, "; there had the CPU most: ", takers);
  page->Item("Scheduling", text);
}

void SchedulingInJson(const Report& report, Json* json) {
  Json nodes = Json::array();
  for (const NodeScheduling& node : report.scheduling) {
    Json one = {{"node", report.nodes[node.node].name},
                {"window_ns", node.window_ns},
                {"complete", node.complete},
                {"lost_ns", node.lost_ns},
                {"lost_events", node.lost_events},
                {"cost_ns", node.cost_ns < 0 ? Json() : Json(node.cost_ns)},
                {"notes", node.notes}};
    one["processes"] = Json::array();
    for (const ProcessScheduling& process : node.processes) {
      one["processes"].push_back(OfProcess(node, process));
    }
    nodes.push_back(std::move(one));
  }
  (*json)["scheduling"] = std::move(nodes);
}

}  // namespace syncline::report
