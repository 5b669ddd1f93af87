// SPDX-License-Identifier: Apache-2.0
#include "export/report/hot_text.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "export/report/hot_words.h"
#include "export/report/json_values.h"
#include "export/report/software_text.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::HotCode;
using analysis::HotFunction;
using analysis::HotNode;
using analysis::HotTask;
using analysis::Report;
using analysis::Share;
using analysis::ShareOf;

constexpr size_t kTasksMax = 25;
constexpr size_t kFunctionsMax = 5;
constexpr size_t kJsonFunctionsMax = 20;
constexpr size_t kHelpersMax = 10;
constexpr size_t kShortMax = 3;
constexpr size_t kNameMax = 56;  // columns of a function
// A function of less than a fiftieth of its task is not printed.
constexpr uint64_t kPartMin = 50;
constexpr double kNsPerSecond = 1e9;

std::string NameOf(const HotTask& task) { return HotPlaceText(task.where, task.domain, task.name); }

// Names in C++ may take a page: what stands between the outermost <> and () is left out.
std::string WithoutArguments(std::string_view name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  std::string text;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool operator_name = text.ends_with("operator") || text.ends_with("operator<") ||
                               text.ends_with("operator-") || text.ends_with("operator>");
    if (depth == 0 && name.substr(i).starts_with(kUnnamed)) {
      text += kUnnamed;
      i += kUnnamed.size() - 1;
    } else if ((c == '<' || c == '(') && !(operator_name && depth == 0)) {
      if (depth++ == 0) text += c == '<' ? "<…" : "(…";
    } else if ((c == '>' || c == ')') && depth > 0) {
      if (--depth == 0) text += c;
    } else if (depth == 0) {
      text += c;
    }
  }
  return text;
}

std::string FunctionName(const HotFunction& function) {
  if (function.function.empty()) return "(no symbol)";
  const bool has_arguments = function.function.find('(') != std::string::npos;
  return FitMiddle(has_arguments ? WithoutArguments(function.function) : function.function,
                   kNameMax);
}

// What the kernel did for it; where in the source it was mostly.
std::string Details(const HotFunction& function) {
  std::vector<std::string> parts;
  if (function.waiting) parts.emplace_back("waits");
  if (function.kernel_samples * 10 >= function.samples && function.kernel_samples > 0) {
    parts.push_back(absl::StrCat(
        "in the kernel ",
        Percent(static_cast<int64_t>(function.kernel_samples),
                static_cast<int64_t>(function.samples)),
        function.kernel_function.empty() ? "" : absl::StrCat(": ", function.kernel_function)));
  }
  if (!function.lines.empty()) {
    const analysis::HotLine& line = function.lines.front();
    const size_t slash = line.file.rfind('/');
    parts.push_back(absl::StrCat(
        slash == std::string::npos ? line.file : line.file.substr(slash + 1), ":", line.line));
  }
  return absl::StrJoin(parts, ", ");
}

Table TaskTable(const std::string& tasks, const std::string& share) {
  return Table({{tasks, Table::Align::kLeft, true, 24},
                {share, Table::Align::kRight},
                {"waiting", Table::Align::kRight},
                {"library", Table::Align::kLeft, true},
                {"mostly", Table::Align::kLeft, true}});
}

std::string WaitingText(const HotTask& task) {
  return Percent(static_cast<int64_t>(task.waiting_samples), static_cast<int64_t>(task.samples));
}

void PrintFunctions(const HotTask& task, Table* table) {
  uint64_t printed = 0;
  for (size_t i = 0; i < task.functions.size() && i < kFunctionsMax; ++i) {
    const HotFunction& function = task.functions[i];
    if (function.samples * kPartMin < task.samples) break;
    printed += function.samples;
    table->Add({"  " + FunctionName(function), HotShareText(function.samples, task.samples), "",
                function.library, Details(function)});
  }
  if (printed == task.samples) return;
  table->Add({"  other functions", HotShareText(task.samples - printed, task.samples), "", "", ""});
}

// Nothing where there are no helpers, or they had no task to help in.
void PrintHelpers(const HotCode& hot, Page* page) {
  Table table = TaskTable("meanwhile open", "helpers");
  size_t printed = 0;
  bool any = false;
  uint64_t rest = 0;
  for (const HotTask& task : hot.helpers) {
    if (printed++ >= kHelpersMax) {
      rest += task.samples;
      continue;
    }
    const bool known = task.where == HotTask::Where::kTask;
    any |= known;
    table.Add({known ? NameOf(task) : "none, or several", HotShareText(task.samples, hot.samples),
               WaitingText(task), task.functions.front().library,
               FunctionName(task.functions.front())});
  }
  if (!any) return;
  if (rest > 0) table.Add({"other tasks", HotShareText(rest, hot.samples), "", "", ""});
  page->Raw("\n");
  page->Print(table);
  page->Line(
      "helpers: samples with no task open on their own thread, of all samples, by the innermost "
      "task that one other thread of their process had open at that moment; none, or several: no "
      "other thread had a task open, or more than one had. Threads of OpenMP that work for the "
      "task are among them, and threads that have nothing to do with it: which is not known.");
}

