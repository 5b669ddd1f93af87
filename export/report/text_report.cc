// SPDX-License-Identifier: Apache-2.0
#include "export/report/text_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "export/report/page.h"
#include "export/report/sections.h"

namespace syncline::report {
namespace {

void PrintScreen(Page* page) {
  for (const Section& section : Sections()) {
    if (section.print_short != nullptr && section.has(page->report())) section.print_short(page);
  }
  page->Item("More", absl::StrCat("--full; --section NAME: ",
                                  absl::StrJoin(SectionNames(page->report()), ", ")));
}

bool IsWanted(const TextOptions& options, const Section& section) {
  return options.sections.empty() || std::find(options.sections.begin(), options.sections.end(),
                                               section.name) != options.sections.end();
}

void PrintSections(const TextOptions& options, Page* page) {
  for (const Section& section : Sections()) {
    const bool has = section.has(page->report());
    if (!IsWanted(options, section) || (!has && options.sections.empty())) continue;
    page->Heading(section.title);
    if (has) {
      section.print(page);
    } else {
      // It was named, so its absence is the answer.
      page->Line(section.absent == nullptr ? "none recorded"
                                           : absl::StrCat("none recorded: ", section.absent));
    }
  }
}

}  // namespace

std::string TextReport(const analysis::Report& report, const TextOptions& options) {
  Page page(report, options.width, options.color);
  if (options.full || !options.sections.empty()) {
    PrintSections(options, &page);
  } else {
    PrintScreen(&page);
  }
  return page.Take();
}

}  // namespace syncline::report
