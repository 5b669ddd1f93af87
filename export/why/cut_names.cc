// SPDX-License-Identifier: Apache-2.0
#include "export/why/cut_names.h"

#include "absl/strings/str_replace.h"
#include "common/text.h"
#include "common/utf8.h"
#include "export/report/table.h"
#include "export/why/why_sentences.h"

namespace syncline::report {

std::string GraphNameText(const std::string& name) {
  constexpr size_t kColumns = 60;
  return FitMiddle(OnlyPrintable(name, '?'), kColumns);
}

std::string TaskText(const std::string& task) {
  return Printed(
      absl::StrReplaceAll(AbslView(task), {{"/replica:0", ""}, {"/job:", ""}, {"/task:", ":"}}));
}

}  // namespace syncline::report
