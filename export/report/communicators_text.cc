// SPDX-License-Identifier: Apache-2.0
#include "export/report/communicators_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "export/report/devices_text.h"
#include "export/report/json_values.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::CommunicatorMember;
using analysis::CommunicatorReport;

constexpr size_t kInFull = 12;  // communicators

std::string NameOf(const CommunicatorReport& one) { return absl::StrFormat("%x", one.id); }

std::string Who(const CommunicatorMember& member, const analysis::Report& report) {
  if (member.job_rank < 0) return member.process;
  return absl::StrCat(report.nodes[member.key.node].name, " · rank ", member.job_rank);
}

// Who waits least first.
std::vector<const CommunicatorMember*> ByWait(const CommunicatorReport& one) {
  std::vector<const CommunicatorMember*> members;
  for (const CommunicatorMember& member : one.members) members.push_back(&member);
  std::stable_sort(members.begin(), members.end(),
                   [](const auto* a, const auto* b) { return a->waited_ns < b->waited_ns; });
  return members;
}

Table MembersOf(const CommunicatorReport& one, const Page& page) {
  const int64_t window_ns = page.window_ns();
  Table table({{"rank in it", Table::Align::kRight},
               {"process", Table::Align::kLeft, true},
               {"recorded", Table::Align::kRight},
               {"in kernels", Table::Align::kRight},
               {"waits", Table::Align::kRight},
               {"times last", Table::Align::kRight}});
  for (const CommunicatorMember* const member : ByWait(one)) {
    table.Add({absl::StrCat(member->rank), Who(*member, page.report()), Count(member->collectives),
               Percent(member->kernels_ns, window_ns), Percent(member->waited_ns, window_ns),
               Count(member->last_in)});
  }
  return table;
}

std::string UnmatchedText(const CommunicatorReport& one) {
  std::vector<std::string> texts;
  const auto add = [&](uint64_t count, const char* what) {
    if (count > 0) texts.push_back(absl::StrCat(Count(count), " ", what));
  };
  add(one.other, "of a kind that does not show who waits, or of a device without a clock");
  add(one.transfers, "sends and receives");
  add(one.incomplete, "that not all ranks show");
  add(one.repeated, "whose number a rank shows twice");
  add(one.different, "whose sizes differ");
  add(one.impossible, "of which one kernel was over before another had begun");
  std::string all;
  for (const std::string& text : texts) absl::StrAppend(&all, all.empty() ? "" : "; ", text);
  return all;
}

void Print(const CommunicatorReport& one, Page* page) {
  page->Line(absl::StrCat(
      "Communicator ", NameOf(one), " of ", Plural(one.size, "rank"),
      one.job.empty() ? "" : absl::StrCat(", job ", one.job), ": ",
      Plural(one.waits.size(), "collective"), " of all its ranks",
      one.twice ? "; two processes are one rank of it" : "",
      one.members.size() < one.size
          ? absl::StrCat("; ", one.size - one.members.size(), " of its ranks were not recorded")
          : ""));
  page->Print(MembersOf(one, *page));
  const std::string unmatched = UnmatchedText(one);
  if (!unmatched.empty()) page->Line(absl::StrCat("Not counted: ", unmatched, "."));
}

}  // namespace

bool HasCommunicators(const analysis::Report& report) { return !report.communicators.empty(); }

void CommunicatorsInFull(Page* page) {
  const std::vector<CommunicatorReport>& all = page->report().communicators;
  for (size_t i = 0; i < std::min(kInFull, all.size()); ++i) Print(all[i], page);
  if (all.size() > kInFull) {
    page->Line(
        absl::StrCat(Plural(all.size() - kInFull, "communicator"), " more: --json has all."));
  }
  page->Line(
      "Shares of the window. in kernels: kernels of collectives that all ranks of the communicator "
      "were recorded in; what overlaps counts once. waits: by how much these run longer than the "
      "shortest of the same collective, each by its own device's clock. times last: in "
      "how many of those in which any rank waits it does not.");
}

// The largest. Where profiles say what devices did, they have room.
void CommunicatorsInShort(Page* page) {
  if (HasDevices(page->report())) return;
  const std::vector<CommunicatorReport>& all = page->report().communicators;
  const auto one = std::find_if(all.begin(), all.end(),
                                [](const CommunicatorReport& any) { return !any.waits.empty(); });
  if (one == all.end()) return;
  const std::vector<const CommunicatorMember*> members = ByWait(*one);
  const auto text = [&](const CommunicatorMember& member) {
    const std::string who =
        member.job_rank < 0 ? member.process : absl::StrCat("rank ", member.job_rank);
    return absl::StrCat(Percent(member.waited_ns, page->window_ns()), " (", who, ")");
  };
  page->Item("NCCL", absl::StrCat(Plural(one->size, "rank"), " wait ", text(*members.front()),
                                  " to ", text(*members.back()), " of the window"));
}

void CommunicatorsInJson(const analysis::Report& report, Json* json) {
  Json communicators = Json::array();
  for (const CommunicatorReport& one : report.communicators) {
    Json ranks = Json::array();
    for (const CommunicatorMember& member : one.members) {
      ranks.push_back({{"rank", member.rank},
                       {"node", report.nodes[member.key.node].name},
                       {"process", member.process},
                       {"job_rank", member.job_rank < 0 ? Json() : Json(member.job_rank)},
                       {"recorded", member.collectives},
                       {"clock_placed", member.placed},
                       {"kernels_ns", member.kernels_ns},
                       {"waited_ns", member.waited_ns},
                       {"last_in", member.last_in}});
    }
    communicators.push_back({{"communicator", NameOf(one)},
                             {"job", one.job},
                             {"size", one.size},
                             {"collectives", one.waits.size()},
                             {"other", one.other},
                             {"transfers", one.transfers},
                             {"incomplete", one.incomplete},
                             {"repeated", one.repeated},
                             {"different", one.different},
                             {"impossible", one.impossible},
                             {"one_rank_twice", one.twice},
                             {"ranks", std::move(ranks)}});
  }
  (*json)["communicators"] = std::move(communicators);
}

}  // namespace syncline::report
