// SPDX-License-Identifier: Apache-2.0
#include "export/why/device_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "export/report/table.h"
#include "export/report/units.h"
#include "export/why/labelled_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::DeviceAnswer;
using analysis::why::DeviceCause;
using analysis::why::DeviceFinding;
using analysis::why::DeviceHeldBack;
using analysis::why::DevicePart;
using analysis::why::DevicePartName;
using analysis::why::DeviceRankSummary;
using analysis::why::DeviceRefusal;
using analysis::why::DeviceVerdict;
using analysis::why::kDeviceParts;
using analysis::why::kDeviceStepsMin;
using analysis::why::KernelDifference;
using analysis::why::KernelWork;
using analysis::why::MeanEstimate;

constexpr size_t kRanksMax = 8;
constexpr size_t kFindingsShown = 8;
constexpr size_t kKernelsShown = 3;
constexpr size_t kKernelColumns = 70;
constexpr int64_t kTenthNs = 100'000;

std::string NameOf(const DeviceRankSummary& rank) {
  return rank.rank < 0 ? Printed(rank.source) : absl::StrCat("rank ", rank.rank);
}

std::string RankOf(const DeviceAnswer& answer, const DeviceFinding& finding) {
  const DeviceRankSummary& rank = answer.ranks[finding.index];
  const std::string source = Printed(rank.source);
  return absl::StrCat(NameOf(rank), " (", source == NameOf(rank) ? "" : absl::StrCat(source, ", "),
                      Printed(rank.device), ")");
}

std::string TheOthers(const DeviceAnswer& answer) {
  return answer.ranks.size() > 2 ? "the other ranks' median" : "the other rank's";
}

std::string PercentText(double part) {
  const double percent = part * 100;
  return percent < 10 ? absl::StrFormat("%.1f %%", percent) : absl::StrFormat("%.0f %%", percent);
}

std::string LateText(const DeviceAnswer& answer, const DeviceFinding& finding) {
  return absl::StrCat(RankOf(answer, finding), ": its own work takes ", WithInterval(finding.lead),
                      " longer than ", TheOthers(answer), " in a step of ", Ms(answer.mean_step_ns),
                      " ms; no rank has more in ", finding.most_in, " of ",
                      Plural(answer.steps, "step"));
}

std::string KernelText(const KernelDifference& kernel) {
  std::string text =
      absl::StrCat(Printed(kernel.name, kKernelColumns), ": ", Ms(kernel.excess_ns), " ms more, ");
  if (std::abs(kernel.own_count - kernel.others_count) >= 0.05) {
    absl::StrAppendFormat(&text, "%.1f a step, the others %.1f", kernel.own_count,
                          kernel.others_count);
  } else {
    absl::StrAppendFormat(&text, "%.1f a step of %s ms, the others' take %s ms", kernel.own_count,
                          Ms(kernel.own_ns), Ms(kernel.others_ns));
  }
  return text;
}

std::vector<std::string> WorkTexts(const KernelWork& work) {
  std::vector<std::string> texts;
  const char* same = work.sizes_known ? "kernels of the same names, grids and blocks"
                                      : "kernels of the same names (the profile has no grids)";
  if (!work.is_comparable) {
    return {
        "whether it is slower at the same work, or has other work, is not known: too few of its "
        "kernels have the names and sizes of the others'"};
  }
  if (work.is_more_work()) {
    texts.push_back(absl::StrCat(
        "it has other work: kernels that the others have less often, or not at all",
        work.sizes_known ? "" : " (told apart by name alone: the profile has no grids)", ", take ",
        Ms(work.more_ns), " ms more in all; ", same, " ", Ms(work.longer_ns), " ms"));
  } else {
    texts.push_back(absl::StrCat("it is slower at the same work",
                                 work.sizes_known ? " (or at longer data in equal grids)" : "",
                                 ": ", same, " take ", PercentText(work.longer_part),
                                 " longer in all (", Ms(work.longer_ns), " ms); more kernels ",
                                 Ms(work.more_ns), " ms"));
  }
  for (size_t i = 0; i < std::min(kKernelsShown, work.kernels.size()); ++i) {
    texts.push_back(KernelText(work.kernels[i]));
  }
  return texts;
}

