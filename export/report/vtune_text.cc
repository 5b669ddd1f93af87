// SPDX-License-Identifier: Apache-2.0
#include "export/report/vtune_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "common/utf8.h"
#include "export/report/json_values.h"
#include "vtune/commands.h"

namespace syncline::report {
namespace {

using analysis::VtuneDelay;
using analysis::VtuneResult;
using analysis::VtuneSpan;

std::string WhoseText(const analysis::Report& report, const VtuneResult& result) {
  return absl::StrCat(report.nodes[result.process.node].name,
                      result.rank < 0 ? "" : absl::StrCat(" · rank ", result.rank), " · pid ",
                      result.pid);
}

// "resumed 3 ms to 170 ms behind the begin of the recording".
std::string DelayText(const char* what, const VtuneDelay& delay, const char* instant) {
  return absl::StrCat(what, " between ", DurationText(delay.begin_ns), " and ",
                      DurationText(delay.end_ns), " behind the ", instant, " of the recording");
}

std::string CommandFor(const VtuneResult& result, const VtuneSpan& span) {
  return vtune::TimelineText(result.path,
                             {.begin_ns = span.since_begin_ns, .end_ns = span.since_end_ns});
}

void PrintCommand(const std::string& command, Page* page) {
  page->Raw(absl::StrCat("    ", OnlyPrintable(command, '?'), "\n"));
}

void PrintResult(const VtuneResult& result, Page* page) {
  std::string line = absl::StrCat(WhoseText(page->report(), result), ": ", result.analysis);
  if (!result.version.empty()) absl::StrAppend(&line, ", ", result.version);
  page->Line(line);
  if (!result.problem.empty()) page->Warn(result.problem);
  if (result.resumed.has_value()) page->Line(DelayText("resumed", *result.resumed, "begin"));
  if (result.stopped.has_value()) page->Line(DelayText("stopped", *result.stopped, "end"));
  if (result.path.empty()) return page->Line("no result was kept");
  PrintCommand(vtune::FinalizeText(result.path), page);
  PrintCommand(vtune::HotspotsText(result.path), page);
  for (const VtuneSpan& span : result.spans) {
    page->Line(absl::StrCat("the longest ", span.name, ": ",
                            DurationText(span.end.ns - span.begin.ns), " of thread ", span.tid));
    PrintCommand(CommandFor(result, span), page);
  }
}

Json OfDelay(const std::optional<VtuneDelay>& delay) {
  if (!delay.has_value()) return Json();
  return {{"begin_ns", delay->begin_ns}, {"end_ns", delay->end_ns}};
}

Json OfSpan(const VtuneResult& result, const VtuneSpan& span) {
  return {{"name", span.name},
          {"tid", span.tid},
          {"begin_ns", span.begin.ns},
          {"end_ns", span.end.ns},
          {"since_begin_ns", span.since_begin_ns},
          {"since_end_ns", span.since_end_ns},
          {"command", CommandFor(result, span)}};
}

}  // namespace

bool HasVtune(const analysis::Report& report) { return !report.vtune.empty(); }

void VtuneInFull(Page* page) {
  for (const VtuneResult& result : page->report().vtune) PrintResult(result, page);
  page->Line(
      "The commands are for the recording's directory. The first finalizes a result, once; it "
      "needs the programs and libraries that ran (-search-dir). Reports by time cover the span "
      "with as much around it as VTune's own begin is uncertain. In VTune's window, filter by the "
      "thread and by the task, after `syncline merge` and the `vtune -import` that it prints.");
}

void VtuneInJson(const analysis::Report& report, Json* json) {
  Json results = Json::array();
  for (const VtuneResult& result : report.vtune) {
    Json one = {{"node", report.nodes[result.process.node].name},
                {"pid", result.pid},
                {"rank", result.rank},
                {"analysis", result.analysis},
                {"vtune_version", result.version},
                {"path", result.path},
                {"bytes", result.bytes},
                {"problem", result.problem},
                {"resumed", OfDelay(result.resumed)},
                {"stopped", OfDelay(result.stopped)}};
    one["commands"] = Json::array();
    if (!result.path.empty()) {
      one["commands"].push_back(vtune::FinalizeText(result.path));
      one["commands"].push_back(vtune::HotspotsText(result.path));
    }
    one["spans"] = Json::array();
    for (const VtuneSpan& span : result.spans) one["spans"].push_back(OfSpan(result, span));
    results.push_back(std::move(one));
  }
  (*json)["vtune"] = std::move(results);
}

}  // namespace syncline::report
