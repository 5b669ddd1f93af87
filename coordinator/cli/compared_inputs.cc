// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/compared_inputs.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::cli {

std::string NameOfInputs(const std::vector<std::string>& inputs) {
  if (inputs.size() == 1) return inputs[0];
  return absl::StrCat(inputs[0], " and ", inputs.size() - 1, " more");
}

absl::Status CheckDistinct(const std::vector<std::string>& now,
                           const std::vector<std::string>& before) {
  using std::filesystem::path;
  const auto canonical = [](const std::string& run) {
    std::error_code error;
    path whole = std::filesystem::weakly_canonical(run, error);
    return error ? path(run) : whole;
  };
  std::set<path> asked;
  for (const std::string& run : now) asked.insert(canonical(run));
  std::set<path> seen;
  for (const std::string& run : before) {
    const path whole = canonical(run);
    if (now.size() == 1 && asked.contains(whole)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--against ", run, " is the recording itself, of which nothing has changed: name an ",
          "earlier one"));
    }
    if (seen.insert(whole).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("--against ", run, " is given twice"));
  }
  return absl::OkStatus();
}

absl::Status AboutInputs(const absl::Status& error, const std::vector<std::string>& inputs) {
  const std::string name = NameOfInputs(inputs);
  const bool says = StdView(error.message()).find(name) != std::string_view::npos;
  return says ? error : WithContext(error, name);
}

}  // namespace syncline::cli