void PrintNode(const Report& report, const HotNode& node, Page* page) {
  const std::string& name = report.nodes[node.node].name;
  for (const std::string& note : node.notes) page->Warn(absl::StrCat(name, ": ", note));
  if (node.samples == 0 && !node.notes.empty()) return;
  std::string text = absl::StrCat(
      name, ": ", Plural(node.samples, "sample"), " of ", Plural(node.threads, "thread"),
      absl::StrFormat(", one in %.1f ms of processor time; the threads used %.2f s in all",
                      static_cast<double>(node.period_ns) / 1e6,
                      static_cast<double>(node.on_cpu_ns) / kNsPerSecond));
  if (node.lost > 0) absl::StrAppend(&text, "; ", Plural(node.lost, "sample"), " lost");
  if (node.cost_ns >= 0) {
    absl::StrAppendFormat(&text, "; the agent took %.0f ms for it",
                          static_cast<double>(node.cost_ns) / 1e6);
  }
  page->Line(text + ".");
  if (!node.kernel) {
    page->Line(absl::StrCat(name,
                            ": moments in which the kernel worked for a thread have no sample, as "
                            "the agent may not see them (it needs root or CAP_PERFMON)."));
  }
  if (!node.complete) {
    page->Warn(absl::StrCat(name,
                            ": the samples end early, and functions have no names: the agent "
                            "did not finish them"));
  }
}

Json OfShare(uint64_t part, uint64_t whole) {
  const Share share = ShareOf(part, whole);
  return {{"est", share.est}, {"lo", share.lo}, {"hi", share.hi}};
}

Json OfFunction(const HotFunction& function) {
  Json json = {{"function", function.function},
               {"library", function.library},
               {"samples", function.samples},
               {"kernel_samples", function.kernel_samples},
               {"kernel_function", function.kernel_function},
               {"waiting", function.waiting}};
  json["lines"] = Json::array();
  for (const analysis::HotLine& line : function.lines) {
    json["lines"].push_back({{"file", line.file}, {"line", line.line}, {"samples", line.samples}});
  }
  return json;
}

Json OfTask(const HotTask& task, uint64_t all) {
  Json json = {{"where", HotPlaceJsonName(task.where)},
               {"domain", task.domain},
               {"name", task.name},
               {"samples", task.samples},
               {"share", OfShare(task.samples, all)},
               {"waiting_samples", task.waiting_samples}};
  json["functions"] = Json::array();
  uint64_t shown = 0;
  for (size_t i = 0; i < task.functions.size() && i < kJsonFunctionsMax; ++i) {
    shown += task.functions[i].samples;
    json["functions"].push_back(OfFunction(task.functions[i]));
  }
  json["other_functions_samples"] = task.samples - shown;
  return json;
}

Json OfNode(const Report& report, const HotNode& node) {
  return {{"node", report.nodes[node.node].name},
          {"period_ns", node.period_ns},
          {"kernel", node.kernel},
          {"complete", node.complete},
          {"threads", node.threads},
          {"samples", node.samples},
          {"lost", node.lost},
          {"on_cpu_ns", node.on_cpu_ns},
          {"cost_ns", node.cost_ns < 0 ? Json(nullptr) : Json(node.cost_ns)},
          {"notes", node.notes}};
}

}  // namespace

bool HasHotCode(const Report& report) { return !report.hot.nodes.empty(); }

void HotCodeInFull(Page* page) {
  const HotCode& hot = page->report().hot;
  for (const HotNode& node : hot.nodes) PrintNode(page->report(), node, page);
  if (hot.samples == 0) {
    page->Line("No thread that was sampled ran in the window.");
    return PrintSoftware(page);
  }
  Table table = TaskTable("task and its functions", "share");
  size_t printed = 0;
  uint64_t rest = hot.samples;
  for (const HotTask& task : hot.tasks) {
    if (printed++ == kTasksMax) break;
    rest -= task.samples;
    table.Add({NameOf(task), HotShareText(task.samples, hot.samples), WaitingText(task), "", ""});
    PrintFunctions(task, &table);
  }
  if (rest > 0) table.Add({"other tasks", HotShareText(rest, hot.samples), "", "", ""});
  page->Print(table);
  page->Line(
      "share: of a task, of all samples; of a function, of its task's; ±: what chance may have "
      "done (19 of 20 times less). A task's samples are those in which it was the innermost one "
      "open on its thread; a function's, those in which it ran itself, or the kernel for it. "
      "waiting: in functions that only wait for threads or messages.");
  PrintHelpers(hot, page);
  PrintSoftware(page);
}

void HotCodeInShort(Page* page) {
  const HotCode& hot = page->report().hot;
  if (hot.samples == 0) return page->Item("Hot code", "no samples");
  std::vector<std::string> texts;
  for (const HotTask& task : hot.tasks) {
    if (texts.size() == kShortMax) break;
    std::string text = absl::StrCat(NameOf(task), " ", HotShareText(task.samples, hot.samples));
    if (!task.functions.empty()) {
      const HotFunction& first = task.functions.front();
      absl::StrAppend(&text, ", most in ", FunctionName(first), " (", first.library, ")");
    }
    texts.push_back(std::move(text));
  }
  page->Item("Hot code", absl::StrJoin(texts, "; "));
}

void HotCodeInJson(const Report& report, Json* json) {
  Json nodes = Json::array();
  for (const HotNode& node : report.hot.nodes) nodes.push_back(OfNode(report, node));
  const auto all_of = [&report](const std::vector<HotTask>& tasks) {
    Json all = Json::array();
    for (const HotTask& task : tasks) all.push_back(OfTask(task, report.hot.samples));
    return all;
  };
  (*json)["hot"] = {{"samples", report.hot.samples},
                    {"nodes", nodes},
                    {"tasks", all_of(report.hot.tasks)},
                    {"helpers", all_of(report.hot.helpers)},
                    {"software", SoftwareInJson(report)}};
}

}  // namespace syncline::report
