// SPDX-License-Identifier: Apache-2.0
#include "export/report/network_text.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/utf8.h"
#include "export/report/json_values.h"
#include "export/report/spread.h"
#include "export/report/units.h"

namespace syncline::report {
namespace {

using analysis::NetworkEnd;
using analysis::NetworkFinding;
using analysis::NetworkLink;
using analysis::Report;
using Kind = NetworkFinding::Kind;

constexpr double kPpm = 1e6;
constexpr double kWorthAWordShare = 0.1;  // from here on what the receiver lacked is worth a word

std::string NameOf(const NetworkEnd& end) {
  const std::string name =
      end.rank < 0 ? end.process : absl::StrCat("rank ", end.rank, " (", end.node, ")");
  return OnlyPrintable(name, '?');
}

std::string ReceiverOf(const NetworkLink& link) {
  return link.to.has_value() ? NameOf(*link.to) : OnlyPrintable(link.remote, '?');
}

std::string Direction(const NetworkLink& link) {
  return absl::StrCat("from ", NameOf(link.from), " to ", ReceiverOf(link));
}

std::string Amount(int64_t amount) {
  return amount < 0 ? "-" : Count(static_cast<uint64_t>(amount));
}

// Small shares are what matters here: "0.042 %".
std::string ShareText(std::optional<double> share) {
  constexpr double kSmall = 0.01;
  constexpr double kSmallest = 0.00001;
  if (!share.has_value()) return "-";
  if (*share == 0) return "0";
  if (*share < kSmallest) return "< 0.001 %";
  return *share < kSmall ? absl::StrFormat("%.2g %%", *share * 100)
                         : PercentOfPpm(static_cast<int64_t>(*share * kPpm));
}

std::string MsText(int64_t us) {
  constexpr double kUsPerMs = 1e3;
  return us < 0 ? "-" : absl::StrFormat("%.3g", static_cast<double>(us) / kUsPerMs);
}

std::string RetransmittedSentence(const NetworkLink& link) {
  const std::string text =
      absl::StrCat(ShareText(link.retransmitted_share()), " of the segments ", Direction(link),
                   " were retransmitted (", Amount(link.sums.retransmitted_segments), " of ",
                   Amount(link.sums.sent_segments), ")");
  const bool some_in_vain = link.sums.duplicates > 0;
  const std::string which =
      some_in_vain ? absl::StrCat(", ", Amount(link.sums.duplicates),
                                  " of them in vain, as the receiver reported; the others")
                   : ": they";
  if (link.window_full_share().value_or(0) < kWorthAWordShare) {
    return absl::StrCat(text, which, " were probably lost on the way");
  }
  return absl::StrCat(
      text, which,
      " were probably lost on the way, or dropped by the receiver, which had no room in ",
      ShareText(link.window_full_share()), " of the time in which data was under way");
}

std::string BufferShortSentence(const NetworkLink& link) {
  return absl::StrCat(
      "in ", ShareText(link.buffer_short_share()), " of the time in which data ", Direction(link),
      " was under way, the send buffer was too small to keep the connection busy (SO_SNDBUF, "
      "or net.ipv4.tcp_wmem of ",
      OnlyPrintable(link.from.node, '?'), ")");
}

std::string SlowPairSentence(const NetworkFinding& finding) {
  return absl::StrCat("the fastest round trip between ", OnlyPrintable(finding.link.from.node, '?'),
                      " and ", OnlyPrintable(finding.link.to->node, '?'), " took ",
                      MsText(finding.link.min_rtt_us), " ms; between other nodes ",
                      MsText(finding.usual_rtt_us), " ms is usual (the median of the pairs)");
}

std::string SentenceOf(const NetworkFinding& finding) {
  switch (finding.kind) {
    case Kind::kRetransmitted:
      return RetransmittedSentence(finding.link);
    case Kind::kBufferShort:
      return BufferShortSentence(finding.link);
    case Kind::kSlowPair:
      return SlowPairSentence(finding);
  }
  return "";
}

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kRetransmitted:
      return "retransmitted";
    case Kind::kBufferShort:
      return "send_buffer";
    case Kind::kSlowPair:
      return "slow_pair";
  }
  return "";
}

Json OrNullOf(int64_t amount) { return amount < 0 ? Json() : Json(amount); }

