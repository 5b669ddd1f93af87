// SPDX-License-Identifier: Apache-2.0
#include "export/parquet/parquet_sink.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/text.h"
#include "export/text/arguments_json.h"
#include "export/text/json_text.h"

namespace syncline::parquet {
namespace {

using enum ColumnType;

constexpr std::string_view kKernel = "[kernel]";  // as CodeFrame::library

const char* KindName(timeline::TrackKind kind) {
  switch (kind) {
    case timeline::TrackKind::kNode:
      return "node";
    case timeline::TrackKind::kFleet:
      return "fleet";
    case timeline::TrackKind::kProcess:
      return "process";
    case timeline::TrackKind::kThread:
      return "thread";
    case timeline::TrackKind::kAsync:
      return "async";
    case timeline::TrackKind::kCounter:
      return "counter";
    case timeline::TrackKind::kGroup:
      return "group";
    case timeline::TrackKind::kLane:
      return "lane";
  }
  return "";
}

std::string_view FactOf(const timeline::Track& track, std::string_view key) {
  for (const auto& [name, value] : track.facts) {
    if (name == key) return value;
  }
  return {};
}

void PutFact(const timeline::Track& track, std::string_view key, Column* column) {
  const std::string_view fact = FactOf(track, key);
  fact.empty() ? column->Null() : column->Text(fact);
}

void PutNumber(const timeline::Track& track, std::string_view key, Column* column) {
  int64_t number = 0;
  absl::SimpleAtoi(AbslView(FactOf(track, key)), &number) ? column->Int(number) : column->Null();
}

Table MakeTable(std::string name, std::vector<Column> columns) {
  return {std::move(name), std::move(columns)};
}

Table SpanTable() {
  return MakeTable("spans", {{"track", kInt32},
                             {"name", kName},
                             {"category", kName},
                             {"depth", kInt32},
                             {"begin_ns", kInt64},
                             {"end_ns", kInt64},
                             {"self_ns", kInt64},
                             {"bound_lo_ns", kInt64, Column::kSometimes},
                             {"bound_hi_ns", kInt64, Column::kSometimes},
                             {"clipped_begin", kBool},
                             {"clipped_end", kBool},
                             {"suspect", kBool},
                             {"arguments", kText, Column::kSometimes}});
}

Table InstantTable() {
  return MakeTable("instants", {{"track", kInt32},
                                {"name", kName},
                                {"category", kName},
                                {"time_ns", kInt64},
                                {"bound_lo_ns", kInt64, Column::kSometimes},
                                {"bound_hi_ns", kInt64, Column::kSometimes},
                                {"arguments", kText, Column::kSometimes}});
}

// A row each time that a thread had used `period_ns` more of processor time: what ran, and in
// `stack` what had called it, as far as that is known, the outermost first, with ";" between.
Table SampleTable() {
  return MakeTable("samples", {{"track", kInt32},
                               {"time_ns", kInt64},
                               {"bound_lo_ns", kInt64, Column::kSometimes},
                               {"bound_hi_ns", kInt64, Column::kSometimes},
                               {"period_ns", kInt64},
                               {"function", kName},
                               {"library", kName},
                               {"file", kName},
                               {"line", kInt32, Column::kSometimes},
                               {"in_kernel", kBool},
                               {"stack", kText}});
}

// A row for each stretch in which a thread did one thing: "running", "ready", "asleep", ...
Table SchedulingTable() {
  return MakeTable("scheduling", {{"track", kInt32},
                                  {"state", kText},
                                  {"begin_ns", kInt64},
                                  {"end_ns", kInt64},
                                  {"bound_lo_ns", kInt64, Column::kSometimes},
                                  {"bound_hi_ns", kInt64, Column::kSometimes},
                                  {"clipped_begin", kBool},
                                  {"clipped_end", kBool},
                                  {"cpu", kInt32, Column::kSometimes},
                                  {"waker", kName},
                                  {"had_cpu", kText, Column::kSometimes}});
}

const char* StateName(timeline::ThreadState::State state) {
  using enum timeline::ThreadState::State;
  switch (state) {
    case kRunning:
      return "running";
    case kReady:
      return "ready";
    case kUninterruptible:
      return "uninterruptible";
    case kStopped:
      return "stopped";
    case kAsleep:
      return "asleep";
  }
  return "";
}

Table HoleTable() {
  return MakeTable("holes", {{"track", kInt32},
                             {"begin_ns", kInt64},
                             {"end_ns", kInt64},
                             {"reason", kText},
                             {"count", kInt64, Column::kSometimes},
                             {"source", kText},
                             {"detail", kText}});
}

Table TrackTable() {
  return MakeTable("tracks", {{"track", kInt32},
                              {"parent", kInt32, Column::kSometimes},
                              {"process", kInt32, Column::kSometimes},
                              {"kind", kText},
                              {"name", kText},
                              {"node", kText},
                              {"tid", kInt32, Column::kSometimes},
                              {"unit", kText, Column::kSometimes}});
}

Table ProcessTable() {
  return MakeTable("processes", {{"track", kInt32},
                                 {"name", kText},
                                 {"node", kText},
                                 {"pid", kInt32, Column::kSometimes},
                                 {"pid_namespace", kInt64, Column::kSometimes},
                                 {"start_ticks", kInt64, Column::kSometimes},
                                 {"job", kText, Column::kSometimes},
                                 {"incarnation", kText, Column::kSometimes},
                                 {"rank", kInt32, Column::kSometimes},
                                 {"world_size", kInt32, Column::kSometimes},
                                 {"role", kText, Column::kSometimes},
                                 {"part", kText, Column::kSometimes},
                                 {"command_line", kText, Column::kSometimes}});
}

Table FlowTable() {
  return MakeTable("flows", {{"flow", kInt64},
                             {"from_track", kInt32},
                             {"to_track", kInt32},
                             {"sent_ns", kInt64},
                             {"received_ns", kInt64},
                             {"name", kName}});
}

}  // namespace

ParquetSink::ParquetSink(Options options, TableWriter* writer)
    : options_(std::move(options)), reach_(options_.model), writer_(writer) {
  for (const std::string& name : options_.nodes) {
    const auto make = [&](Table table) {
      return Partition(std::move(table), name, options_.nodes.size());
    };
    Node& node = nodes_.emplace_back();
    node.spans = make(SpanTable());
    node.instants = make(InstantTable());
    node.counters =
        make(MakeTable("counters", {{"track", kInt32}, {"time_ns", kInt64}, {"value", kDouble}}));
    node.samples = make(SampleTable());
    node.scheduling = make(SchedulingTable());
    node.holes = make(HoleTable());
    node.clock_bounds = make(
        MakeTable("clock_bounds", {{"time_ns", kInt64}, {"bound_ns", kInt64, Column::kSometimes}}));
    node.clock_events = make(
        MakeTable("clock_events",
                  {{"begin_ns", kInt64}, {"end_ns", kInt64}, {"name", kText}, {"text", kText}}));
    node.names = make(MakeTable(
        "names", {{"name", kName}, {"category", kName}, {"spans", kInt64}, {"total_ns", kInt64}}));
  }
  flows_ = Partition(FlowTable());
  tracks_ = Partition(TrackTable());
  processes_ = Partition(ProcessTable());
  node_table_ = Partition(MakeTable("nodes", {{"node", kText},
                                              {"track", kInt32},
                                              {"address", kText, Column::kSometimes},
                                              {"role", kText, Column::kSometimes},
                                              {"state", kText, Column::kSometimes},
                                              {"epoch_unix_ns", kInt64, Column::kSometimes}}));
}

void ParquetSink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = text;
}