std::vector<std::string> CauseTexts(const DeviceCause& cause) {
  std::vector<std::string> texts = {absl::StrCat(DevicePartName(cause.part), ": ",
                                                 WithInterval(cause.amount), " more, of ",
                                                 Ms(cause.own_ns), " ms")};
  if (cause.part == DevicePart::kInput) {
    texts.emplace_back("its device was idle, and its program waited for a DataLoader's next batch");
  }
  if (cause.part == DevicePart::kLaunch) {
    texts.emplace_back("its device was idle, and its program took longer to launch what came next");
  }
  if (!cause.work.has_value()) return texts;
  for (std::string& text : WorkTexts(*cause.work)) texts.push_back(std::move(text));
  return texts;
}

void WriteFinding(const DeviceAnswer& answer, const DeviceFinding& finding, LabelledText* writer) {
  writer->Say("LATE", LateText(answer, finding));
  std::vector<std::string> causes;
  for (const DeviceCause& cause : finding.causes) {
    for (std::string& text : CauseTexts(cause)) causes.push_back(std::move(text));
  }
  if (finding.unseen_launch_ns > 0) {
    causes.push_back(absl::StrCat(
        finding.causes.empty() ? "not known: its" : "not explained: its", " device was idle ",
        Ms(finding.unseen_launch_ns),
        " ms longer before launches, and its program's own time does not show why: it may have "
        "waited in calls of the device's library (memory that is allocated, freed, or copied and "
        "not pinned)"));
  } else if (causes.empty()) {
    causes.emplace_back("not known: no part alone is certainly larger");
  }
  writer->Say("CAUSE", causes);
  std::vector<std::string> held_back;
  for (const DeviceHeldBack& held : finding.held_back) held_back.push_back(HeldBackText(held));
  writer->Say("DEVICE", held_back);
  writer->Say("COST",
              absl::StrFormat("%s ms of each step (%s) at most: the longest own work would be "
                              "shorter by so much without it alone",
                              Ms(finding.cost_ns), Percent(finding.cost_ns, answer.mean_step_ns)));
}

std::string AllText(const DeviceAnswer& answer, DevicePart part) {
  const auto which = static_cast<size_t>(part);
  int64_t least_ns = INT64_MAX;
  int64_t most_ns = 0;
  for (const DeviceRankSummary& rank : answer.ranks) {
    least_ns = std::min(least_ns, rank.mean[which]);
    most_ns = std::max(most_ns, rank.mean[which]);
  }
  const std::string amount = answer.ranks.size() == 1
                                 ? absl::StrCat(Ms(least_ns), " ms")
                                 : absl::StrCat(Ms(least_ns), " to ", Ms(most_ns), " ms");
  return absl::StrCat(DevicePartName(part), ": ", amount, " of the step",
                      answer.ranks.size() == 1 ? "" : " on every rank");
}

void WriteVerdict(const DeviceAnswer& answer, LabelledText* writer) {
  for (size_t i = 0; i < std::min(kFindingsShown, answer.findings.size()); ++i) {
    WriteFinding(answer, answer.findings[i], writer);
  }
  if (answer.findings.size() > kFindingsShown) {
    writer->Say("LATE", absl::StrCat(Plural(answer.findings.size() - kFindingsShown, "rank"),
                                     " more: --json has them"));
  }
  if (answer.joint_cost_ns > 0) {
    writer->Say("COST", absl::StrCat(Ms(answer.joint_cost_ns), " ms of each step (",
                                     Percent(answer.joint_cost_ns, answer.mean_step_ns),
                                     ") at most without the leads of all of them"));
  }
  if (answer.verdict == DeviceVerdict::kNotJudged) {
    writer->Say("STEPS", answer.ranks.size() == 1
                             ? "one rank: there is nobody to compare it with"
                             : "no kernel of a collective ran: no rank waits for another on its "
                               "device, so nobody is called late");
  }
  if (answer.closest.has_value()) {
    const DeviceFinding& closest = *answer.closest;
    const bool few = answer.steps < kDeviceStepsMin;
    writer->Say(answer.verdict == DeviceVerdict::kUndecided ? "UNDECIDED" : "NOBODY",
                absl::StrCat(answer.verdict == DeviceVerdict::kNobody
                                 ? "no rank is late: the most own work "
                             : few ? "too few steps to call a rank late: the most own work "
                                   : "it is not certain that no rank is late: the most own work ",
                             "has ", RankOf(answer, closest), ", ", WithInterval(closest.lead),
                             " more than ", TheOthers(answer), " in a step of ",
                             Ms(answer.mean_step_ns), " ms"));
  }
  std::vector<std::string> all;
  for (const DevicePart part : answer.everybody) all.push_back(AllText(answer, part));
  if (answer.rotating_ns > 0) {
    all.push_back(
        absl::StrCat("another rank has the most own work from step to step: that makes "
                     "each step ",
                     Ms(answer.rotating_ns),
                     " ms longer than the rank with the most own "
                     "work in the mean does"));
  }
  writer->Say("ALL", all);
}

