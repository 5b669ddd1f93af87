// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/open_traces.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "ctf/byte_source.h"
#include "ctf/reader.h"
#include "ctf/stream_chain.h"
#include "ctf/stream_summary.h"

namespace syncline::merge {
namespace {

bool SameBytes(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto first = ctf::FileReader::Open(a);
  const auto second = ctf::FileReader::Open(b);
  if (!first.ok() || !second.ok() || (*first)->size() != (*second)->size()) return false;
  constexpr size_t kChunk = size_t{1} << 20;
  for (uint64_t at = 0; at < (*first)->size(); at += kChunk) {
    const auto left = (*first)->Read(at, kChunk);
    const auto right = (*second)->Read(at, kChunk);
    if (!left.ok() || !right.ok() || !std::ranges::equal(*left, *right)) return false;
  }
  return true;
}

}  // namespace

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
         absl::StrCat("skipped, its data is kept: ", path.string(), ": ", AbslView(why))});
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
  opened.links = found->links;
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

std::vector<std::string> DropCopies(std::vector<OpenedTrace>* traces) {
  // Two streams that begin and end in the same nanoseconds, on one CPU, with as many packets, may
  // be one: with coarse clocks, or without any, others are like that, too.
  using Stream = std::tuple<std::string, uint32_t, int64_t, int64_t, uint64_t>;
  std::multimap<Stream, std::filesystem::path> seen;
  std::vector<std::string> dropped;
  const auto is_copy = [&](const OpenedTrace& trace) {
    std::map<Stream, std::filesystem::path> own;
    for (const StreamInfo& stream : trace.reader->streams()) {
      if (stream.packets == 0) continue;
      own[{stream.name, stream.cpu.value_or(0), stream.begin_ns, stream.end_ns, stream.packets}] =
          trace.path;
    }
    std::filesystem::path copied;
    const auto known = [&](const auto& stream) {
      const std::string& name = std::get<std::string>(stream.first);
      const auto [begin, end] = seen.equal_range(stream.first);
      const auto original = std::find_if(begin, end, [&](const auto& other) {
        return SameBytes(stream.second / name, other.second / name);
      });
      if (original != end) copied = original->second;
      return original != end;
    };
    if (own.empty() || !std::all_of(own.begin(), own.end(), known)) {
      seen.insert(own.begin(), own.end());
      return false;
    }
    dropped.push_back(
        absl::StrCat(trace.path.string(), " is skipped: it is a copy of ", copied.string()));
    return true;
  };
  std::erase_if(*traces, is_copy);
  return dropped;
}

ChainedTraces ChainTraces(const std::vector<OpenedTrace>& traces) {
  std::vector<TraceReader*> readers;
  for (const OpenedTrace& trace : traces) readers.push_back(trace.reader.get());
  ChainedTraces chained;
  for (const ctf::Again& again : ctf::ChainStreams(readers)) {
    const auto trace = std::find_if(traces.begin(), traces.end(), [&again](const auto& one) {
      return one.reader.get() == again.reader;
    });
    const std::string name = (trace->path / again.reader->streams()[again.stream].name).string();
    chained.notes.push_back(absl::StrCat(name, ": ", again.packets,
                                         again.packets == 1 ? " packet is" : " packets are",
                                         " in another file, too, and read once"));
    if (again.different == 0) continue;
    chained.complaints.push_back(absl::StrCat(
        name, ": ", again.different, again.different == 1 ? " packet has" : " packets have",
        " the number of one in another file that differs (damaged, or cut?): both are "
        "read, and events may be there twice"));
  }
  const ctf::LateBegins late = ctf::FindLateBegins(readers);
  chained.begins_late = late.writers > 0;
  if (chained.begins_late) {
    chained.notes.push_back(absl::StrCat(
        "by their numbers, ", late.packets, late.packets == 1 ? " packet" : " packets",
        " came before the first of ", late.writers, late.writers == 1 ? " stream" : " streams",
        ": overwritten, cut off, or in another trace"));
  }
  return chained;
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
