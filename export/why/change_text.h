// SPDX-License-Identifier: Apache-2.0
// What the texts of comparisons of all kinds of jobs have in common.
//
// Thread-safe: no state.
#ifndef SYNCLINE_EXPORT_WHY_CHANGE_TEXT_H_
#define SYNCLINE_EXPORT_WHY_CHANGE_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/why/changes.h"
#include "analysis/why/compared_sides.h"
#include "export/report/table.h"
#include "export/why/compared.h"
#include "export/why/labelled_text.h"
#include "export/why/why_text.h"

namespace syncline::report {

// NOW, BEFORE, STEP and FAIL-IF, each with its blank lines. `member`: what a job has several of,
// "rank".
void WriteCompared(const analysis::why::ComparedSides& comparison, const ComparedNames& names,
                   const char* member, const analysis::why::Change& step, LabelledText* writer);

// One row a change, in ms.
Table ChangeTable(const std::string& title);
void AddChange(const std::string& name, const analysis::why::Change& change, Table* table);

struct NamedChange {
  std::string name;
  std::optional<analysis::why::Change> change;  // nullopt: not measured
  bool first = false;                           // of ranks' rows: stands before the others
};

// A table of the parts that add up to the step, the step, and those of `ranks` that surely changed
// by more than little, the largest change first.
void WriteChanges(const std::vector<NamedChange>& parts, const analysis::why::Change& step,
                  std::vector<NamedChange> ranks, LabelledText* writer);

// "12", "2.50": how often something is called.
std::string CallsText(double calls);

// Whether a change of an operator, a kernel or a tensor is certain, and not too little for a row.
bool IsShown(const analysis::why::Change& change);
// The first of the changes that are shown, at most so many. `change`: the member that is one.
template <class T>
std::vector<const T*> Shown(const std::vector<T>& changes, analysis::why::Change T::*change,
                            size_t most) {
  std::vector<const T*> shown;
  for (const T& one : changes) {
    if (IsShown(one.*change) && shown.size() < most) shown.push_back(&one);
  }
  return shown;
}

// REFUSED: a comparison with a mismatch, all of it.
std::string RefusedText(const analysis::why::ComparedSides& comparison,
                        const WhyTextOptions& options);

// That the job had another name; nullopt: it had not.
std::optional<std::string> OtherNameSentence(const analysis::why::ComparedSides& comparison);

// What the intervals hold, and what not.
std::vector<std::string> IntervalSentences(const analysis::why::ComparedSides& comparison);

}  // namespace syncline::report

#endif  // SYNCLINE_EXPORT_WHY_CHANGE_TEXT_H_