Json OfEnd(const NetworkEnd& end) {
  return {{"node", end.node}, {"process", end.process}, {"rank", end.rank}};
}

Json OfLink(const NetworkLink& link) {
  return {{"from", OfEnd(link.from)},
          {"to", link.to.has_value() ? OfEnd(*link.to) : Json()},
          {"remote", link.to.has_value() ? Json() : Json(link.remote)},
          {"connections", link.connections},
          {"sent_bytes", OrNullOf(link.sums.sent_bytes)},
          {"retransmitted_bytes", OrNullOf(link.sums.retransmitted_bytes)},
          {"sent_segments", OrNullOf(link.sums.sent_segments)},
          {"retransmitted_segments", OrNullOf(link.sums.retransmitted_segments)},
          {"duplicates", OrNullOf(link.sums.duplicates)},
          {"busy_us", OrNullOf(link.sums.busy_us)},
          {"window_full_us", OrNullOf(link.sums.window_full_us)},
          {"buffer_short_us", OrNullOf(link.sums.buffer_short_us)},
          {"min_rtt_us", OrNullOf(link.min_rtt_us)},
          {"median_rtt_us", OrNullOf(link.median_rtt_us)},
          {"unsent_bytes_most", OrNullOf(link.unsent_bytes_most)}};
}

}  // namespace

bool HasNetwork(const Report& report) { return !report.network.empty(); }

void NetworkInFull(Page* page) {
  const Report& report = page->report();
  Table table({Table::Names("from"),
               Table::Names("to"),
               {"bytes", Table::Align::kRight},
               {"retransmitted", Table::Align::kRight},
               {"RTT ms", Table::Align::kRight},
               {"window", Table::Align::kRight},
               {"buffer", Table::Align::kRight}});
  for (const NetworkLink& link : report.network) {
    table.Add({NameOf(link.from), ReceiverOf(link), Amount(link.sums.sent_bytes),
               ShareText(link.retransmitted_share()),
               absl::StrCat(MsText(link.min_rtt_us), " / ", MsText(link.median_rtt_us)),
               ShareText(link.window_full_share()), ShareText(link.buffer_short_share())});
  }
  page->Print(table);
  page->Line(
      "By the kernels' own counters of the job's TCP connections, from the reading before the "
      "window to the one behind it; \"-\": not known. bytes: with those that were "
      "retransmitted. retransmitted: of the segments with data. RTT, the round trip: the fastest "
      "of the last minutes, and the median of the kernel's smoothed ones. window, buffer: of the "
      "time in which data was under way, the part in which the receiver had no room for more (its "
      "program had not read yet, or its buffer is small), and in which the send buffer was too "
      "small.");
  for (const std::string& text : NetworkSentences(analysis::FindingsOf(report.network))) {
    page->Line(text);
  }
}

void NetworkInShort(Page* page) {
  const auto sentences = NetworkSentences(analysis::FindingsOf(page->report().network));
  if (!sentences.empty()) page->Item("Network", absl::StrJoin(sentences, "; "));
}

void NetworkInJson(const Report& report, Json* json) {
  Json links = Json::array();
  for (const NetworkLink& link : report.network) links.push_back(OfLink(link));
  (*json)["network"] = {{"links", std::move(links)},
                        {"findings", FindingsJson(analysis::FindingsOf(report.network))}};
}

std::vector<std::string> NetworkSentences(std::span<const NetworkFinding> findings) {
  std::vector<std::string> sentences;
  for (const Kind kind : {Kind::kRetransmitted, Kind::kBufferShort, Kind::kSlowPair}) {
    size_t said = 0;
    size_t more = 0;
    for (const NetworkFinding& finding : findings) {
      if (finding.kind != kind) continue;
      if (said == kNamed) {
        ++more;
        continue;
      }
      sentences.push_back(SentenceOf(finding));
      ++said;
    }
    if (more > 0) {
      sentences.back() += absl::StrCat("; likewise ", more, " more, less so");
    }
  }
  return sentences;
}

Json FindingsJson(std::span<const NetworkFinding> findings) {
  Json all = Json::array();
  for (const NetworkFinding& finding : findings) {
    Json one = {{"kind", KindName(finding.kind)}, {"text", SentenceOf(finding)}};
    one["link"] = OfLink(finding.link);
    one["usual_rtt_us"] = OrNullOf(finding.usual_rtt_us);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace syncline::report
