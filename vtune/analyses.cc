// SPDX-License-Identifier: Apache-2.0
#include "vtune/analyses.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text.h"
#include "common/utf8.h"

namespace syncline::vtune {
namespace {

constexpr size_t kKnobBytesMax = 256;
constexpr size_t kKnobsMax = 32;

struct Analysis {
  std::string_view name;
  std::array<std::string_view, 2> knobs;  // of the recipe; empty: none
};

// "Profiling TensorFlow workloads with the Instrumentation and Tracing Technology API"
// (github.com/intel-ai-tce/ai-documents); it has no recipe for io.
constexpr Analysis kAnalyses[] = {
    {"hotspots", {"sampling-mode=hw", "sampling-interval=0.1"}},
    {"threading", {"sampling-and-waits=hw", "sampling-interval=0.1"}},
    {"memory-consumption", {}},
    {"memory-access", {"sampling-interval=0.1"}},
    {"hpc-performance", {"sampling-interval=0.1"}},
    {"uarch-exploration", {"sampling-interval=0.1"}},
    {"io", {}},
};

std::string_view NameOf(std::string_view knob) { return knob.substr(0, knob.find('=')); }

// In user mode VTune takes a sample each ms at most ("sampling-interval" of its user guide): the
// recipes' intervals are for counters.
bool IsInUserMode(const Request& request) {
  return std::any_of(request.knobs.begin(), request.knobs.end(), [](const std::string& knob) {
    return knob == "sampling-mode=sw" || knob == "sampling-and-waits=sw";
  });
}

bool IsKnob(std::string_view text) {
  const size_t equals = text.find('=');
  if (text.size() > kKnobBytesMax || equals == std::string_view::npos || equals == 0) return false;
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  return !value.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  }) && std::all_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_isalnum(c) || std::string_view(".,:_-").find(c) != std::string::npos;
  });
}

}  // namespace

std::vector<std::string> AnalysisNames() {
  std::vector<std::string> names;
  for (const Analysis& analysis : kAnalyses) names.emplace_back(analysis.name);
  return names;
}

absl::Status CheckRequest(const Request& request) {
  const std::vector<std::string> names = AnalysisNames();
  if (std::count(names.begin(), names.end(), request.analysis) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", OnlyPrintable(CutText(request.analysis, 64), '?'),
                     "\" is not an analysis of VTune that can be recorded: choose one of ",
                     absl::StrJoin(names, ", ")));
  }
  if (request.knobs.size() > kKnobsMax) {
    return absl::InvalidArgumentError(absl::StrCat("VTune gets at most ", kKnobsMax, " knobs"));
  }
  for (const std::string& knob : request.knobs) {
    if (IsKnob(knob)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", OnlyPrintable(CutText(knob, 64), '?'),
                     "\" is not a knob of VTune: write NAME=VALUE, as sampling-interval=1; "
                     "`vtune -help collect ANALYSIS` lists them"));
  }
  return absl::OkStatus();
}

std::vector<std::string> KnobsOf(const Request& request) {
  std::vector<std::string> knobs;
  for (const Analysis& analysis : kAnalyses) {
    if (analysis.name != request.analysis) continue;
    for (const std::string_view knob : analysis.knobs) {
      const bool replaced =
          std::any_of(request.knobs.begin(), request.knobs.end(),
                      [&](const std::string& asked) { return NameOf(asked) == NameOf(knob); });
      const bool too_often = NameOf(knob) == "sampling-interval" && IsInUserMode(request);
      if (!knob.empty() && !replaced && !too_often) knobs.emplace_back(knob);
    }
  }
  knobs.insert(knobs.end(), request.knobs.begin(), request.knobs.end());
  return knobs;
}

}  // namespace syncline::vtune
