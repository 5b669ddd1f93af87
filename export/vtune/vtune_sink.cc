// SPDX-License-Identifier: Apache-2.0
#include "export/vtune/vtune_sink.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/utf8.h"

namespace syncline::vtune {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

std::string CsvName(std::string_view text) {
  return absl::StrReplaceAll(OnlyPrintable(text, ' '), {{",", ";"}, {"\"", "'"}});
}

void AppendTime(const Node& node, TimelineTime time, std::string* out) {
  const int64_t clock_ns = node.clock_ns(time);
  if (node.clock == Node::Clock::kUtc) {
    out->append(UtcText(clock_ns));
  } else {
    absl::StrAppend(out, clock_ns);
  }
}

// Of a process: not the job's collectives, which have no node.
bool IsFrames(std::string_view track) {
  return track == "frames" || track == "overlapped tasks" || track == "user events";
}

// What VTune shows as its duration is another one.
const char* Remark(const timeline::Span& span) {
  if (span.suspect) return " (events were lost)";
  return span.clipped_begin || span.clipped_end ? " (cut)" : "";
}

}  // namespace

std::string CsvFileName(const std::string& node, const std::string& hostname) {
  return FileNameOf(absl::StrCat(node, "-hostname-", hostname, ".csv"));
}

std::string UtcText(int64_t unix_ns) {
  const auto seconds = static_cast<uint64_t>(std::max<int64_t>(0, unix_ns) / kSecondNs);
  const std::chrono::sys_days day{std::chrono::days(seconds / 86400)};
  const std::chrono::year_month_day date(day);
  return absl::StrFormat("%04d-%02d-%02d %02d:%02d:%02d.%09d", static_cast<int>(date.year()),
                         static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                         seconds / 3600 % 24, seconds / 60 % 60, seconds % 60,
                         std::max<int64_t>(0, unix_ns) % kSecondNs);
}

VtuneSink::VtuneSink(const std::filesystem::path& directory, std::vector<Node> nodes)
    : nodes_(std::move(nodes)) {
  for (const Node& node : nodes_) {
    files_.push_back(
        std::make_unique<OutputFile>(directory / CsvFileName(node.name, node.hostname)));
    absl::StrAppend(files_.back()->buffer(), "name,start_tsc.",
                    node.clock == Node::Clock::kUtc ? "UTC" : "CLOCK_MONOTONIC_RAW",
                    ",end_tsc,pid,tid\n");
  }
}

void VtuneSink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = CsvName(text);
}

void VtuneSink::OnTrack(const timeline::Track& track) {
  if (tracks_.size() <= track.id) tracks_.resize(track.id + 1);
  KnownTrack& known = tracks_[track.id];
  known.node = track.node;
  if (track.kind == timeline::TrackKind::kThread && track.process.pid > 0 && track.tid > 0) {
    known.shown = true;
    known.owner = absl::StrCat(track.process.pid, ",", track.tid);
  } else if (track.kind == timeline::TrackKind::kThread ||
             (track.kind == timeline::TrackKind::kAsync && IsFrames(track.name))) {
    known.shown = true;
    known.owner.assign(1, ',');  // gcc 12 warns of `= ","` without reason
  }
}

void VtuneSink::OnSpanEnd(const timeline::Span& span) {
  const KnownTrack& track = tracks_[span.track];
  if (!track.shown || track.node >= nodes_.size()) return;
  OutputFile& file = *files_[track.node];
  std::string* out = file.buffer();
  absl::StrAppend(out, texts_[span.name], Remark(span), ",");
  AppendTime(nodes_[track.node], span.begin, out);
  out->push_back(',');
  AppendTime(nodes_[track.node], span.end, out);
  absl::StrAppend(out, ",", track.owner, "\n");
  file.Written();
}

absl::Status VtuneSink::Finish() {
  absl::Status first;
  for (const std::unique_ptr<OutputFile>& file : files_) {
    const absl::Status status = file->Close();
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace syncline::vtune
