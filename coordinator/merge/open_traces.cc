#include "coordinator/merge/open_traces.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "ctf/reader.h"
#include "ctf/stream_summary.h"

namespace syncline::merge {

OpenedTraces OpenTraces(const std::filesystem::path& root) {
  OpenedTraces opened;
  const auto lose = [&](const std::filesystem::path& path, std::string_view why) {
    const std::string where = path.lexically_relative(root).string();
    Loss loss;
    loss.reason = LossReason::kUnreadable;
    loss.source = where == "." ? "trace" : where;
    loss.detail = why;
    opened.unreadable.push_back(
        {path, std::move(loss),
         absl::StrCat("left out, its data is kept: ", path.string(), ": ", AbslView(why))});
  };
  const auto found = ctf::FindTraces(root);
  if (!found.ok()) {
    lose(root, StdView(found.status().message()));
    return opened;
  }
  if (found->traces.empty() && found->unreadable.empty()) {
    lose(root, "no CTF trace in it (no metadata file)");
  }
  for (const auto& directory : found->unreadable) {
    lose(directory.directory, absl::StrCat("cannot be listed: ", directory.why));
  }
  for (const std::filesystem::path& trace : found->traces) {
    auto reader = ctf::OpenTrace(trace);
    if (!reader.ok()) {
      lose(trace, StdView(reader.status().message()));
    } else {
      opened.traces.push_back({trace, *std::move(reader)});
    }
  }
  return opened;
}

std::vector<std::string> ComplaintsOf(const TraceReader& reader) {
  std::vector<std::string> complaints;
  for (const Loss& loss : reader.losses()) {
    complaints.push_back(
        absl::StrCat(loss.source, ": ", LossReasonName(loss.reason), ": ", loss.detail));
  }
  return complaints;
}

std::optional<int64_t> WallOffset(std::span<TraceReader* const> readers) {
  for (const TraceReader* reader : readers) {
    if (reader->wall_clock_offset_ns().has_value()) return reader->wall_clock_offset_ns();
  }
  return std::nullopt;
}

std::optional<timeline::ClockInterval> ExtentOf(std::span<TraceReader* const> readers) {
  std::optional<timeline::ClockInterval> extent;
  for (const TraceReader* reader : readers) {
    for (const StreamInfo& stream : reader->streams()) {
      if (stream.begin_ns == 0 && stream.end_ns == 0) continue;
      if (!extent.has_value()) extent = timeline::ClockInterval{stream.begin_ns, stream.end_ns};
      extent->begin_ns = std::min(extent->begin_ns, stream.begin_ns);
      extent->end_ns = std::max(extent->end_ns, stream.end_ns);
    }
  }
  return extent;
}

std::unique_ptr<timeline::Placement> PlaceByWallClock(ClockId clock,
                                                      std::span<TraceReader* const> readers,
                                                      int64_t zero_unix_ns) {
  const std::optional<int64_t> offset = WallOffset(readers);
  if (offset.has_value()) return timeline::ShiftPlacement(clock, *offset - zero_unix_ns);
  // Nothing says what its clock meant: it begins where the timeline does.
  return timeline::ShiftPlacement(clock,
                                  -ExtentOf(readers).value_or(timeline::ClockInterval{}).begin_ns);
}

}  // namespace syncline::merge
