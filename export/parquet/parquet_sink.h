// SPDX-License-Identifier: Apache-2.0
// The timeline as Parquet tables for DuckDB, Polars, pandas, Spark, ClickHouse, ...: one directory
// per table, partitioned by node as Hive does it.
//
//   spans/node=NAME/part-0.parquet      track, name, category, depth, begin_ns, end_ns, self_ns,
//                                       bound_lo_ns, bound_hi_ns, clipped_begin, clipped_end,
//                                       suspect, arguments
//   instants/node=NAME/...              track, name, category, time_ns, bounds, arguments
//   counters/node=NAME/...              track, time_ns, value
//   samples/node=NAME/...               track, time_ns, bounds, period_ns, function, library, file,
//                                       line, in_kernel, stack: of recordings with --samples
//   scheduling/node=NAME/...            track, state, begin_ns, end_ns, bounds, clipped_begin,
//                                       clipped_end, cpu, waker, had_cpu: of recordings with
//                                       --scheduling
//   holes/node=NAME/...                 track, begin_ns, end_ns, reason, count, source, detail
//   clock_bounds/node=NAME/...          time_ns, bound_ns
//   clock_events/node=NAME/...          begin_ns, end_ns, name, text: steps, sleeps, gaps, ...
//   names/node=NAME/...                 name, category, spans, total_ns: what spans are called
//   events/node=NAME/...                every event as it was recorded: event_table.h
//   flows/, tracks/, processes/, nodes/ not partitioned; so are partitions/, partition_nodes/,
//   partition_graphs/, collective_groups/ and collectives/: job_tables.h
//
// Times are int64 ns on the timeline. The truth of a time lies in [t - bound_lo_ns, t +
// bound_hi_ns], null where that is unknown; of a span that is so for both its ends. As distances
// they hardly take room; lo itself would take as much as the time. They are a little wider than the
// model knows: clocksync/reach.h. `arguments` is a JSON object, and so is
// `had_cpu`: who had the CPU while the thread was ready, and how long of all of that wait, ns.
// A large table goes to four files by turns, so that they can be written side by side.
//
// The same calls give the same bytes, with one version of pyarrow. Memory: a batch of rows per
// table, and what the writer has waiting. Thread-safety: one thread.
#ifndef SYNCLINE_EXPORT_PARQUET_PARQUET_SINK_H_
#define SYNCLINE_EXPORT_PARQUET_PARQUET_SINK_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "export/parquet/partition.h"
#include "export/parquet/reach.h"
#include "export/parquet/table.h"
#include "export/parquet/table_writer.h"
#include "timeline/sink.h"

namespace syncline::parquet {

struct Options {
  std::vector<std::string> nodes;                // their names
  int64_t epoch_unix_ns = 0;                     // of timeline zero; 0: unknown
  const clocksync::ClockModel* model = nullptr;  // for bounds; outlives the sink
};

class ParquetSink final : public timeline::TimelineSink {
 public:
  // `writer` outlives this; what goes wrong in writing, its Finish() says.
  ParquetSink(Options options, TableWriter* writer);

  void OnText(timeline::TextId id, std::string_view text) override;
  void OnTrack(const timeline::Track& track) override;
  void OnSpanBegin(const timeline::Span&) override {}
  void OnSpanEnd(const timeline::Span& span) override;
  void OnInstant(const timeline::Instant& instant) override;
  void OnCounter(const timeline::CounterValue& value) override;
  void OnCodeSample(const timeline::CodeSample& sample) override;
  void OnThreadState(const timeline::ThreadState& state) override;
  void OnFlow(const timeline::Flow& flow) override;
  void OnHole(const timeline::Hole& hole) override;
  void OnClockBound(const timeline::ClockBound& bound) override;
  void OnClockEvent(const timeline::ClockEvent& event) override;
  absl::Status Finish() override;

 private:
  struct Node {
    Partition spans;
    Partition instants;
    Partition counters;
    Partition samples;
    Partition scheduling;
    Partition holes;
    Partition clock_bounds;
    Partition clock_events;
    Partition names;
    struct Use {
      timeline::TextId name = timeline::kNoText;
      timeline::TextId category = timeline::kNoText;
      uint64_t spans = 0;
      int64_t total_ns = 0;
    };
    std::vector<Use> uses;
    absl::flat_hash_map<uint64_t, uint32_t> use_of;  // their places, by name << 32 | category
    std::array<uint32_t, 256> recent_uses{};         // some of these, by the name's last bits
    Use& UseOf(timeline::TextId name, timeline::TextId category);
  };

  Node& NodeOf(timeline::TrackId track) { return nodes_[node_of_track_[track]]; }
  void PutArguments(const std::vector<timeline::Argument>& arguments, Column* column);
  void Added(Partition* partition) { partition->Added(writer_, texts_); }
  void AddNames(Node* node);

  Options options_;
  clocksync::ReachFinder reach_;
  TableWriter* writer_;
  std::vector<std::string> texts_{""};
  std::vector<Node> nodes_;
  std::vector<uint32_t> node_of_track_;  // by id
  std::vector<timeline::TrackId> process_of_track_;
  Partition flows_;
  Partition tracks_;
  Partition processes_;
  Partition node_table_;
  std::string text_;  // what a row at hand says as text
};

}  // namespace syncline::parquet

#endif  // SYNCLINE_EXPORT_PARQUET_PARQUET_SINK_H_
