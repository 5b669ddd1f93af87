// SPDX-License-Identifier: Apache-2.0
#include "export/report/devices_text.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/duration_text.h"
#include "common/text.h"
#include "export/report/json_values.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::DeviceOperator;
using analysis::DeviceReport;
using analysis::DeviceStep;
using analysis::DeviceUse;
using analysis::Report;

constexpr size_t kRowsInShort = 4;
constexpr size_t kOperatorsInFull = 20;
constexpr int64_t kPpm = 1'000'000;
constexpr size_t kOperatorWidthLeast = 28;
constexpr char kOutside[] = "(outside of any, or unknown)";

// A device over all its steps.
struct Row {
  const DeviceReport* device = nullptr;
  DeviceUse use;
  int64_t total_ns = 0;
  int64_t median_ns = 0;  // of a step

  std::string Share(int64_t ns) const { return Percent(ns, total_ns); }
};

std::vector<Row> RowsOf(const Report& report) {
  std::vector<Row> rows;
  for (const analysis::NodeReport& node : report.nodes) {
    for (const DeviceReport& device : node.devices) {
      Row& row = rows.emplace_back();
      row.device = &device;
      std::vector<int64_t> lengths;
      for (const DeviceStep& step : device.steps) {
        row.use.computing_ns += step.use.computing_ns;
        row.use.communication_ns += step.use.communication_ns;
        row.use.copies_ns += step.use.copies_ns;
        row.use.unlaunched_ns += step.use.unlaunched_ns;
        row.use.unstarted_ns += step.use.unstarted_ns;
        row.use.unknown_ns += step.use.unknown_ns;
        row.total_ns += step.duration_ns();
        lengths.push_back(step.duration_ns());
      }
      std::sort(lengths.begin(), lengths.end());
      if (!lengths.empty()) row.median_ns = lengths[lengths.size() / 2];
    }
  }
  return rows;
}

int64_t IdlePpm(const Row& row) {
  if (row.total_ns <= 0) return 0;
  return static_cast<int64_t>(static_cast<double>(row.use.idle_ns()) /
                              static_cast<double>(row.total_ns) * kPpm);
}

std::vector<std::string> CellsOf(const Row& row) {
  const DeviceReport& device = *row.device;
  const bool launches = device.without_launch < device.work;
  return {device.process,
          device.device,
          device.has_steps ? Count(device.steps.size()) : "-",
          !device.has_steps || row.total_ns == 0 ? "-" : DurationText(row.median_ns),
          row.Share(row.use.computing_ns),
          row.Share(row.use.communication_ns),
          row.Share(row.use.copies_ns),
          row.Share(row.use.idle_ns()),
          launches ? row.Share(row.use.unlaunched_ns) : "-"};
}

Table TableOf(const Table::Column& first, const std::vector<const Row*>& rows) {
  Table table({first,
               {"device"},
               {"steps", Table::Align::kRight},
               {"median step", Table::Align::kRight},
               {"computing", Table::Align::kRight},
               {"communication", Table::Align::kRight},
               {"copies", Table::Align::kRight},
               {"idle", Table::Align::kRight},
               {"launch wait", Table::Align::kRight}});
  for (const Row* row : rows) table.Add(CellsOf(*row));
  return table;
}

// Without its result and parameters; what it is made of stays.
std::string ShortKernel(std::string_view name) {
  constexpr std::string_view kVoid = "void ";
  if (name.starts_with(kVoid)) name.remove_prefix(kVoid.size());
  std::string kept = absl::StrReplaceAll(AbslView(name), {{"(anonymous namespace)::", ""}});
  int depth = 0;  // of template arguments
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == '<') ++depth;
    if (kept[i] == '>') --depth;
    if (kept[i] == '(' && depth <= 0 && i > 0) {
      kept.resize(i);
      break;
    }
  }
  return kept;
}

// Of all devices, by operator.
std::vector<DeviceOperator> OperatorsOf(const std::vector<Row>& rows) {
  struct Sum {
    DeviceOperator all;
    int64_t longest_ns = 0;
  };
  std::map<std::string, Sum> sums;
  for (const Row& row : rows) {
    for (const DeviceOperator& one : row.device->operators) {
      Sum& sum = sums[one.name];
      sum.all.name = one.name;
      sum.all.count += one.count;
      sum.all.total_ns += one.total_ns;
      if (one.total_ns <= sum.longest_ns) continue;
      sum.longest_ns = one.total_ns;
      sum.all.longest_kernel = one.longest_kernel;
    }
  }
  std::vector<DeviceOperator> operators;
  for (auto& [name, sum] : sums) operators.push_back(std::move(sum.all));
  return operators;
}

