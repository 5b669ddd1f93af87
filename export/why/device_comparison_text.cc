// SPDX-License-Identifier: Apache-2.0
#include "export/why/device_comparison_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/utf8.h"
#include "export/report/table.h"
#include "export/why/change_text.h"
#include "export/why/labelled_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::DeviceComparison;
using analysis::why::DevicePart;
using analysis::why::DevicePartName;
using analysis::why::DeviceRankChange;
using analysis::why::kDeviceParts;
using analysis::why::KernelChange;
using analysis::why::Mismatch;

constexpr size_t kKernelRows = 10;
constexpr double kSameCount = 0.05;  // of a count, and of a change: less is as often
constexpr size_t kCellColumns = 30;
constexpr size_t kNameColumns = 60;

// A long name with its middle left out: of templates the ends tell which is which.
std::string NameOf(const KernelChange& kernel, size_t columns) {
  return FitMiddle(OnlyPrintable(kernel.name.name, '?'), columns);
}

void WriteParts(const DeviceComparison& comparison, LabelledText* writer) {
  std::vector<NamedChange> parts;
  for (size_t part = 0; part < kDeviceParts; ++part) {
    parts.push_back({DevicePartName(static_cast<DevicePart>(part)), comparison.parts[part]});
  }
  std::vector<NamedChange> ranks;
  for (const DeviceRankChange& rank : comparison.ranks) {
    const std::string name = absl::StrCat("rank ", rank.rank, ": ");
    if (comparison.own_work_known) ranks.push_back({name + "own work", rank.own, true});
    for (size_t part = 0; part < kDeviceParts; ++part) {
      ranks.push_back({name + DevicePartName(static_cast<DevicePart>(part)), rank.parts[part]});
    }
  }
  WriteChanges(parts, comparison.step, std::move(ranks), writer);
}

// With so many digits that two counts which are told apart differ.
std::string ExactCalls(double calls) {
  constexpr double kMany = 1000;
  return calls < kMany ? absl::StrFormat("%.4g", calls) : absl::StrFormat("%.0f", calls);
}

// How often it runs. "As often" is said only where other counts are not what changed its time.
std::string WorkText(const KernelChange& kernel) {
  if (kernel.calls_before == 0) return "ran in no judged step before";
  if (kernel.calls_now == 0) return "runs in no judged step now";
  const double more = std::abs(kernel.calls_now - kernel.calls_before);
  const double more_ns = more * static_cast<double>(kernel.time.before_ns) / kernel.calls_before;
  const auto change_ns = static_cast<double>(std::abs(kernel.time.change.est_ns));
  if (more <= kSameCount * kernel.calls_before && more_ns <= kSameCount * change_ns) {
    return absl::StrCat("runs as often, ",
                        kernel.time.change.est_ns > 0 ? "and longer" : "and shorter");
  }
  return absl::StrCat("runs ", ExactCalls(kernel.calls_now), " times a step and rank, ",
                      ExactCalls(kernel.calls_before), " before");
}

// Rows have numbers, as names and sizes are too long for them.
void WriteKernels(const DeviceComparison& comparison, LabelledText* writer) {
  const auto shown = Shown(comparison.kernels, &KernelChange::time, kKernelRows);
  if (shown.empty()) return;
  Table table = ChangeTable("kernels, added up, ms");
  for (size_t i = 0; i < shown.size(); ++i) {
    AddChange(absl::StrCat("  ", i + 1, ": ", NameOf(*shown[i], kCellColumns)), shown[i]->time,
              &table);
  }
  writer->Blank();
  writer->Raw(table.Format(writer->width(), 0));
  for (size_t i = 0; i < shown.size(); ++i) {
    const std::string size = OnlyPrintable(shown[i]->name.size, '?');
    writer->Indented(absl::StrCat(i + 1, ": ", NameOf(*shown[i], kNameColumns),
                                  size.empty() ? "" : " ", size, ": ", WorkText(*shown[i])));
  }
}

std::vector<std::string> TrustSentences(const DeviceComparison& comparison) {
  std::vector<std::string> lines = IntervalSentences(comparison);
  lines.emplace_back("the profiler ran in all, and takes time itself");
  if (comparison.ranks.size() > 1 && comparison.has_collectives) {
    lines.emplace_back(
        "a rank's device waits for the others in communication: which rank changed, its own work "
        "says, the step without that");
  }
  if (const auto other_name = OtherNameSentence(comparison)) lines.push_back(*other_name);
  return lines;
}

}  // namespace

std::string ComparisonText(const ComparedDevices& compared, const WhyTextOptions& options) {
  const DeviceComparison& comparison = compared.comparison;
  if (comparison.mismatch != Mismatch::kNone) return RefusedText(comparison, options);
  LabelledText writer(options.width, options.color);
  WriteCompared(comparison, compared, "rank", comparison.step, &writer);
  WriteParts(comparison, &writer);
  WriteKernels(comparison, &writer);
  writer.Blank();
  writer.Say("TRUST", TrustSentences(comparison));
  return writer.Take();
}

}  // namespace syncline::report