void ParquetSink::OnTrack(const timeline::Track& track) {
  if (node_of_track_.size() <= track.id) {
    node_of_track_.resize(track.id + 1);
    process_of_track_.resize(track.id + 1, timeline::kNoTrack);
  }
  node_of_track_[track.id] =
      std::min<uint32_t>(track.node, static_cast<uint32_t>(nodes_.size()) - 1);
  const bool top = track.parent == timeline::kNoTrack;
  const bool is_process = track.kind == timeline::TrackKind::kProcess;
  if (is_process) {
    process_of_track_[track.id] = track.id;
  } else if (!top) {
    process_of_track_[track.id] = process_of_track_[track.parent];
  }
  const std::string& node = options_.nodes[node_of_track_[track.id]];
  auto row = tracks_.row().begin();
  (row++)->Int(track.id);
  top ? (row++)->Null() : (row++)->Int(track.parent);
  const timeline::TrackId process = process_of_track_[track.id];
  process == timeline::kNoTrack ? (row++)->Null() : (row++)->Int(process);
  (row++)->Text(KindName(track.kind));
  (row++)->Text(track.name);
  (row++)->Text(node);
  track.tid == 0 ? (row++)->Null() : (row++)->Int(track.tid);
  track.unit.empty() ? (row++)->Null() : (row++)->Text(track.unit);
  Added(&tracks_);
  if (is_process) {
    row = processes_.row().begin();
    (row++)->Int(track.id);
    (row++)->Text(track.name);
    (row++)->Text(node);
    for (const char* key : {"pid", "pid namespace", "start ticks"}) PutNumber(track, key, &*row++);
    for (const char* key : {"job", "incarnation"}) PutFact(track, key, &*row++);
    for (const char* key : {"rank", "world size"}) PutNumber(track, key, &*row++);
    for (const char* key : {"role", "part", "command line"}) PutFact(track, key, &*row++);
    Added(&processes_);
  } else if (track.kind == timeline::TrackKind::kNode) {
    row = node_table_.row().begin();
    (row++)->Text(track.name);
    (row++)->Int(track.id);
    for (const char* key : {"address", "role", "state"}) PutFact(track, key, &*row++);
    options_.epoch_unix_ns == 0 ? (row++)->Null() : (row++)->Int(options_.epoch_unix_ns);
    Added(&node_table_);
  }
}

