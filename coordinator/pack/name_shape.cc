// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pack/name_shape.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "analysis/names.h"
#include "analysis/onednn.h"
#include "analysis/optimizer_steps.h"
#include "analysis/why/task_names.h"
#include "common/text.h"
#include "timeline/collective_kinds.h"

namespace syncline::pack {
namespace {

namespace why = analysis::why;
using Shapes = std::basic_string<Shape>;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

constexpr std::array<std::string_view, 9> kBeginnings = {
    "Optimizer.step#", "Optimizer.step",         "enumerate(DataLoader)",     "c10d::",
    "gloo:",           "FSDP::root_pre_forward", "accelerator initialised: ", "dnnl",
    "oneDNN",
};
constexpr std::array<std::string_view, 3> kParts = {"gloo", "time", "duration"};

// As analysis::NamePattern() has it: digits beside a letter are part of a word.
void FindNumbers(std::string_view name, Shapes* shapes) {
  for (size_t begin = 0; begin < name.size();) {
    if (!IsDigit(name[begin])) {
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < name.size() && IsDigit(name[end])) ++end;
    const bool in_word =
        (begin > 0 && IsLetter(name[begin - 1])) || (end < name.size() && IsLetter(name[end]));
    if (!in_word) {
      std::fill(shapes->begin() + static_cast<ptrdiff_t>(begin),
                shapes->begin() + static_cast<ptrdiff_t>(end), Shape::kDigit);
      if (begin > 0) (*shapes)[begin - 1] = Shape::kMark;
      if (end < name.size()) (*shapes)[end] = Shape::kMark;
    }
    begin = end;
  }
}

void Keep(size_t at, size_t size, Shapes* shapes) {
  std::fill_n(shapes->begin() + static_cast<ptrdiff_t>(at), size, Shape::kStays);
}

// Digits from `at` on that do not stand alone.
void KeepDigits(std::string_view name, size_t at, Shapes* shapes) {
  for (; at < name.size(); ++at) {
    if (IsDigit(name[at]) && (*shapes)[at] == Shape::kLetter) (*shapes)[at] = Shape::kInWord;
    if (!IsDigit(name[at]) && (*shapes)[at] == Shape::kLetter) (*shapes)[at] = Shape::kMark;
  }
}

// The last word of what analysis::LooksLikeStep() takes for a step.
void KeepStep(std::string_view name, Shapes* shapes) {
  size_t end = name.size();
  while (end > 0 && (IsDigit(name[end - 1]) ||
                     std::string_view(" _-#:.").find(name[end - 1]) != std::string_view::npos)) {
    --end;
  }
  const std::string lower = absl::AsciiStrToLower(AbslView(name.substr(0, end)));
  for (const std::string_view word : {"iteration", "step", "_iter", "iter"}) {
    if (!std::string_view(lower).ends_with(word)) continue;
    Keep(end - word.size(), word.size(), shapes);
    KeepDigits(name, end, shapes);
    return;
  }
}

void KeepDerivative(std::string_view name, Shapes* shapes) {
  constexpr std::string_view kEnding = "Backward";
  size_t end = name.size();
  while (end > 0 && IsDigit(name[end - 1])) --end;
  if (!name.substr(0, end).ends_with(kEnding)) return;
  Keep(end - kEnding.size(), kEnding.size(), shapes);
  KeepDigits(name, end, shapes);
}

void KeepEnding(std::string_view name, std::string_view ending, Shapes* shapes) {
  if (name.ends_with(ending)) Keep(name.size() - ending.size(), ending.size(), shapes);
}

}  // namespace

std::span<const std::string_view> KeptBeginnings() { return kBeginnings; }

Shapes ShapeOf(std::string_view name) {
  Shapes shapes(name.size(), Shape::kLetter);
  FindNumbers(name, &shapes);
  if (analysis::LooksLikeStep(name)) KeepStep(name, &shapes);
  const uint8_t roles = why::RolesOf(name);
  if ((roles & static_cast<uint8_t>(why::Role::kOperator)) != 0) {
    const size_t colons = name.find("::");
    if (colons != std::string_view::npos) {
      Keep(colons, 2, &shapes);
    } else {
      KeepDerivative(name, &shapes);
    }
  }
  for (const std::string_view beginning : kBeginnings) {
    if (!name.starts_with(beginning)) continue;
    Keep(0, beginning.size(), &shapes);
    break;
  }
  if (analysis::OptimizerSteps::Is(name)) KeepEnding(name, ".step", &shapes);
  if (analysis::IsExecution(name)) KeepEnding(name, "execute", &shapes);
  for (const std::string_view part : kParts) {
    const size_t at = name.find(part);
    if (at != std::string_view::npos) Keep(at, part.size(), &shapes);
  }
  return shapes;
}

Meaning MeaningOf(std::string_view name) {
  const bool tells_time = name.find("time") != std::string_view::npos ||
                          name.find("duration") != std::string_view::npos;
  const bool collective = !timeline::CollectiveOfLaunch(name).empty() ||
                          !timeline::CollectiveOfWork(name).empty() ||
                          timeline::CollectiveCalled(name) != name;
  return {analysis::LooksLikeStep(name),
          why::RolesOf(name),
          analysis::IsPrimitive(name),
          analysis::IsExecution(name),
          why::IsTransferThread(name),
          analysis::OptimizerSteps::Is(name),
          tells_time,
          collective,
          !why::AcceleratorOf("syncline", name).empty()};
}

}  // namespace syncline::pack
