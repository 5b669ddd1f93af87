// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/shards.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/duration_text.h"
#include "common/files.h"
#include "common/status.h"
#include "export/perfetto/perfetto_sink.h"
#include "timeline/cut_sink.h"
#include "timeline/overview_sink.h"
#include "timeline/window_sink.h"

namespace syncline::merge {
namespace {

constexpr int64_t kPixels = 20'000;   // of the overview: shorter spans could not be seen
constexpr uint64_t kShardsMax = 500;  // each is an open file
constexpr int kTriesMax = 4;

struct File {
  std::ofstream out;
  std::unique_ptr<perfetto::PerfettoSink> sink;
};

absl::StatusOr<std::unique_ptr<File>> OpenFile(const std::filesystem::path& path,
                                               const perfetto::Options& options) {
  auto file = std::make_unique<File>();
  file->out.open(path, std::ios::binary | std::ios::trunc);
  if (!file->out.good()) {
    return ErrnoStatus(errno, absl::StrCat("cannot write ", path.string()));
  }
  file->sink = std::make_unique<perfetto::PerfettoSink>(&file->out, options);
  return file;
}

absl::StatusOr<Shards> WriteWindows(uint64_t count, const OpenedInputs& inputs,
                                    const timeline::BuildOptions& build, timeline::Interval covered,
                                    const std::filesystem::path& staging) {
  SYNCLINE_RETURN_IF_ERROR(MakeDirectories(staging / "timeline"));
  Shards shards;
  std::vector<std::unique_ptr<File>> files;
  std::vector<timeline::TimelineSink*> windows;
  const int64_t length_ns = (covered.end.ns - covered.begin.ns) / static_cast<int64_t>(count);
  for (uint64_t i = 0; i < count; ++i) {
    shards.files.push_back(absl::StrFormat("timeline/%03d.perfetto-trace", i + 1));
    const timeline::Interval window{{covered.begin.ns + static_cast<int64_t>(i) * length_ns},
                                    {covered.begin.ns + static_cast<int64_t>(i + 1) * length_ns}};
    SYNCLINE_ASSIGN_OR_RETURN(auto file, OpenFile(staging / shards.files.back(),
                                                  {.epoch_unix_ns = inputs.epoch_unix_ns,
                                                   .mark_zero = window.Contains(TimelineTime{0})}));
    windows.push_back(file->sink.get());
    files.push_back(std::move(file));
  }
  SYNCLINE_ASSIGN_OR_RETURN(auto whole,
                            OpenFile(staging / "timeline.perfetto-trace",
                                     {.epoch_unix_ns = inputs.epoch_unix_ns,
                                      .mark_zero = build.shown.Contains(TimelineTime{0})}));
  const int64_t shortest_ns = (covered.end.ns - covered.begin.ns) / kPixels;
  timeline::OverviewSink overview(shortest_ns, whole->sink.get());
  timeline::WindowSink window(covered, windows);
  timeline::CutSink cut_overview(build.shown, &overview);
  timeline::CutSink cut_window(build.shown, &window);
  timeline::TimelineSink* const sinks[] = {&cut_overview, &cut_window};
  SYNCLINE_RETURN_IF_ERROR(timeline::BuildTimeline(inputs.nodes, build, sinks).status());
  files.push_back(std::move(whole));
  for (const std::unique_ptr<File>& file : files) {
    file->out.close();
    if (file->out.fail()) {
      return absl::ResourceExhaustedError("cannot write the timeline: is the disk full?");
    }
  }
  for (const std::string& name : shards.files) {
    shards.largest_bytes =
        std::max<uint64_t>(shards.largest_bytes, std::filesystem::file_size(staging / name));
  }
  shards.note = absl::StrCat(
      "the timeline is larger than a viewer can load: timeline.perfetto-trace shows what lasts ",
      DurationText(shortest_ns), " or longer, the ", count,
      " files in timeline/ contain everything except arrows between files, ",
      DurationText(length_ns), " each");
  return shards;
}

}  // namespace

absl::StatusOr<Shards> WriteShards(const MergeOptions& options, const OpenedInputs& inputs,
                                   const timeline::BuildOptions& build, timeline::Interval covered,
                                   uint64_t bytes, const std::filesystem::path& staging) {
  const uint64_t limit = std::max<uint64_t>(1, options.perfetto_bytes_max);
  uint64_t count = std::clamp<uint64_t>(bytes / limit + 1, 2, kShardsMax);
  for (int tries = 1;; ++tries) {
    SYNCLINE_ASSIGN_OR_RETURN(Shards shards, WriteWindows(count, inputs, build, covered, staging));
    if (shards.largest_bytes <= limit || count == kShardsMax || tries == kTriesMax) return shards;
    // Windows are of equal length, not of equal size; the files of this try are written over.
    count = std::min(count * (shards.largest_bytes / limit + 1), kShardsMax);
  }
}

}  // namespace syncline::merge
