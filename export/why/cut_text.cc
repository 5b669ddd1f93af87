// SPDX-License-Identifier: Apache-2.0
#include "export/why/cut_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/utf8.h"
#include "export/report/network_text.h"
#include "export/report/table.h"
#include "export/report/units.h"
#include "export/why/cut_names.h"
#include "export/why/labelled_text.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::CutAnswer;
using analysis::why::CutDirectionSummary;
using analysis::why::CutEdgeSummary;
using analysis::why::CutOperatorSummary;
using analysis::why::CutPartitionSummary;
using analysis::why::CutRefusal;
using analysis::why::MeanEstimate;

constexpr size_t kPartitionsShown = 16;
constexpr size_t kEdgesShown = 8;
constexpr size_t kOperatorsShown = 8;
constexpr size_t kDirectionsShown = 3;
constexpr size_t kHalvesShown = 3;
constexpr uint64_t kLargeBytes = 65'536;
constexpr int64_t kSerialPercent = 10;  // of a step, at most, that partitions overlap
constexpr int64_t kLittleDivisor = 20;  // of a step: what is not worth a word
constexpr int64_t kMuchDivisor = 7;     // of a step: what there is something to be done about

std::string NameOf(const CutPartitionSummary& partition) { return TaskText(partition.task); }

// Partitions by what they are of the path, most first.
std::vector<size_t> ByPath(const CutAnswer& answer) {
  std::vector<size_t> order;
  for (size_t i = 0; i < answer.partitions.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return answer.partitions[a].path.est_ns > answer.partitions[b].path.est_ns;
  });
  return order;
}

int64_t WorkNs(const CutAnswer& answer) {
  return answer.step.est_ns - answer.tensors.est_ns - answer.between.est_ns;
}

std::string Share(const CutAnswer& answer, int64_t ns) {
  return absl::StrCat(Ms(ns), " ms (", Percent(ns, answer.step.est_ns), ")");
}

void WritePath(const CutAnswer& answer, LabelledText* writer) {
  writer->Say("STEP", absl::StrCat(WithInterval(answer.step),
                                   " from the begin of one step to the begin of the next, mean of ",
                                   Plural(answer.steps, "step")));
  std::vector<std::string> texts = {
      absl::StrCat("what a step waits for, one thing after the other (its critical path): work of "
                   "the partitions ",
                   Share(answer, WorkNs(answer)), ", tensors between them ",
                   Share(answer, answer.tensors.est_ns), ", between steps ",
                   Share(answer, answer.between.est_ns))};
  int64_t busy_ns = 0;
  for (const CutPartitionSummary& one : answer.partitions) busy_ns += one.sending_busy_ns;
  if (busy_ns * kLittleDivisor > answer.step.est_ns) {
    texts.push_back(absl::StrCat("in ", Ms(busy_ns),
                                 " ms of the tensors' time their senders worked on something: "
                                 "tensors may have waited until a thread there was free"));
  }
  texts.emplace_back(
      "partitions are not compared with each other: whether one of them is late, where several do "
      "the same work, is not said");
  writer->Say("PATH", texts);
  Table table({{"mean of a step, ms", Table::Align::kLeft, true},
               {"on the path", Table::Align::kRight},
               {"", Table::Align::kLeft},
               {"in operators", Table::Align::kRight},
               {"idle", Table::Align::kRight},
               {"at work", Table::Align::kRight}});
  const std::vector<size_t> order = ByPath(answer);
  for (size_t i = 0; i < std::min(order.size(), kPartitionsShown); ++i) {
    const CutPartitionSummary& partition = answer.partitions[order[i]];
    table.Add({absl::StrCat("  ", NameOf(partition), " (", Printed(partition.node), ")"),
               Ms(partition.path.est_ns), IntervalText(partition.path), Ms(partition.operators_ns),
               Ms(partition.idle_ns), Ms(partition.busy_ns)});
  }
  const auto add = [&](const char* what, const MeanEstimate& mean) {
    table.Add({what, Ms(mean.est_ns), IntervalText(mean), "", "", ""});
  };
  add("  tensors between them", answer.tensors);
  add("  between steps", answer.between);
  add("  step", answer.step);
  writer->Raw(table.Format(writer->width(), 0));
  if (order.size() > kPartitionsShown) {
    writer->Indented(absl::StrCat(Plural(order.size() - kPartitionsShown, "partition"),
                                  " with less on the path left out: --json has them"));
  }
}

