// SPDX-License-Identifier: Apache-2.0
#include "export/report/hot_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace syncline::report {

using analysis::TaskWhere;

std::string HotPlaceText(TaskWhere where, const std::string& domain, const std::string& name) {
  switch (where) {
    case TaskWhere::kTask:
      return domain.empty() ? name : absl::StrCat(name, " (", domain, ")");
    case TaskWhere::kOutside:
      return "outside of recorded tasks";
    case TaskWhere::kWithoutTasks:
      return "threads without recorded tasks";
  }
  return "";
}

const char* HotPlaceJsonName(TaskWhere where) {
  switch (where) {
    case TaskWhere::kTask:
      return "task";
    case TaskWhere::kOutside:
      return "outside";
    case TaskWhere::kWithoutTasks:
      return "thread_without_tasks";
  }
  return "";
}

std::string HotShareText(uint64_t part, uint64_t whole) {
  const analysis::Share share = analysis::ShareOf(part, whole);
  return absl::StrFormat("%.1f ± %.1f %%", share.est * 100, (share.hi - share.lo) * 50);
}

}  // namespace syncline::report
