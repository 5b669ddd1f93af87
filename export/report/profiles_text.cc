// SPDX-License-Identifier: Apache-2.0
// The profiles of TensorFlow, JAX and PyTorch that were taken with the recording.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/duration_text.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::Report;
using timeline::ProfileResult;

const char* NameOf(timeline::Profiler profiler) {
  switch (profiler) {
    case timeline::Profiler::kTensorFlow:
      return "TensorFlow";
    case timeline::Profiler::kKineto:
      return "PyTorch (Kineto)";
    case timeline::Profiler::kJax:
      return "JAX";
    case timeline::Profiler::kTable:
      return "table of spans";
  }
  return "";
}

std::vector<ProfileResult> ProfilesOf(const Report& report) {
  std::vector<ProfileResult> profiles;
  for (const analysis::NodeReport& node : report.nodes) {
    profiles.insert(profiles.end(), node.profiles.begin(), node.profiles.end());
  }
  return profiles;
}

std::string InstantText(const std::optional<TimelineTime>& time, const ProfileResult& profile) {
  if (time.has_value()) return SignedDurationText(time->ns);
  return profile.events > 0 ? "undecided" : "-";
}

}  // namespace

bool HasProfiles(const Report& report) {
  return std::any_of(report.nodes.begin(), report.nodes.end(),
                     [](const auto& node) { return !node.profiles.empty(); });
}

void ProfilesInFull(Page* page) {
  const std::vector<ProfileResult> profiles = ProfilesOf(page->report());
  // Only TensorFlow's have tasks and steps.
  const bool tensorflow =
      std::any_of(profiles.begin(), profiles.end(), [](const ProfileResult& profile) {
        return profile.profiler == timeline::Profiler::kTensorFlow;
      });
  std::vector<Table::Column> columns = {
      {"process", Table::Align::kLeft, true},
      {"profiler"},
      {"from", Table::Align::kRight},
      {"to", Table::Align::kRight},
      // Kineto's are not only operators.
      {tensorflow ? "operators" : "events", Table::Align::kRight}};
  if (tensorflow) {
    columns.push_back({"steps", Table::Align::kRight});
    columns.push_back({"task", Table::Align::kLeft, true});
  }
  Table table(columns);
  const auto operators = [](const ProfileResult& profile) { return profile.operators; };
  for (const ProfileResult* profile : Ranked(profiles, operators)) {
    std::vector<std::string> cells = {
        profile->name, NameOf(profile->profiler), InstantText(profile->begin, *profile),
        InstantText(profile->end, *profile), Count(profile->operators)};
    if (tensorflow) {
      cells.push_back(Count(profile->steps));
      cells.push_back(profile->task);
    }
    table.Add(std::move(cells));
  }
  page->Print(table);
  for (const ProfileResult& profile : profiles) {
    if (profile.absence.empty()) continue;
    page->Line(absl::StrCat(profile.name, ": ", profile.absence));
  }
}

// A profile that is there is no news: its operators are among the operators.
void ProfilesInShort(Page* page) {
  std::map<std::string, std::vector<std::string>> by_absence;  // of all or of a part
  uint64_t lacking = 0;
  const std::vector<ProfileResult> profiles = ProfilesOf(page->report());
  for (const ProfileResult& profile : profiles) {
    if (profile.absence.empty()) continue;
    ++lacking;
    by_absence[profile.absence].push_back(profile.name);
  }
  if (lacking == 0) return;
  const auto& [absence, names] = *std::max_element(
      by_absence.begin(), by_absence.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  page->Item("Profiles", absl::StrCat(Count(lacking), " of ", Count(profiles.size()),
                                      " missing or cut: ", ListText(names), ": ", absence,
                                      by_absence.size() == 1 ? "" : "; others for other reasons"));
}

}  // namespace syncline::report