void WriteTensors(const CutAnswer& answer, LabelledText* writer) {
  if (answer.edges.empty()) return;
  Table table({{"tensor on the path", Table::Align::kLeft, true},
               {"from", Table::Align::kLeft},
               {"to", Table::Align::kLeft},
               {"steps", Table::Align::kRight},
               {"ms", Table::Align::kRight},
               {"sender works", Table::Align::kRight},
               {"± clocks", Table::Align::kRight},
               {"bytes", Table::Align::kRight}});
  for (size_t i = 0; i < std::min(answer.edges.size(), kEdgesShown); ++i) {
    const CutEdgeSummary& edge = answer.edges[i];
    table.Add({absl::StrCat("  ", OnlyPrintable(edge.edge.tensor, '?')),
               NameOf(answer.partitions[edge.edge.from]), NameOf(answer.partitions[edge.edge.to]),
               Count(edge.steps), Ms(edge.path.est_ns), Ms(edge.sender_busy_ns),
               edge.clock_ns.has_value() ? Ms(*edge.clock_ns) : "not known",
               edge.bytes.has_value() ? Count(*edge.bytes) : "-"});
  }
  writer->Raw(table.Format(writer->width(), 0));
  if (answer.edges.size() > kEdgesShown) {
    writer->Indented(absl::StrCat(Plural(answer.edges.size() - kEdgesShown, "tensor"),
                                  " with less left out: --json has them"));
  }
}

void WriteOperators(const CutAnswer& answer, LabelledText* writer) {
  if (answer.operators.empty()) return;
  Table table({{"operator on the path", Table::Align::kLeft, true},
               {"partition", Table::Align::kLeft},
               {"steps", Table::Align::kRight},
               {"ms", Table::Align::kRight},
               {"", Table::Align::kLeft}});
  for (size_t i = 0; i < std::min(answer.operators.size(), kOperatorsShown); ++i) {
    const CutOperatorSummary& one = answer.operators[i];
    table.Add({absl::StrCat("  ", OnlyPrintable(one.name, '?')),
               NameOf(answer.partitions[one.partition]), Count(one.steps), Ms(one.path.est_ns),
               IntervalText(one.path)});
  }
  writer->Raw(table.Format(writer->width(), 0));
}

// The sender worked in most of the tensor's time.
bool WaitsForSender(const CutEdgeSummary& edge) {
  return edge.sender_busy_ns * 2 > edge.path.est_ns;
}

// What the first tensor's time is made of, as far as it is known.
std::vector<std::string> FirstTensorTexts(const CutAnswer& answer) {
  const CutEdgeSummary& edge = answer.edges[0];
  const std::string receiver = NameOf(answer.partitions[edge.edge.to]);
  std::vector<std::string> texts;
  if (edge.asked_ns * 2 > edge.path.est_ns && !WaitsForSender(edge)) {
    texts.push_back(absl::StrCat(Ms(edge.asked_ns), " ms of ", GraphNameText(edge.edge.tensor),
                                 " begin when ", receiver,
                                 " asks for it: it had been sent by then, so that its way was a "
                                 "request and an answer"));
  }
  if (edge.sending_ns * 5 > edge.path.est_ns) {
    texts.push_back(absl::StrCat(Ms(edge.sending_ns), " ms of ", GraphNameText(edge.edge.tensor),
                                 " are the operator that sends it"));
  }
  return texts;
}