void PrintOperators(const std::vector<Row>& rows, Page* page) {
  const std::vector<DeviceOperator> operators = OperatorsOf(rows);
  const auto shown = First(
      Ranked(operators, [](const DeviceOperator& one) { return one.total_ns; }), kOperatorsInFull);
  if (shown.empty()) return;
  Table table({{ShownOf("operator", shown.size(), operators.size()), Table::Align::kLeft, true,
                kOperatorWidthLeast},
               {"kernels", Table::Align::kRight},
               {"total", Table::Align::kRight},
               {"average", Table::Align::kRight},
               {"longest kernel", Table::Align::kLeft, true}});
  for (const DeviceOperator* one : shown) {
    table.Add(
        {one->name.empty() ? kOutside : one->name, Count(one->count), DurationText(one->total_ns),
         DurationText(one->total_ns / static_cast<int64_t>(std::max<uint64_t>(one->count, 1))),
         ShortKernel(one->longest_kernel)});
  }
  page->Raw("\n");
  page->Print(table);
  page->Line("kernels: with copies and fills. Their times are added up, also where they overlap.");
}

void PrintUnknown(const std::vector<Row>& rows, Page* page) {
  DeviceReport all;
  bool whole = false;
  bool optimizer = false;
  bool traced = false;
  bool profiled = false;
  bool named = true;  // operators and steps may be, also of work without a launch
  for (const Row& row : rows) {
    named = named && row.device->steps_by != timeline::StepsBy::kProfiler &&
            row.device->steps_by != timeline::StepsBy::kOptimizer;
    all.work += row.device->work;
    all.without_launch += row.device->without_launch;
    all.outside_operators += row.device->outside_operators;
    all.without_operators += row.device->without_operators;
    all.outside_steps += row.device->outside_steps;
    all.unfinished += row.device->unfinished;
    traced = traced || row.device->steps_by == timeline::StepsBy::kTask;
    profiled = profiled || row.device->steps_by != timeline::StepsBy::kTask;
    whole = whole || !row.device->has_steps;
    optimizer = optimizer ||
                (row.device->has_steps && row.device->steps_by == timeline::StepsBy::kOptimizer);
  }
  const std::string of = absl::StrCat(" of all ", Count(all.work), " kernels, copies and fills");
  const std::string source = profiled ? "profile" : "recording";
  if (all.without_launch > 0) {
    page->Line(absl::StrCat(Count(all.without_launch), of, " have no launch in the ", source, ": ",
                            named ? "launch wait is unknown, and so are operator and step where "
                                    "the profile does not name them."
                                  : "operator, step and launch wait are unknown."));
  }
  if (all.outside_operators > 0) {
    page->Line(
        absl::StrCat(Count(all.outside_operators), of, " were launched outside of any operator."));
  }
  if (all.without_operators > 0 && !profiled) {
    page->Line(absl::StrCat(Count(all.without_operators), of,
                            " were launched where no task was seen: outside of any, or in one that "
                            "began before the recording."));
  } else if (all.without_operators > 0) {
    page->Line(absl::StrCat(Count(all.without_operators), of,
                            " were launched before the first operator of the ", source,
                            ", or after its last: outside of any, or it recorded none then."));
  }
  if (all.outside_steps > 0) {
    page->Line(absl::StrCat(Count(all.outside_steps), of, " were launched in no step that the ",
                            source, " has: before the first, after the last, or between two."));
  }
  if (all.unfinished > 0) {
    page->Line(absl::StrCat(
        "Calls that asked a device for work of which nothing is here: ", Count(all.unfinished),
        ". It was not over in time, was lost, or was put into a graph for "
        "later."));
  }
  if (optimizer) page->Line("A step ends with the optimizer's: the profile has no ProfilerStep.");
  if (traced) {
    page->Line(
        "An operator of what `run --devices` recorded is the innermost task that was open in the "
        "thread that asked for it; a step is a task that looks like one.");
  }
  if (whole && !profiled) {
    page->Line(
        "Where no steps are given, shares are of all the time from the device's first work to its "
        "last: no task of the process looks like a step (docs/annotate.md).");
  } else if (whole) {
    page->Line(
        "Where no steps are given, shares are of all the time from the device's first work to its "
        "last: the profile has no whole step (torch.profiler's step(), the optimizer's, or a mark "
        "with a step_num).");
  }
}