// All of a few ranks; of many those that are late, the median, and the least and the most own work.
std::vector<size_t> ColumnsOf(const DeviceAnswer& answer) {
  std::vector<size_t> ranks(answer.ranks.size());
  std::iota(ranks.begin(), ranks.end(), size_t{0});
  if (ranks.size() <= kRanksMax) return ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [&](size_t a, size_t b) {
    return answer.ranks[a].mean_own_ns < answer.ranks[b].mean_own_ns;
  });
  std::vector<size_t> chosen;
  const auto add = [&](size_t rank) {
    if (std::find(chosen.begin(), chosen.end(), rank) == chosen.end()) chosen.push_back(rank);
  };
  for (size_t i = 0; i < std::min(kRanksMax - 3, answer.findings.size()); ++i) {
    add(answer.findings[i].index);
  }
  for (const size_t rank : {ranks[ranks.size() / 2], ranks.front(), ranks.back()}) add(rank);
  return chosen;
}

void WriteTable(const DeviceAnswer& answer, LabelledText* writer) {
  const std::vector<size_t> chosen = ColumnsOf(answer);
  std::vector<Table::Column> titles = {{"mean of a step, ms", Table::Align::kLeft, true}};
  std::vector<std::vector<int64_t>> columns;
  for (const size_t rank : chosen) {
    const std::vector<int64_t> mean(answer.ranks[rank].mean.begin(), answer.ranks[rank].mean.end());
    titles.push_back({NameOf(answer.ranks[rank]), Table::Align::kRight});
    columns.push_back(RoundedToTenths(mean));
    columns.back().push_back(
        std::accumulate(columns.back().begin(), columns.back().end(), int64_t{0}));
  }
  Table table(std::move(titles));
  for (size_t part = 0; part <= kDeviceParts; ++part) {
    const bool is_step = part == kDeviceParts;
    const bool none = std::all_of(columns.begin(), columns.end(),
                                  [&](const auto& column) { return column[part] == 0; });
    if (none && !is_step) continue;
    std::vector<std::string> row = {
        is_step ? "  step" : absl::StrCat("  ", DevicePartName(static_cast<DevicePart>(part)))};
    for (const std::vector<int64_t>& column : columns) row.push_back(Tenths(column[part]));
    table.Add(std::move(row));
  }
  std::vector<std::string> program = {"  program, without waiting for the device"};
  for (const size_t rank : chosen) {
    program.push_back(Tenths((answer.ranks[rank].mean_program_ns + kTenthNs / 2) / kTenthNs));
  }
  table.Add(std::move(program));
  writer->Raw(table.Format(writer->width(), 0));
  if (chosen.size() < answer.ranks.size()) {
    writer->Indented(absl::StrCat(
        Plural(answer.ranks.size() - chosen.size(), "rank"),
        " left out; shown: ", answer.findings.empty() ? "" : "those that are late, then ",
        "the median, the least and the most own work"));
  }
}

std::vector<std::string> TrustTexts(const DeviceAnswer& answer) {
  std::vector<std::string> texts = {absl::StrCat(
      "each rank's times are of its own clock: how far two clocks are apart does not "
      "matter. The profiler makes launches slower: the program waits less without it")};
  if (answer.steps < 15) {
    texts.push_back(absl::StrCat(Plural(answer.steps, "step"),
                                 ": what is said is of these; more steps say more"));
  }
  for (const std::string& note : answer.notes) texts.push_back(Printed(note, 400));
  return texts;
}

// One thing to do, for what was found.
std::string NextFor(DevicePart part, const std::string& who) {
  switch (part) {
    case DevicePart::kInput:
      return absl::StrCat("input on ", who,
                          ": more workers (DataLoader num_workers), prefetch_factor, or less work "
                          "a sample; is its file system slower?");
    case DevicePart::kLaunch:
      return absl::StrCat(
          "launches on ", who,
          ": `syncline merge` shows what the program did in the gaps; fewer, larger kernels "
          "(torch.compile, CUDA graphs), no .item() or print of a tensor within the step");
    case DevicePart::kCommunication:
      return absl::StrCat(
          "communication on ", who,
          ": larger buckets, more of it beside the computation, or a faster network");
    case DevicePart::kCopies:
      return absl::StrCat("copies on ", who,
                          ": pin_memory with non_blocking copies lets them run beside kernels");
    default:
      return "";
  }
}

