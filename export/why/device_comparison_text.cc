// SPDX-License-Identifier: Apache-2.0
#include "export/why/device_comparison_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
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

constexpr int64_t kKernelPpm = 5'000;  // of the step before: what a kernel must change by
constexpr size_t kKernelRows = 10;
constexpr double kSameCount = 0.05;  // counts that differ by less are the same
constexpr size_t kRefusalColumns = 2000;

std::string NameOf(const KernelChange& kernel) {
  const std::string& size = kernel.name.size;
  return Printed(size.empty() ? kernel.name.name : absl::StrCat(kernel.name.name, " ", size));
}

void WriteParts(const DeviceComparison& comparison, LabelledText* writer) {
  std::vector<NamedChange> parts;
  for (size_t part = 0; part < kDeviceParts; ++part) {
    parts.push_back({DevicePartName(static_cast<DevicePart>(part)), comparison.parts[part]});
  }
  std::vector<NamedChange> ranks;
  for (const DeviceRankChange& rank : comparison.ranks) {
    const std::string name = absl::StrCat("rank ", rank.rank, ": ");
    ranks.push_back({name + "own work", rank.own});
    for (size_t part = 0; part < kDeviceParts; ++part) {
      ranks.push_back({name + DevicePartName(static_cast<DevicePart>(part)), rank.parts[part]});
    }
  }
  WriteChanges(parts, comparison.step, std::move(ranks), writer);
}

// How often it runs, where that changed, or that it is as often.
std::string WorkText(const KernelChange& kernel) {
  if (kernel.calls_before == 0) return "ran in no judged step before";
  if (kernel.calls_now == 0) return "runs in no judged step now";
  const double most = std::max(kernel.calls_before, kernel.calls_now);
  if (std::abs(kernel.calls_now - kernel.calls_before) <= kSameCount * most) {
    return absl::StrCat("runs as often, ",
                        kernel.time.change.est_ns > 0 ? "and longer" : "and shorter");
  }
  return absl::StrCat("runs ", CallsText(kernel.calls_now), " times a step and rank, ",
                      CallsText(kernel.calls_before), " before");
}

void WriteKernels(const DeviceComparison& comparison, LabelledText* writer) {
  std::vector<const KernelChange*> shown;
  for (const KernelChange& kernel : comparison.kernels) {
    if (!kernel.time.certain() || std::abs(kernel.time.est_ppm) <= kKernelPpm) continue;
    if (shown.size() < kKernelRows) shown.push_back(&kernel);
  }
  if (shown.empty()) return;
  Table table = ChangeTable("kernels, added up, ms");
  for (const KernelChange* kernel : shown) {
    AddChange("  " + NameOf(*kernel), kernel->time, &table);
  }
  writer->Blank();
  writer->Raw(table.Format(writer->width(), 0));
  for (const KernelChange* kernel : shown) {
    writer->Indented(absl::StrCat(NameOf(*kernel), ": ", WorkText(*kernel)));
  }
}

std::vector<std::string> TrustSentences(const DeviceComparison& comparison) {
  std::vector<std::string> lines = IntervalSentences(comparison);
  lines.emplace_back(
      "a rank's device waits for the others in communication: which rank changed, its own work "
      "says. The profiler ran in all, and takes time itself");
  return lines;
}

}  // namespace

std::string ComparisonText(const ComparedDevices& compared, const WhyTextOptions& options) {
  const DeviceComparison& comparison = compared.comparison;
  LabelledText writer(options.width, options.color);
  if (comparison.mismatch != Mismatch::kNone) {
    writer.Say("REFUSED", Printed(comparison.mismatch_text, kRefusalColumns));
    return writer.Take();
  }
  WriteCompared(comparison, compared, "rank", comparison.step, &writer);
  WriteParts(comparison, &writer);
  WriteKernels(comparison, &writer);
  writer.Blank();
  writer.Say("TRUST", TrustSentences(comparison));
  return writer.Take();
}

}  // namespace syncline::report