const char* NameOf(timeline::StepsBy by) {
  switch (by) {
    case timeline::StepsBy::kProfiler:
      return "profiler";
    case timeline::StepsBy::kOptimizer:
      return "optimizer";
    case timeline::StepsBy::kMark:
      return "mark";
    case timeline::StepsBy::kDevice:
      return "device";
    case timeline::StepsBy::kTable:
      return "table";
    case timeline::StepsBy::kTask:
      return "task";
  }
  return "";
}

Json OfUse(const DeviceUse& use) {
  return {{"computing_ns", use.computing_ns},
          {"exposed_communication_ns", use.communication_ns},
          {"exposed_copies_ns", use.copies_ns},
          {"idle_ns", use.idle_ns()},
          {"idle_before_launch_ns", use.unlaunched_ns},
          {"idle_after_launch_ns", use.unstarted_ns},
          {"idle_launch_unknown_ns", use.unknown_ns}};
}

Json OfDevice(const DeviceReport& device, const std::string& node) {
  Json json = {{"node", node},
               {"process", device.process},
               {"device", device.device},
               {"steps_by", device.has_steps ? Json(NameOf(device.steps_by)) : Json()},
               {"work", device.work},
               {"without_launch", device.without_launch},
               {"outside_operators", device.outside_operators},
               {"without_operators", device.without_operators},
               {"outside_steps", device.outside_steps},
               {"unfinished", device.unfinished}};
  json["steps"] = Json::array();
  for (const DeviceStep& step : device.steps) {
    Json one = {{"name", step.name},
                {"begin_ns", step.begin.ns},
                {"end_ns", step.end.ns},
                {"work", step.work}};
    one.update(OfUse(step.use));
    json["steps"].push_back(std::move(one));
  }
  json["operators"] = Json::array();
  for (const DeviceOperator& one : device.operators) {
    json["operators"].push_back({{"name", one.name},
                                 {"count", one.count},
                                 {"total_ns", one.total_ns},
                                 {"longest_kernel", one.longest_kernel}});
  }
  return json;
}

}  // namespace

bool HasDevices(const Report& report) {
  return std::any_of(report.nodes.begin(), report.nodes.end(),
                     [](const auto& node) { return !node.devices.empty(); });
}

void DevicesInFull(Page* page) {
  const std::vector<Row> rows = RowsOf(page->report());
  page->Print(TableOf({"process", Table::Align::kLeft, true}, Ranked(rows, IdlePpm)));
  page->Line(
      "Shares of the steps on the device. computing: a kernel ran that is no collective's. "
      "communication: only a collective's kernel ran (exposed). copies: memory was copied or "
      "filled, and nothing else ran (exposed). idle: nothing of the process ran; others on the "
      "device are not in its profile. launch wait: the part of idle in which the program had not "
      "launched the work that came next.");
  PrintUnknown(rows, page);
  PrintOperators(rows, page);
}

void DevicesInShort(Page* page) {
  const std::vector<Row> rows = RowsOf(page->report());
  if (rows.empty()) return;
  if (rows.size() <= kRowsInShort) {
    page->PrintBelow("Devices", TableOf(Table::Names("Devices"), Ranked(rows, IdlePpm)));
    return;
  }
  std::vector<SpreadValue> idle;
  for (const Row& row : rows) {
    const std::string name = absl::StrCat(row.device->process, " ", row.device->device);
    idle.push_back({name, IdlePpm(row), row.Share(row.use.idle_ns())});
  }
  page->Item("Devices",
             absl::StrCat("idle share of their steps: ",
                          SpreadText(std::move(idle), {.text = PercentOfPpm, .named = 1})));
}

void DevicesInJson(const Report& report, Json* json) {
  Json devices = Json::array();
  for (const analysis::NodeReport& node : report.nodes) {
    for (const DeviceReport& device : node.devices) {
      devices.push_back(OfDevice(device, node.name));
    }
  }
  (*json)["devices"] = std::move(devices);
}

}  // namespace syncline::report
