// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/record_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/duration_text.h"
#include "coordinator/cli/parse.h"
#include "coordinator/cli/process_text.h"
#include "coordinator/cli/terminal.h"
#include "coordinator/record/translate.h"

namespace syncline::cli {
namespace {

// More nodes than this are shown as sums.
constexpr size_t kLinesMax = 12;
constexpr int64_t kFetchPeriodNs = 200'000'000;

std::string CounterText(const record::NodeCounters& node) {
  if (!node.reachable) return "no answer";
  std::string text = absl::StrCat(StateName(node.state), "  ", FormatCount(node.events),
                                  " events  ", FormatSize(node.bytes), "  ", node.processes,
                                  node.processes == 1 ? " process" : " processes");
  if (node.lost > 0) absl::StrAppend(&text, "  ", FormatCount(node.lost), " lost");
  return text;
}

// How large the traces will be if the rest of the window is as what has been; empty: too early to
// say, or not known how long it lasts. What still lies in buffers is not counted.
std::string ExpectedText(int64_t elapsed_ns, int64_t window_ns,
                         std::span<const record::NodeCounters> counters) {
  constexpr int64_t kEarlyNs = 1'000'000'000;
  uint64_t bytes = 0;
  for (const record::NodeCounters& node : counters) bytes += node.bytes;
  if (bytes == 0 || elapsed_ns < kEarlyNs || elapsed_ns >= window_ns) return "";
  const double parts = static_cast<double>(window_ns) / static_cast<double>(elapsed_ns);
  return absl::StrCat("  about ",
                      FormatSize(static_cast<uint64_t>(static_cast<double>(bytes) * parts)),
                      " of traces in the end, at this rate");
}

}  // namespace

void RecordView::ShowBlock(const std::string& lines) {
  std::ostream& err = *context_.err;
  // Back to the block's first line, then down again, clearing as it goes; not on a file, where each
  // block stays as it is.
  if (block_lines_ > 0 && context_.err_is_terminal) err << "\x1b[" << block_lines_ << "A\x1b[J";
  err << lines << std::flush;
  block_lines_ = static_cast<int>(std::count(lines.begin(), lines.end(), '\n'));
}

void RecordView::EndBlock() { block_lines_ = 0; }

void RecordView::OnPhase(std::string_view what) {
  if (!context_.ShowProgress()) return;
  EndBlock();
  *context_.err << Styled(what, Style::kBold, context_.ColourErr()) << " ...\n" << std::flush;
}

void RecordView::OnNode(const std::string& node, const v1::DescribeResponse& description) {
  EndBlock();
  if (!context_.quiet) {
    std::vector<v1::ProcessInfo> traced;
    for (const v1::ProcessInfo& process : description.processes()) {
      if (process.has_control_block()) traced.push_back(process);
    }
    for (const std::string& text : ProcessTexts(traced)) {
      *context_.err << "  " << node << ": " << text << '\n';
    }
    if (traced.empty()) *context_.err << "  " << node << ": no process to trace yet\n";
  }
  for (const v1::Complaint& complaint : description.complaints()) {
    const recording::ComplaintRecord record = record::FromComplaint(complaint);
    // Blockers end the recording, or the node's part in it, and are said there.
    if (record.severity != "blocker") {
      PrintNote(context_, record.severity, node, record.what, record.fix);
    }
  }
}

void RecordView::OnNote(std::string_view severity, const std::string& node, std::string_view what,
                        std::string_view fix) {
  EndBlock();
  PrintNote(context_, severity, node, what, fix);
}

void RecordView::OnCounters(int64_t elapsed_ns, std::span<const record::NodeCounters> counters) {
  if (!context_.ShowProgress()) return;
  std::string lines = absl::StrCat("  ", DurationText(std::max<int64_t>(0, elapsed_ns)));
  absl::StrAppend(&lines, window_ns_ > 0 ? absl::StrCat(" of ", DurationText(window_ns_))
                                         : std::string("  (Ctrl-C ends it and keeps everything)"));
  absl::StrAppend(&lines, ExpectedText(elapsed_ns, window_ns_, counters), "\n");
  if (counters.size() <= kLinesMax) {
    size_t width = 0;
    for (const record::NodeCounters& node : counters) width = std::max(width, node.node.size());
    for (const record::NodeCounters& node : counters) {
      absl::StrAppendFormat(&lines, "  %-*s  %s\n", static_cast<int>(width), node.node,
                            CounterText(node));
    }
  } else {
    record::NodeCounters sum;
    size_t reachable = 0;
    for (const record::NodeCounters& node : counters) {
      reachable += node.reachable ? 1 : 0;
      sum.events += node.events;
      sum.bytes += node.bytes;
      sum.lost += node.lost;
    }
    absl::StrAppend(&lines, "  ", reachable, " of ", counters.size(), " nodes answer  ",
                    FormatCount(sum.events), " events  ", FormatSize(sum.bytes), "  ",
                    FormatCount(sum.lost), " lost\n");
  }
  ShowBlock(lines);
}

void RecordView::OnFetched(const std::string& node, uint64_t done_bytes, uint64_t total_bytes) {
  fetched_[node] = {done_bytes, total_bytes};
  if (!context_.ShowProgress()) return;
  const int64_t now_ns = context_.clock->RawNs();
  if (done_bytes < total_bytes && now_ns - fetch_shown_ns_ < kFetchPeriodNs) return;
  fetch_shown_ns_ = now_ns;
  uint64_t done = 0;
  uint64_t total = 0;
  for (const auto& [name, bytes] : fetched_) {
    done += bytes.first;
    total += bytes.second;
  }
  ShowBlock(absl::StrCat("  ", FormatSize(done), " of ", FormatSize(total), " from ",
                         fetched_.size(), fetched_.size() == 1 ? " node\n" : " nodes\n"));
}

}  // namespace syncline::cli
