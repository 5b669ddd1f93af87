// SPDX-License-Identifier: Apache-2.0
#include "export/why/collective_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "export/report/table.h"
#include "export/report/units.h"
#include "export/why/device_json.h"
#include "export/why/device_text.h"
#include "export/why/labelled_text.h"
#include "export/why/why_json.h"
#include "export/why/why_sentences.h"

namespace syncline::report {
namespace {

using analysis::why::CollectiveAnswer;
using analysis::why::CollectiveFinding;
using analysis::why::CollectiveRank;
using analysis::why::CollectiveRefusal;
using analysis::why::DeviceVerdict;
using Json = nlohmann::ordered_json;

constexpr size_t kRanksMax = 16;
constexpr size_t kFindingsShown = 8;
constexpr int64_t kSecondNs = 1'000'000'000;

std::string RankOf(const CollectiveAnswer& answer, const CollectiveFinding& finding) {
  const CollectiveRank& rank = answer.ranks[finding.index];
  return absl::StrCat("rank ", rank.rank, " (", Printed(rank.node), ", pid ", rank.process.pid,
                      ")");
}

std::string LateText(const CollectiveAnswer& answer, const CollectiveFinding& finding) {
  return absl::StrCat("the ranks wait for ", RankOf(answer, finding), ": of each second ",
                      answer.ranks.size() > 2 ? "the others wait in collectives "
                                              : "the other rank waits in collectives ",
                      WithInterval(finding.lead), " longer than it",
                      answer.ranks.size() > 2 ? " (median)" : "",
                      "; it is the last to come, or among the last, in ",
                      Count(answer.ranks[finding.index].last_in), " of the ",
                      Plural(answer.waited_in, "collective"), " in which any rank waits");
}

void WriteVerdict(const CollectiveAnswer& answer, LabelledText* writer) {
  const size_t shown = std::min(kFindingsShown, answer.findings.size());
  for (size_t i = 0; i < shown; ++i) {
    writer->Say("LATE", LateText(answer, answer.findings[i]));
    std::vector<std::string> held_back;
    for (const analysis::why::DeviceHeldBack& held : answer.findings[i].held_back) {
      held_back.push_back(
          absl::StrCat(HeldBackText(held), "; it may be late for that, or warm from more work"));
    }
    writer->Say("DEVICE", held_back);
  }
  if (answer.findings.size() > shown) {
    writer->Say("LATE", absl::StrCat(Plural(answer.findings.size() - shown, "rank"),
                                     " more: --json has them"));
  }
  if (!answer.findings.empty()) {
    writer->Say("CAUSE",
                "not known: kernels of collectives show who comes late, not what it does before");
  }
  if (answer.closest.has_value()) {
    const bool nobody = answer.verdict == DeviceVerdict::kNobody;
    const bool few = answer.collectives < analysis::why::kWaitsMin;
    writer->Say(nobody ? "NOBODY" : "UNDECIDED",
                absl::StrCat(nobody ? "no rank is late: "
                             : few  ? "too few collectives to call a rank late: "
                                    : "it is not certain that no rank is late: ",
                             "least waits ", RankOf(answer, *answer.closest), ", ",
                             WithInterval(answer.closest->lead), " of each second less than ",
                             answer.ranks.size() > 2 ? "the others (median)" : "the other rank"));
  }
  if (answer.rotating_ns > 0) {
    writer->Say("ALL", absl::StrCat("every rank waits, at least ", Ms(answer.rotating_ns),
                                    " ms of each second: another one comes last from one "
                                    "collective to the next"));
  }
}

void WriteTable(const CollectiveAnswer& answer, LabelledText* writer) {
  std::vector<size_t> order(answer.ranks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const bool all = order.size() <= kRanksMax;
  if (!all) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return answer.ranks[a].waited_ns < answer.ranks[b].waited_ns;
    });
    order.resize(kRanksMax);
  }
  Table table({{"of each second", Table::Align::kLeft, true},
               {"in collectives", Table::Align::kRight},
               {"waits", Table::Align::kRight},
               {"times last", Table::Align::kRight}});
  for (const size_t i : order) {
    const CollectiveRank& rank = answer.ranks[i];
    table.Add({absl::StrCat("  rank ", rank.rank), absl::StrCat(Ms(rank.kernels_ns), " ms"),
               absl::StrCat(Ms(rank.waited_ns), " ms"), Count(rank.last_in)});
  }
  writer->Raw(table.Format(writer->width(), 0));
  if (!all) {
    writer->Indented(absl::StrCat("shown: of ", Plural(answer.ranks.size(), "rank"), " the ",
                                  kRanksMax, " that wait least"));
  }
}

