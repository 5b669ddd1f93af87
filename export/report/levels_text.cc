// SPDX-License-Identifier: Apache-2.0
#include "export/report/levels_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "export/report/units.h"

namespace syncline::report {

AssumptionText TextOf(const analysis::Report& report) {
  const analysis::Assumption& assumed = report.assumption;
  if (assumed.asymmetry_percent >= clocksync::kAsymmetryPercentAny) return {};
  const std::string name = clocksync::AsymmetryText(assumed.asymmetry_percent);
  if (!assumed.refuted_by.empty()) {
    return {.warning = absl::StrCat("nothing is called likely: ", name,
                                    " is false here: ", assumed.refuted_by)};
  }
  if (std::none_of(report.nodes.begin(), report.nodes.end(),
                   [](const auto& node) { return node.likely_bound_ns.has_value(); })) {
    return {};
  }
  return {.text =
              absl::StrCat("Every ± is proven, except what is called likely: that assumes ", name,
                           ", so ", clocksync::AsymmetryMeaning(assumed.asymmetry_percent),
                           ". No sample can prove that.")};
}

std::string OrderOfEntries(const analysis::Report& report) {
  analysis::LevelCounts order;
  for (const auto& kind : report.collectives.kinds) order.Add(kind.order);
  if (order.all() == 0) return "";
  std::string likely;
  if (order.likely > 0) {
    likely = absl::StrCat(", likely for ", Count(order.likely), " (if ",
                          clocksync::AsymmetryText(report.assumption.asymmetry_percent), ")");
  }
  return absl::StrCat("Which rank entered first, and which last: proven for ", Count(order.proven),
                      likely, ", undecided for ", Count(order.undecided));
}

}  // namespace syncline::report