std::vector<std::string> NextTexts(const DeviceAnswer& answer) {
  std::vector<std::string> texts;
  for (const DeviceFinding& finding : answer.findings) {
    const std::string who = NameOf(answer.ranks[finding.index]);
    if (finding.causes.empty() || texts.size() >= kFindingsShown) continue;
    const DeviceCause& cause = finding.causes[0];
    if (!cause.work.has_value()) {
      texts.push_back(NextFor(cause.part, who));
    } else if (!cause.work->is_comparable) {
      texts.push_back(absl::StrCat("device of ", who,
                                   ": profile with batches of one size, to see whether it is "
                                   "slower at the same work"));
    } else if (cause.work->is_more_work()) {
      texts.push_back(absl::StrCat("work of ", who,
                                   ": compare its batches with the others' (lengths, shapes, "
                                   "experts)"));
    } else {
      texts.push_back(absl::StrCat("device of ", who,
                                   ": its clocks, power and temperature limits (`nvidia-smi -q -d "
                                   "PERFORMANCE,CLOCK`, `amd-smi metric`), and who else uses it"));
    }
  }
  if (answer.findings.empty()) {
    for (const DevicePart part : answer.everybody) {
      // Whether the program is slow, or waits for another rank, is not known.
      if (part == DevicePart::kLaunch && answer.host_collectives) continue;
      texts.push_back(NextFor(part, answer.ranks.size() == 1 ? NameOf(answer.ranks[0]) : "all"));
    }
  }
  if (answer.steps < kDeviceStepsMin && answer.ranks.size() > 1) {
    texts.emplace_back(answer.recorded
                           ? "record more steps: --for, at least a few steps long"
                           : "profile more steps: torch.profiler.schedule(wait=5, warmup=5, "
                             "active=20)");
  }
  std::erase_if(texts, [](const std::string& text) { return text.empty(); });
  if (texts.empty()) {
    texts.emplace_back("`syncline report --section devices` has each step and operator");
  }
  return texts;
}

}  // namespace

std::string HeldBackText(const DeviceHeldBack& held) {
  std::string text =
      absl::StrCat("its device was held back ", analysis::HeldBackBy(held.reason), " in ",
                   PercentText(held.own.lo), " to ", PercentText(held.own.hi), " of the window, ",
                   held.known == 1 ? "the other's" : "the others'", " in ",
                   PercentText(held.others.lo), " to ", PercentText(held.others.hi));
  if (held.own_mhz > 0 && held.others_mhz > 0) {
    absl::StrAppend(&text, "; its SM clock was ", held.own_mhz, " MHz in the median, ",
                    held.known == 1 ? "the other's " : "the others' ", held.others_mhz, " MHz");
  }
  if (held.unknown > 0) {
    absl::StrAppend(&text, "; of ", Plural(held.unknown, "more rank"), " it is not known");
  }
  return text;
}

std::string DeviceWhyText(const DeviceAnswer& answer, const WhyTextOptions& options) {
  LabelledText writer(options.width, options.color);
  if (answer.refusal != DeviceRefusal::kNone) {
    writer.Say("REFUSED", Printed(answer.refusal_text, 2000));
    return writer.Take();
  }
  std::string head =
      absl::StrCat(answer.recorded ? "recording of " : "profiles of ",
                   Plural(answer.ranks.size(), "rank"), ", ", Plural(answer.steps, "step"));
  if (answer.incomplete) absl::StrAppend(&head, "; something is missing");
  writer.Line(head);
  if (answer.unpaired_steps > 0) {
    writer.Line(
        absl::StrCat("not judged: ", Plural(answer.unpaired_steps, "step"),
                     " that not all ranks have whole, with as many kernels of collectives"));
  }
  writer.Blank();
  WriteVerdict(answer, &writer);
  writer.Blank();
  WriteTable(answer, &writer);
  writer.Blank();
  writer.Say("TRUST", TrustTexts(answer));
  writer.Say("NEXT", NextTexts(answer));
  return writer.Take();
}

}  // namespace syncline::report