size_t Busiest(const CutAnswer& answer) {
  const auto most =
      std::max_element(answer.partitions.begin(), answer.partitions.end(),
                       [](const CutPartitionSummary& a, const CutPartitionSummary& b) {
                         return a.busy_ns < b.busy_ns;
                       });
  return static_cast<size_t>(most - answer.partitions.begin());
}

bool IsSerial(const CutAnswer& answer) {
  return answer.overlap_ns * 100 < answer.step.est_ns * kSerialPercent;
}

// "3.3 ms [3.2, 3.4] (10.7 %)".
std::string Saved(const CutAnswer& answer, const MeanEstimate& saved) {
  return absl::StrCat(WithInterval(saved), " (", Percent(saved.est_ns, answer.step.est_ns), ")");
}

std::string HalfText(const CutAnswer& answer, const CutPartitionSummary& one) {
  std::string text = Saved(answer, one.saved);
  const int64_t more_ns = one.sending_busy_ns / 2;
  if (more_ns * kLittleDivisor > answer.step.est_ns) {
    absl::StrAppend(&text, ", and up to ", Ms(more_ns),
                    " ms more that tensors may have waited for its threads,");
  }
  return absl::StrCat(text, " if all work of ", NameOf(one), " took half as long");
}

// Of the partition that saves most by half of its work, and of those that may save more than is
// known.
std::vector<std::string> HalfTexts(const CutAnswer& answer) {
  const auto first = std::max_element(
      answer.partitions.begin(), answer.partitions.end(),
      [](const auto& a, const auto& b) { return a.saved.est_ns < b.saved.est_ns; });
  std::vector<std::string> texts = {HalfText(answer, *first)};
  for (const CutPartitionSummary& one : answer.partitions) {
    const bool more = one.sending_busy_ns / 2 * kLittleDivisor > answer.step.est_ns;
    if (more && &one != &*first && texts.size() < kHalvesShown) {
      texts.push_back(HalfText(answer, one));
    }
  }
  return texts;
}

void WriteSavings(const CutAnswer& answer, LabelledText* writer) {
  writer->Say("OVERLAP", absl::StrCat("two partitions or more worked at the same time in ",
                                      Share(answer, answer.overlap_ns), " of a step"));
  std::vector<std::string> texts = {
      absl::StrCat(Saved(answer, answer.tensors_saved),
                   " if no tensor took any time, nor waited for its sender's threads")};
  for (size_t i = 0; i < std::min(kDirectionsShown, answer.directions.size()); ++i) {
    const CutDirectionSummary& one = answer.directions[i];
    if (one.saved.est_ns <= 0) break;
    texts.push_back(absl::StrCat(Saved(answer, one.saved), " if those from ",
                                 NameOf(answer.partitions[one.from]), " to ",
                                 NameOf(answer.partitions[one.to]), " took none"));
  }
  for (std::string& text : HalfTexts(answer)) texts.push_back(std::move(text));
  const CutPartitionSummary& busiest = answer.partitions[Busiest(answer)];
  if (IsSerial(answer) && answer.between.est_ns < busiest.busy_ns &&
      busiest.busy_ns < answer.step.est_ns) {
    texts.push_back(absl::StrCat(
        "at most ", Share(answer, answer.step.est_ns - busiest.busy_ns),
        " if the partitions worked on several steps, or parts of a batch, beside each other, and "
        "none did more at a time than now: a step would still take the ",
        Ms(busiest.busy_ns), " ms that ", NameOf(busiest), " works"));
  }
  writer->Say("SAVES", texts);
}

std::string ClockText(const CutAnswer& answer) {
  if (answer.clock_ns == 0) return "all of it is of one clock";
  const std::string what =
      "as much may be moved at each crossing between tensors, between steps and what of a "
      "partition is on the path; how long something took is of one clock";
  if (!answer.clock_ns.has_value()) {
    return absl::StrCat("how far the clocks of the nodes are apart is not known: ", what);
  }
  return absl::StrCat("the clocks of two nodes are compared to ± ",
                      absl::StrFormat("%.1f µs", static_cast<double>(*answer.clock_ns) / 1e3), ": ",
                      what);
}

