// SPDX-License-Identifier: Apache-2.0
#include "coordinator/merge/outputs.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/text.h"
#include "coordinator/merge/raw_clock.h"
#include "export/chrome/chrome_sink.h"
#include "export/parquet/parquet_sink.h"
#include "export/parquet/table_writer.h"
#include "export/perfetto/perfetto_sink.h"
#include "export/vtune/vtune_sink.h"

namespace syncline::merge {
namespace {

constexpr char kTimelineName[] = "timeline.perfetto-trace";
constexpr Format kFormats[] = {
    {"perfetto", "a timeline"},
    {"ctf", "copies of the traces with corrected times, one in ctf/ per node and trace"},
    {"chrome", "Kineto's JSON, a file per rank"},
    {"vtune", "experimental: a CSV per node for VTune's import"},
    {"parquet",
     "tables of spans, events, ... for DuckDB, Polars, Spark; needs Python with pyarrow"},
    {"flame", "files for flame graph viewers, of a recording with --samples"},
};

std::string HostnameOf(const timeline::NodeInput& node) {
  for (const TraceReader* reader : node.readers) {
    const auto hostname = reader->environment().find("hostname");
    if (hostname != reader->environment().end() && !hostname->second.empty()) {
      return hostname->second;
    }
  }
  return node.name;
}

// Which of its own clocks a node's file for VTune is in, and how to get there.
vtune::Node VtuneNode(const OpenedInputs& inputs, size_t index) {
  const timeline::NodeInput& node = inputs.nodes[index];
  timeline::Placement* const placement = node.placement;
  vtune::Node made{node.name, HostnameOf(node), vtune::Node::Clock::kMonotonicRaw,
                   RawClockOf(inputs, index)};
  if (made.clock_ns != nullptr) return made;
  made.clock = vtune::Node::Clock::kUtc;
  if (const std::optional<int64_t> offset_ns = inputs.facts[index].wall_offset_ns) {
    made.clock_ns = [placement, offset_ns](TimelineTime time) {
      return placement->ClockNs(time) + *offset_ns;
    };
  } else {
    made.clock_ns = [epoch_ns = inputs.epoch_unix_ns](TimelineTime time) {
      return epoch_ns + time.ns;
    };
  }
  return made;
}

}  // namespace

std::string VtuneFileName(const OpenedInputs& inputs, size_t node) {
  return vtune::CsvFileName(inputs.nodes[node].name, HostnameOf(inputs.nodes[node]));
}

unsigned ThreadsOf(unsigned asked) {
  const unsigned count = asked > 0 ? asked : std::thread::hardware_concurrency();
  return std::clamp(count, 1u, 64u);
}

std::span<const Format> Formats() { return kFormats; }

std::string FormatNames(std::string_view separator) {
  return absl::StrJoin(kFormats, AbslView(separator), [](std::string* out, const Format& format) {
    absl::StrAppend(out, format.name);
  });
}

absl::Status CheckFormats(const std::vector<std::string>& formats) {
  for (const std::string& format : formats) {
    const bool known = std::any_of(std::begin(kFormats), std::end(kFormats),
                                   [&](const Format& one) { return one.name == format; });
    if (known) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("unknown format '", format, "'; there are: ", FormatNames(", ")));
  }
  return absl::OkStatus();
}

bool Wants(const MergeOptions& options, std::string_view format) {
  return std::find(options.formats.begin(), options.formats.end(), format) != options.formats.end();
}

void Outputs::Add(std::string name, timeline::Interval shown,
                  std::unique_ptr<timeline::TimelineSink> sink) {
  files_.push_back(std::move(name));
  writers_.push_back(std::move(sink));
  cuts_.push_back(std::make_unique<timeline::CutSink>(shown, writers_.back().get()));
  pushed_to_.push_back(cuts_.back().get());
}

absl::Status Outputs::OpenPerfetto(const OpenedInputs& inputs, timeline::Interval shown,
                                   const std::filesystem::path& staging) {
  perfetto_file_ =
      std::make_unique<std::ofstream>(staging / kTimelineName, std::ios::binary | std::ios::trunc);
  if (!perfetto_file_->good()) {
    return ErrnoStatus(errno, absl::StrCat("cannot write in ", staging.string()));
  }
  const perfetto::Options perfetto{.epoch_unix_ns = inputs.epoch_unix_ns,
                                   .mark_zero = shown.Contains(TimelineTime{0})};
  Add(kTimelineName, shown,
      std::make_unique<perfetto::PerfettoSink>(perfetto_file_.get(), perfetto));
  return absl::OkStatus();
}

absl::Status Outputs::OpenParquet(const MergeOptions& options, const OpenedInputs& inputs,
                                  timeline::Interval shown, const std::filesystem::path& staging) {
  SYNCLINE_ASSIGN_OR_RETURN(
      tables_, parquet::TableWriter::Start({staging / "parquet", options.pythons,
                                            static_cast<int>(ThreadsOf(options.threads))}));
  parquet::Options parquet;
  for (const timeline::NodeInput& node : inputs.nodes) parquet.nodes.push_back(node.name);
  parquet.epoch_unix_ns = inputs.epoch_unix_ns;
  parquet.model = inputs.models().proven;
  Add("parquet", shown, std::make_unique<parquet::ParquetSink>(std::move(parquet), tables_.get()));
  return absl::OkStatus();
}

absl::StatusOr<Outputs> Outputs::Open(const MergeOptions& options, const OpenedInputs& inputs,
                                      timeline::Interval shown,
                                      const std::filesystem::path& staging) {
  Outputs outputs;
  if (Wants(options, "perfetto")) {
    SYNCLINE_RETURN_IF_ERROR(outputs.OpenPerfetto(inputs, shown, staging));
  }
  if (Wants(options, "chrome")) {
    outputs.Add("chrome", shown,
                std::make_unique<chrome::ChromeSink>(chrome::Options{
                    .directory = staging / "chrome", .epoch_unix_ns = inputs.epoch_unix_ns}));
  }
  if (Wants(options, "vtune")) {
    std::vector<vtune::Node> nodes;
    for (size_t i = 0; i < inputs.nodes.size(); ++i) nodes.push_back(VtuneNode(inputs, i));
    outputs.Add("vtune", shown,
                std::make_unique<vtune::VtuneSink>(staging / "vtune", std::move(nodes)));
  }
  if (Wants(options, "parquet")) {
    SYNCLINE_RETURN_IF_ERROR(outputs.OpenParquet(options, inputs, shown, staging));
  }
  return outputs;
}

absl::Status Outputs::Close() {
  if (perfetto_file_ == nullptr) return absl::OkStatus();
  perfetto_file_->close();
  if (!perfetto_file_->fail()) return absl::OkStatus();
  return absl::ResourceExhaustedError("cannot write the timeline: is the disk full?");
}

}  // namespace syncline::merge