std::vector<std::string> TrustTexts(const CollectiveAnswer& answer) {
  std::vector<std::string> texts = {
      "a rank waits for as long as its kernel runs longer than the shortest of the collective: "
      "each "
      "device's own clock measures that, and how far two clocks are apart does not matter"};
  for (const std::string& note : answer.notes) texts.push_back(Printed(note, 400));
  return texts;
}

std::vector<std::string> NextTexts(const CollectiveAnswer& answer) {
  if (answer.findings.empty()) {
    std::vector<std::string> texts = {"`syncline report RUN --section nccl` has each communicator"};
    if (answer.collectives < analysis::why::kWaitsMin) {
      texts.insert(texts.begin(), "record for longer (--for)");
    }
    return texts;
  }
  const std::string who = absl::StrCat("rank ", answer.ranks[answer.findings[0].index].rank);
  return {absl::StrCat("start the job with `syncline run --kineto` (PyTorch) and ask again: then "
                       "kernels, copies, input and launches of ",
                       who, " are compared with the others'"),
          absl::StrCat(
              "`syncline report RUN --section machines` says what the nodes did meanwhile, and "
              "`--section device-health` how hot their GPUs were and what held them back")};
}

Json JsonOf(const CollectiveAnswer& answer, const CollectiveFinding& finding) {
  const CollectiveRank& rank = answer.ranks[finding.index];
  return {{"rank", rank.rank},       {"node", rank.node},
          {"pid", rank.process.pid}, {"lead_ns", MeanJson(finding.lead)},
          {"last_in", rank.last_in}, {"held_back", HeldBackJson(finding.held_back)}};
}

}  // namespace

std::string CollectiveWhyText(const CollectiveAnswer& answer, const WhyTextOptions& options) {
  LabelledText writer(options.width, options.color);
  if (answer.refusal != CollectiveRefusal::kNone) {
    writer.Say("REFUSED", Printed(answer.refusal_text, 2000));
    return writer.Take();
  }
  std::string head = absl::StrCat(
      answer.job.empty() ? "a job without a name" : absl::StrCat("job ", Printed(answer.job)), ", ",
      Plural(answer.ranks.size(), "rank"), ", ", Plural(answer.collectives, "collective"), " in ",
      absl::StrFormat("%.1f s",
                      static_cast<double>(answer.window_ns) / static_cast<double>(kSecondNs)));
  if (answer.incomplete) absl::StrAppend(&head, "; something is missing");
  writer.Line(head);
  writer.Blank();
  WriteVerdict(answer, &writer);
  writer.Blank();
  WriteTable(answer, &writer);
  writer.Blank();
  writer.Say("TRUST", TrustTexts(answer));
  writer.Say("NEXT", NextTexts(answer));
  return writer.Take();
}

std::string CollectiveWhyJson(const CollectiveAnswer& answer, const std::string& run) {
  const bool refused = answer.refusal != CollectiveRefusal::kNone;
  Json findings = Json::array();
  for (const CollectiveFinding& finding : answer.findings) {
    findings.push_back(JsonOf(answer, finding));
  }
  Json ranks = Json::array();
  for (const CollectiveRank& rank : answer.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"node", rank.node},
                     {"pid", rank.process.pid},
                     {"kernels_ns", rank.kernels_ns},
                     {"waited_ns", rank.waited_ns},
                     {"last_in", rank.last_in}});
  }
  const Json json = {
      {"format_version", kWhyFormatVersion},
      {"kind", "collectives"},
      {"status", refused             ? "refused"
                 : answer.incomplete ? "incomplete"
                                     : "answered"},
      {"reason", refused ? Json(CollectiveRefusalJsonName(answer.refusal)) : Json()},
      {"message", answer.refusal_text},
      {"recording", run},
      {"job", answer.job},
      {"collectives",
       {{"judged", answer.collectives},
        {"waited_in", answer.waited_in},
        {"unmatched", answer.unmatched}}},
      {"window_ns", answer.window_ns},
      {"verdict",
       {{"kind", DeviceVerdictJsonName(answer.verdict)},
        {"ranks", std::move(findings)},
        {"closest", answer.closest.has_value() ? JsonOf(answer, *answer.closest) : Json()},
        {"rotating_ns", answer.rotating_ns}}},
      {"ranks", std::move(ranks)},
      {"notes", answer.notes}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncline::report