void WriteTrust(const CutAnswer& answer, LabelledText* writer) {
  std::vector<std::string> texts = {
      ClockText(answer),
      "a tensor's time begins with its send, or with when it is asked for: what else the sender "
      "did until it answered is in it",
      "within a partition the path goes to what ran last before: which operator feeds which is not "
      "recorded. TensorFlow's profiler ran, and takes time itself"};
  if (answer.other_steps > 0) {
    texts.push_back(absl::StrCat(Plural(answer.other_steps, "step"),
                                 " with other operators (evaluation, initialisation) left out"));
  }
  if (answer.overlapping_steps > 0) {
    texts.push_back(absl::StrCat(Plural(answer.overlapping_steps, "step"),
                                 " left out, because another one ran on the same partition"));
  }
  if (answer.broken_steps > 0) {
    texts.push_back(absl::StrCat(Plural(answer.broken_steps, "step"),
                                 " left out whose path was not recorded as a whole"));
  }
  if (answer.incomplete) {
    texts.emplace_back("something is missing in the recording: `syncline report` says what");
  }
  writer->Say("TRUST", texts);
}

std::string TensorNext(const CutAnswer& answer) {
  const CutEdgeSummary& edge = answer.edges[0];
  std::string text =
      absl::StrCat("tensors: most on the path takes ", GraphNameText(edge.edge.tensor), " (",
                   Ms(edge.path.est_ns), " ms)");
  if (WaitsForSender(edge)) {
    const std::string sender = NameOf(answer.partitions[edge.edge.from]);
    return absl::StrCat(text, ", and ", sender, " worked in ", Ms(edge.sender_busy_ns),
                        " ms of it: try more threads there (inter_op_parallelism_threads), so that "
                        "it can answer while it works");
  }
  const bool large = edge.bytes.value_or(0) >= kLargeBytes;
  return absl::StrCat(text, ": cut the graph where ",
                      large ? "fewer and smaller tensors cross" : "fewer tensors cross, less often",
                      "; `syncline report --section network` says what TCP retransmitted, and "
                      "what it waited for");
}

void WriteNext(const CutAnswer& answer, LabelledText* writer) {
  std::vector<std::string> texts;
  const auto is_much = [&](int64_t ns) { return ns * kMuchDivisor >= answer.step.est_ns; };
  if (!answer.edges.empty() && is_much(answer.tensors_saved.est_ns)) {
    texts.push_back(TensorNext(answer));
  }
  if (is_much(answer.between.est_ns)) {
    texts.push_back(absl::StrCat(
        "between steps: ", Ms(answer.between.est_ns),
        " ms are the program between two calls of the session, and the session's calls to the "
        "partitions: several steps in one call need them once"));
  }
  if (!answer.operators.empty() && is_much(WorkNs(answer))) {
    const CutOperatorSummary& first = answer.operators[0];
    texts.push_back(absl::StrCat("work: most on the path takes ", GraphNameText(first.name), " of ",
                                 NameOf(answer.partitions[first.partition]), " (",
                                 Ms(first.path.est_ns), " ms); `syncline merge` draws the steps"));
  }
  writer->Say("NEXT", texts);
}

}  // namespace

std::string CutWhyText(const CutAnswer& answer, const WhyTextOptions& options) {
  LabelledText writer(options.width, options.color);
  if (answer.refusal != CutRefusal::kNone) {
    writer.Say("REFUSED", answer.refusal_text);
    return writer.Take();
  }
  WritePath(answer, &writer);
  writer.Blank();
  WriteTensors(answer, &writer);
  if (!answer.edges.empty()) {
    for (const std::string& text : FirstTensorTexts(answer)) writer.Indented(text);
  }
  writer.Blank();
  WriteOperators(answer, &writer);
  writer.Blank();
  WriteSavings(answer, &writer);
  writer.Say("NETWORK", NetworkSentences(answer.network));
  WriteTrust(answer, &writer);
  WriteNext(answer, &writer);
  return writer.Take();
}

}  // namespace syncline::report