void ParquetSink::PutArguments(const std::vector<timeline::Argument>& arguments, Column* column) {
  if (arguments.empty()) return column->Null();
  text_ = "{";
  const auto put_text = [this](timeline::TextId text, std::string* out) {
    text::AppendJsonString(texts_[text], out);
  };
  text::AppendArgumentsJson(arguments, put_text, &text_);
  text_.push_back('}');
  column->Text(text_);
}

ParquetSink::Node::Use& ParquetSink::Node::UseOf(timeline::TextId name, timeline::TextId category) {
  uint32_t& place = recent_uses[name % recent_uses.size()];
  const bool is_recent =
      place < uses.size() && uses[place].name == name && uses[place].category == category;
  if (!is_recent) {
    const auto [known, is_new] =
        use_of.try_emplace(uint64_t{name} << 32 | category, static_cast<uint32_t>(uses.size()));
    if (is_new) uses.push_back({name, category});
    place = known->second;
  }
  return uses[place];
}

void ParquetSink::OnSpanEnd(const timeline::Span& span) {
  Node& node = NodeOf(span.track);
  std::vector<Column>& row = node.spans.row();
  row[0].Int(span.track);
  row[1].Name(span.name);
  row[2].Name(span.category);
  row[3].Int(span.depth);
  row[4].Int(span.begin.ns);
  row[5].Int(span.end.ns);
  row[6].Int(span.self_ns);
  PutReach(Widest(reach_.At(span.node_begin), reach_.At(span.node_end)), &row[7], &row[8]);
  row[9].Bool(span.clipped_begin);
  row[10].Bool(span.clipped_end);
  row[11].Bool(span.suspect);
  PutArguments(span.arguments, &row[12]);
  Node::Use& use = node.UseOf(span.name, span.category);
  ++use.spans;
  use.total_ns += span.end.ns - span.begin.ns;
  Added(&node.spans);
}

void ParquetSink::OnInstant(const timeline::Instant& instant) {
  Node& node = NodeOf(instant.track);
  std::vector<Column>& row = node.instants.row();
  row[0].Int(instant.track);
  row[1].Name(instant.name);
  row[2].Name(instant.category);
  row[3].Int(instant.time.ns);
  PutReach(reach_.At(instant.node_time), &row[4], &row[5]);
  PutArguments(instant.arguments, &row[6]);
  Added(&node.instants);
}

void ParquetSink::OnCounter(const timeline::CounterValue& value) {
  Node& node = NodeOf(value.track);
  std::vector<Column>& row = node.counters.row();
  row[0].Int(value.track);
  row[1].Int(value.time.ns);
  row[2].Real(value.value);
  Added(&node.counters);
}

void ParquetSink::OnCodeSample(const timeline::CodeSample& sample) {
  Node& node = NodeOf(sample.track);
  const timeline::CodeFrame& self = sample.stack[sample.self];
  std::vector<Column>& row = node.samples.row();
  row[0].Int(sample.track);
  row[1].Int(sample.time.ns);
  PutReach(reach_.At(sample.node_time), &row[2], &row[3]);
  row[4].Int(sample.period_ns);
  row[5].Name(self.function);
  row[6].Name(self.library);
  row[7].Name(self.file);
  self.line > 0 ? row[8].Int(self.line) : row[8].Null();
  row[9].Bool(texts_[sample.stack.back().library] == kKernel);
  text_.clear();
  for (const timeline::CodeFrame& frame : sample.stack) {
    if (!text_.empty()) text_.push_back(';');
    text_.append(texts_[frame.function]);
  }
  row[10].Text(text_);
  Added(&node.samples);
}

