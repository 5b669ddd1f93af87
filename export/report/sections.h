// SPDX-License-Identifier: Apache-2.0
// The sections of the report, in the order in which they are printed: the one list from which
// `--section`, its help, its completion, its refusal and the printing itself come.
#ifndef SYNCLINE_EXPORT_REPORT_SECTIONS_H_
#define SYNCLINE_EXPORT_REPORT_SECTIONS_H_

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/report.h"
#include "export/report/page.h"

namespace syncline::report {

struct Section {
  const char* name;   // of --section
  const char* title;  // of the section in full
  // Whether this recording has something for it.
  bool (*has)(const analysis::Report& report);
  // All of it, below its title.
  void (*print)(Page* page);
  // What the one-screen report says of it: a line, or its largest rows. nullptr: nothing.
  void (*print_short)(Page* page);
  // What the JSON holds of it, under keys of its own; nullptr: json_report.cc writes it.
  void (*json)(const analysis::Report& report, nlohmann::ordered_json* json) = nullptr;
  // Where there is nothing for it, why, or what records it; nullptr: that it is not there says all.
  const char* absent = nullptr;
};

std::span<const Section> Sections();

// nullptr: there is no section of this name.
const Section* FindSection(std::string_view name);

// Of all sections, or of those for which `report` has something.
std::vector<std::string> SectionNames();
std::vector<std::string> SectionNames(const analysis::Report& report);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_REPORT_SECTIONS_H_
