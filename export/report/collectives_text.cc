// SPDX-License-Identifier: Apache-2.0
// Collectives: how far apart the ranks entered them, and how long they took.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "export/report/levels_text.h"
#include "export/report/section_printers.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::CollectiveKindReport;
using analysis::CollectiveReport;
using analysis::Report;

// What they took in all, about.
double TimeOf(const CollectiveKindReport& kind) {
  const int64_t median_ns = kind.duration.has_value() ? kind.duration->est_ns : 0;
  return static_cast<double>(kind.count) * static_cast<double>(median_ns);
}

std::string NameOf(const timeline::CollectiveGroup& group) {
  return group.description.empty() ? group.name : group.description;
}

// The short report has room for the group's name only, behind the collective's.
Table TableOf(const std::vector<const CollectiveKindReport*>& rows, const std::string& title,
              const Report& report, bool in_full) {
  std::vector<Table::Column> columns = {Table::Names(title),
                                        {"count", Table::Align::kRight},
                                        {"complete", Table::Align::kRight},
                                        {"bytes", Table::Align::kRight},
                                        {"median entry spread", Table::Align::kRight},
                                        {"median duration", Table::Align::kRight}};
  if (in_full) {
    columns.insert(columns.begin() + 1, {{"group", Table::Align::kLeft, true},  //
                                         {"ranks", Table::Align::kLeft, true}});
  }
  Table table(columns);
  for (const CollectiveKindReport* kind : rows) {
    const timeline::CollectiveGroup& group = report.collectives.found.groups[kind->group];
    std::vector<std::string> cells = {
        in_full ? kind->name : absl::StrCat(kind->name, " · ", NameOf(group)),
        Count(kind->count),
        Count(kind->whole),
        kind->bytes.has_value() ? Count(*kind->bytes) : "-",
        kind->spread.has_value() ? WithBound(*kind->spread) : "-",
        kind->duration.has_value() ? WithBound(*kind->duration) : "-"};
    if (in_full) cells.insert(cells.begin() + 1, {NameOf(group), group.ranks});
    table.Add(std::move(cells));
  }
  return table;
}

// Whether collectives of it were recorded, none of them with all ranks.
bool IsNeverComplete(const CollectiveReport& collectives, size_t group) {
  uint64_t count = 0;
  for (const CollectiveKindReport& kind : collectives.kinds) {
    if (kind.group != group) continue;
    if (kind.whole > 0) return false;
    count += kind.count;
  }
  return count > 0;
}

// Processes of one job that were started under different names: its groups are halves of each
// other.
void WarnOfHalves(const CollectiveReport& collectives, Page* page) {
  const std::vector<timeline::CollectiveGroup>& groups = collectives.found.groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = i + 1; j < groups.size(); ++j) {
      const bool alike = groups[i].name == groups[j].name && groups[i].ranks == groups[j].ranks;
      if (!alike || groups[i].job == groups[j].job || !IsNeverComplete(collectives, i) ||
          !IsNeverComplete(collectives, j)) {
        continue;
      }
      page->Warn(absl::StrCat(
          "group ", NameOf(groups[i]), " of ranks ", groups[i].ranks,
          " was recorded of two jobs, \"", groups[i].job, "\" and \"", groups[j].job,
          "\", and of both no collective has all its ranks: if they are one job, start all of its "
          "processes with the same --job"));
      return;  // the others are of the same jobs
    }
  }
}

// The order of entries, and what is wrong or unknown.
void PrintDoubts(Page* page) {
  const CollectiveReport& collectives = page->report().collectives;
  const std::string order = OrderOfEntries(page->report());
  if (!order.empty()) page->Line(order);
  if (collectives.contradictions > 0) {
    page->Warn(absl::StrCat(Plural(collectives.contradictions, "collective"),
                            " that a rank left before another entered: the clock model's bounds do "
                            "not hold, or events were lost"));
  }
  WarnOfHalves(collectives, page);
  const size_t undecided = collectives.found.undecided.size();
  if (undecided > 0) {
    page->Line(absl::StrCat(Count(undecided), undecided == 1 ? " launch" : " launches",
                            " whose group or number is not known"));
  }
}

}  // namespace

bool HasCollectives(const Report& report) {
  return !report.collectives.kinds.empty() || !report.collectives.found.undecided.empty();
}

void CollectivesInFull(Page* page) {
  const std::vector<CollectiveKindReport>& kinds = page->report().collectives.kinds;
  if (!kinds.empty()) {
    page->Print(TableOf(Ranked(kinds, TimeOf), "collective", page->report(), true));
    page->Line(
        "complete: every rank was recorded; the medians are of those. entry spread: from the first "
        "entry to the last; duration: from the first entry to the last exit. Sorted by count x "
        "median duration.");
  }
  PrintDoubts(page);
}

void CollectivesInShort(Page* page) {
  const Report& report = page->report();
  const std::vector<CollectiveKindReport>& kinds = report.collectives.kinds;
  if (kinds.empty()) {
    page->Heading("Collectives");
  } else {
    const auto rows = First(Ranked(kinds, TimeOf), RowsOfEach(report));
    const std::string title = ShownOf("Collectives", rows.size(), kinds.size());
    page->PrintBelow(title, TableOf(rows, title, report, false));
  }
  PrintDoubts(page);
}

}  // namespace syncline::report