void ParquetSink::OnThreadState(const timeline::ThreadState& state) {
  Node& node = NodeOf(state.track);
  std::vector<Column>& row = node.scheduling.row();
  row[0].Int(state.track);
  row[1].Text(StateName(state.state));
  row[2].Int(state.begin.ns);
  row[3].Int(state.end.ns);
  PutReach(Widest(reach_.At(state.node_begin), reach_.At(state.node_end)), &row[4], &row[5]);
  row[6].Bool(state.clipped_begin);
  row[7].Bool(state.clipped_end);
  state.cpu < 0 ? row[8].Null() : row[8].Int(state.cpu);
  row[9].Name(state.waker);
  if (state.had_cpu.empty()) {
    row[10].Null();
  } else {
    text_ = "{";
    for (const timeline::ThreadState::Taker& taker : state.had_cpu) {
      if (text_.size() > 1) text_.push_back(',');
      text::AppendJsonString(texts_[taker.who], &text_);
      absl::StrAppend(&text_, ":", taker.ns);
    }
    text_.push_back('}');
    row[10].Text(text_);
  }
  Added(&node.scheduling);
}

void ParquetSink::OnFlow(const timeline::Flow& flow) {
  std::vector<Column>& row = flows_.row();
  row[0].Int(static_cast<int64_t>(flow.id));
  row[1].Int(flow.from);
  row[2].Int(flow.to);
  row[3].Int(flow.sent.ns);
  row[4].Int(flow.received.ns);
  row[5].Name(flow.name);
  Added(&flows_);
}

void ParquetSink::OnHole(const timeline::Hole& hole) {
  Node& node = NodeOf(hole.track);
  std::vector<Column>& row = node.holes.row();
  row[0].Int(hole.track);
  row[1].Int(hole.begin.ns);
  row[2].Int(hole.end.ns);
  row[3].Text(LossReasonName(hole.loss.reason));
  hole.loss.count.has_value() ? row[4].Int(static_cast<int64_t>(*hole.loss.count)) : row[4].Null();
  row[5].Text(hole.loss.source);
  row[6].Text(hole.loss.detail);
  Added(&node.holes);
}

void ParquetSink::OnClockBound(const timeline::ClockBound& bound) {
  if (bound.node >= nodes_.size()) return;
  std::vector<Column>& row = nodes_[bound.node].clock_bounds.row();
  row[0].Int(bound.time.ns);
  bound.bound_ns.has_value() ? row[1].Int(*bound.bound_ns) : row[1].Null();
  Added(&nodes_[bound.node].clock_bounds);
}

void ParquetSink::OnClockEvent(const timeline::ClockEvent& event) {
  if (event.node >= nodes_.size()) return;
  std::vector<Column>& row = nodes_[event.node].clock_events.row();
  row[0].Int(event.begin.ns);
  row[1].Int(event.end.ns);
  row[2].Text(event.name);
  row[3].Text(event.text);
  Added(&nodes_[event.node].clock_events);
}

void ParquetSink::AddNames(Node* node) {
  std::sort(node->uses.begin(), node->uses.end(), [](const Node::Use& a, const Node::Use& b) {
    return std::pair(a.name, a.category) < std::pair(b.name, b.category);
  });
  std::vector<Column>& row = node->names.row();
  for (const Node::Use& use : node->uses) {
    row[0].Name(use.name);
    row[1].Name(use.category);
    row[2].Int(static_cast<int64_t>(use.spans));
    row[3].Int(use.total_ns);
  }
}

absl::Status ParquetSink::Finish() {
  for (Node& node : nodes_) AddNames(&node);
  for (Node& node : nodes_) {
    for (Partition* partition :
         {&node.spans, &node.instants, &node.counters, &node.samples, &node.scheduling, &node.holes,
          &node.clock_bounds, &node.clock_events, &node.names}) {
      partition->Finish(writer_, texts_);
    }
  }
  for (Partition* partition : {&flows_, &tracks_, &processes_, &node_table_}) {
    partition->Finish(writer_, texts_);
  }
  return absl::OkStatus();
}

}  // namespace syncline::parquet
