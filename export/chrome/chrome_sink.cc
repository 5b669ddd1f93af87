// SPDX-License-Identifier: Apache-2.0
#include "export/chrome/chrome_sink.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/text.h"
#include "export/text/arguments_json.h"
#include "export/text/json_text.h"

namespace syncline::chrome {
namespace {

using timeline::TrackKind;

// Microseconds with three decimals.
void AppendMicroseconds(int64_t ns, std::string* out) {
  if (ns < 0) out->push_back('-');
  const uint64_t magnitude = ns < 0 ? ~static_cast<uint64_t>(ns) + 1 : static_cast<uint64_t>(ns);
  const auto fraction = static_cast<char>(magnitude % 10);
  absl::StrAppend(out, magnitude / 1000, ".", magnitude / 100 % 10, magnitude / 10 % 10);
  out->push_back(static_cast<char>('0' + fraction));
}

std::string Json(std::string_view text) {
  std::string json;
  text::AppendJsonString(text, &json);
  return json;
}

std::string FactOf(const timeline::Track& track, std::string_view key) {
  for (const auto& [name, value] : track.facts) {
    if (name == key) return value;
  }
  return {};
}

// More than an hour before timeline zero can only be damage.
TimelineTime InFile(TimelineTime time) { return {std::max(time.ns, -kOriginNs) + kOriginNs}; }

}  // namespace

ChromeSink::ChromeSink(Options options) : options_(std::move(options)) {}

void ChromeSink::OnText(timeline::TextId id, std::string_view text) {
  if (texts_.size() <= id) texts_.resize(id + 1);
  texts_[id] = Json(text);
}

ChromeSink::File* ChromeSink::AddFile(const std::filesystem::path& path,
                                      std::string_view distributed_info) {
  files_.push_back(std::make_unique<File>(path));
  absl::StrAppend(files_.back()->out.buffer(), "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",");
  if (options_.epoch_unix_ns > 0) {
    absl::StrAppend(files_.back()->out.buffer(),
                    "\"baseTimeNanoseconds\":", options_.epoch_unix_ns - kOriginNs, ",");
  }
  absl::StrAppend(files_.back()->out.buffer(), AbslView(distributed_info), "\"traceEvents\":[");
  return files_.back().get();
}

ChromeSink::File* ChromeSink::NodeFile(uint32_t node) {
  const std::string& name = tracks_[node_tracks_[node]].name;
  File*& file = node_files_[node];
  if (file == nullptr) {
    file = AddFile(options_.directory / "nodes" / (FileNameOf(name) + ".json"), "");
  }
  return file;
}

ChromeSink::File* ChromeSink::FileOf(const timeline::Track& process) {
  const std::string rank = FactOf(process, "rank");
  if (rank.empty()) return NodeFile(process.node);
  const std::string job = FactOf(process, "job");
  std::string& directory = job_directories_[{job, FactOf(process, "incarnation")}];
  if (directory.empty()) {  // a job that was started again gets a directory of its own
    std::set<std::string> taken{"nodes"};
    for (const auto& [other, name] : job_directories_) taken.insert(name);
    const std::string wanted = job.empty() ? "." : FileNameOf(job);
    std::string name = wanted;
    for (int copy = 2; taken.count(name) != 0; ++copy) {
      name = absl::StrCat(job.empty() ? "job" : wanted, "-", copy);
    }
    directory = name;
  }
  File*& file = rank_files_[{directory, rank}];
  if (file == nullptr) {
    const std::string size = FactOf(process, "world size");
    file = AddFile(
        (options_.directory / directory / absl::StrCat("rank-", rank, ".json")).lexically_normal(),
        absl::StrCat("\"distributedInfo\":{\"rank\":", rank,
                     size.empty() ? "" : ",\"world_size\":", size, "},"));
  }
  return file;
}

int64_t ChromeSink::TakeId(int64_t wanted, File* file) {
  if (wanted <= 0 || file->ids.count(wanted) != 0) {
    wanted = std::max(kMadeUpId, file->ids.empty() ? 0 : *file->ids.rbegin() + 1);
  }
  file->ids.insert(wanted);
  return wanted;
}

std::string* ChromeSink::NextEvent(File* file) {
  file->out.Written();
  file->out.buffer()->append(file->empty ? "\n" : ",\n");
  file->empty = false;
  return file->out.buffer();
}

void ChromeSink::NameTrack(const KnownTrack& known, bool is_process, std::string_view name) {
  std::string* out = NextEvent(known.file);
  absl::StrAppend(out, R"({"ph":"M","name":")", is_process ? "process_name" : "thread_name",
                  R"(","pid":)", known.pid, R"(,"tid":)", known.tid, R"(,"args":{"name":)",
                  Json(name), "}}");
}

void ChromeSink::OnTrack(const timeline::Track& track) {
  if (tracks_.size() <= track.id) tracks_.resize(track.id + 1);
  KnownTrack known;
  known.kind = track.kind;
  known.node = track.node;
  known.name = track.name;
  known.whole_name = track.name;
  const bool on_top = track.kind == TrackKind::kNode || track.kind == TrackKind::kFleet;
  if (on_top || track.kind == TrackKind::kProcess) {
    const bool is_node = track.kind == TrackKind::kNode;
    known.process = track.id;
    if (is_node) {
      tracks_[track.id].name = track.name;
      node_tracks_[track.node] = track.id;
    }
    known.file = on_top ? NodeFile(track.node) : FileOf(track);
    known.file->nodes.insert(track.node);
    known.pid = TakeId(on_top ? 0 : track.process.pid, known.file);
    known.tid = known.pid;
    NameTrack(known, true, is_node ? "node " + track.name : track.name);
    if (!track.facts.empty()) {
      std::string labels;
      for (const auto& [key, value] : track.facts) {
        absl::StrAppend(&labels, labels.empty() ? "" : ", ", key, " ", value);
      }
      absl::StrAppend(NextEvent(known.file), R"({"ph":"M","name":"process_labels","pid":)",
                      known.pid, R"(,"tid":)", known.tid, R"(,"args":{"labels":)", Json(labels),
                      "}}");
    }
  } else {
    const KnownTrack& parent = tracks_[track.parent];
    known.file = parent.file;
    known.process = parent.process;
    known.pid = parent.pid;
    known.whole_name = absl::StrCat(parent.whole_name, " · ", track.name);
    if (track.kind == TrackKind::kLane && parent.kind == TrackKind::kGroup) {
      known.name = absl::StrCat(parent.name, " · ", track.name);
    }
    if (track.kind != TrackKind::kGroup && track.kind != TrackKind::kCounter) {
      // A process's first thread has its number.
      const bool first = track.kind == TrackKind::kThread && track.tid == known.pid &&
                         !std::exchange(tracks_[known.process].first_thread_known, true);
      known.tid = first ? known.pid : TakeId(track.tid, known.file);
      NameTrack(known, false, known.name);
    }
  }
  tracks_[track.id] = std::move(known);
}

void ChromeSink::Head(char phase, const KnownTrack& at, TimelineTime time, std::string* out) {
  out->append(R"({"ph":")");
  out->push_back(phase);
  absl::StrAppend(out, R"(","pid":)", at.pid, R"(,"tid":)", at.tid, R"(,"ts":)");
  AppendMicroseconds(InFile(time).ns, out);
}

bool ChromeSink::AppendArguments(const std::vector<timeline::Argument>& arguments,
                                 std::string* out) const {
  const auto put_text = [this](timeline::TextId text, std::string* to) {
    to->append(texts_[text]);
  };
  return text::AppendArgumentsJson(arguments, put_text, out);
}

void ChromeSink::OnSpanBegin(const timeline::Span& span) {
  tracks_[span.track].open.push_back({span.begin, {}});
}

void ChromeSink::OnSpanEnd(const timeline::Span& span) {
  KnownTrack& track = tracks_[span.track];
  OpenSpan open;
  if (!track.open.empty()) {
    open = std::move(track.open.back());
    track.open.pop_back();
  }
  std::string text;
  Head('X', track, span.begin, &text);
  text.append(",\"dur\":");
  AppendMicroseconds(InFile(span.end).ns - InFile(span.begin).ns, &text);
  absl::StrAppend(
      &text, ",\"cat\":", span.category == timeline::kNoText ? "\"span\"" : texts_[span.category],
      ",\"name\":", texts_[span.name], ",\"args\":{");
  bool first = !AppendArguments(span.arguments, &text);
  const auto flag = [&](bool set, std::string_view key, std::string_view value) {
    if (!set) return;
    absl::StrAppend(&text, first ? "\"" : ",\"", AbslView(key), "\":\"", AbslView(value), "\"");
    first = false;
  };
  flag(span.clipped_begin, "clipped begin", "its begin was not recorded");
  flag(span.clipped_end, "clipped end", "its end was not recorded");
  flag(span.suspect, "suspect", "events were lost while it was open");
  absl::StrAppend(&text, "}}");
  if (!open.deferred.empty()) absl::StrAppend(&text, ",\n", open.deferred);
  const bool with_parent =
      !span.late && !track.open.empty() && track.open.back().begin == span.begin;
  if (with_parent) {
    std::string& deferred = track.open.back().deferred;
    absl::StrAppend(&deferred, deferred.empty() ? "" : ",\n", text);
  } else {
    NextEvent(track.file)->append(text);
  }
}

void ChromeSink::OnInstant(const timeline::Instant& instant) {
  const KnownTrack& track = tracks_[instant.track];
  std::string* out = NextEvent(track.file);
  Head('i', track, instant.time, out);
  absl::StrAppend(out, ",\"s\":\"t\",\"cat\":",
                  instant.category == timeline::kNoText ? "\"instant\"" : texts_[instant.category],
                  ",\"name\":", texts_[instant.name], ",\"args\":{");
  AppendArguments(instant.arguments, out);
  out->append("}}");
}

void ChromeSink::OnCounter(const timeline::CounterValue& value) {
  const KnownTrack& track = tracks_[value.track];
  std::string* out = NextEvent(track.file);
  Head('C', track, value.time, out);
  absl::StrAppend(out, ",\"name\":", Json(track.name), ",\"args\":{\"value\":");
  text::AppendJsonReal(value.value, out);
  out->append("}}");
}

void ChromeSink::OnCodeSample(const timeline::CodeSample& sample) {
  const KnownTrack& track = tracks_[sample.track];
  const timeline::CodeFrame& self = sample.stack[sample.self];
  std::string* out = NextEvent(track.file);
  Head('i', track, sample.time, out);
  absl::StrAppend(out, R"(,"s":"t","cat":"sample","name":)", texts_[self.function],
                  R"(,"args":{"library":)", texts_[self.library], R"(,"stack":[)");
  for (const timeline::CodeFrame& frame : sample.stack) {
    absl::StrAppend(out, &frame == &sample.stack.front() ? "" : ",", texts_[frame.function]);
  }
  out->append("]}}");
}

void ChromeSink::OnThreadState(const timeline::ThreadState& state) {
  if (state.state == timeline::ThreadState::State::kAsleep) return;
  OnSpanBegin(state);
  OnSpanEnd(state);
}

void ChromeSink::WriteFlowEnd(const timeline::Flow& flow, bool sends) {
  const KnownTrack& here = tracks_[sends ? flow.from : flow.to];
  const KnownTrack& there = tracks_[sends ? flow.to : flow.from];
  const TimelineTime time = sends ? flow.sent : flow.received;
  std::string* out = NextEvent(here.file);
  Head('X', here, time, out);
  absl::StrAppend(out, ",\"dur\":0.000,\"cat\":\"flow\",\"name\":", texts_[flow.name],
                  ",\"args\":{\"flow\":", flow.id,
                  sends ? ",\"to\":" : ",\"from\":", Json(there.whole_name),
                  sends ? ",\"received ts\":" : ",\"sent ts\":");
  AppendMicroseconds(InFile(sends ? flow.received : flow.sent).ns, out);
  out->append("}}");
  if (here.file != there.file) return;
  out = NextEvent(here.file);
  Head(sends ? 's' : 'f', here, time, out);
  absl::StrAppend(out, sends ? "" : ",\"bp\":\"e\"", ",\"id\":", flow.id,
                  ",\"cat\":\"flow\",\"name\":", texts_[flow.name], "}");
}

void ChromeSink::OnFlow(const timeline::Flow& flow) {
  WriteFlowEnd(flow, /*sends=*/true);
  WriteFlowEnd(flow, /*sends=*/false);
}

// Holes may overlap; what is on one track may only nest.
void ChromeSink::WriteHole(const timeline::Hole& hole, KnownTrack* process,
                           std::string_view lane_name) {
  std::vector<HoleLane>& lanes = process->hole_lanes;
  auto lane = std::find_if(lanes.begin(), lanes.end(),
                           [&hole](const HoleLane& one) { return one.end <= hole.begin; });
  KnownTrack at = *process;
  if (lane == lanes.end()) {
    lane = lanes.insert(lanes.end(), {TakeId(0, process->file), {}});
    at.tid = lane->tid;
    NameTrack(at, false, "holes");
  }
  at.tid = lane->tid;
  lane->end = std::max(hole.begin, hole.end);
  std::string* out = NextEvent(process->file);
  Head('X', at, hole.begin, out);
  out->append(",\"dur\":");
  AppendMicroseconds(InFile(lane->end).ns - InFile(hole.begin).ns, out);
  absl::StrAppend(out, ",\"cat\":\"hole\",\"name\":", Json(LossReasonName(hole.loss.reason)),
                  ",\"args\":{\"of\":", Json(lane_name));
  if (hole.loss.count.has_value()) absl::StrAppend(out, ",\"count\":", *hole.loss.count);
  if (!hole.loss.source.empty()) absl::StrAppend(out, ",\"source\":", Json(hole.loss.source));
  if (!hole.loss.detail.empty()) absl::StrAppend(out, ",\"detail\":", Json(hole.loss.detail));
  out->append("}}");
}

void ChromeSink::OnHole(const timeline::Hole& hole) {
  const KnownTrack& track = tracks_[hole.track];
  if (track.kind == TrackKind::kNode) {
    node_holes_.push_back(hole);
  } else {
    WriteHole(hole, &tracks_[track.process], track.name);
  }
}

void ChromeSink::OnClockBound(const timeline::ClockBound& bound) {
  if (bound.bound_ns.has_value()) bounds_.push_back(bound);
}

void ChromeSink::OnClockEvent(const timeline::ClockEvent& event) { clock_events_.push_back(event); }

// What is said of a node, in each file that has one of its processes: as a process of its own.
void ChromeSink::WriteOfNodes() {
  for (const auto& [node, track] : node_tracks_) {
    for (const std::unique_ptr<File>& file : files_) {
      if (file->nodes.count(node) == 0) continue;
      KnownTrack at = tracks_[track];
      if (at.file != file.get()) {
        at.file = file.get();
        at.pid = TakeId(0, file.get());
        at.tid = at.pid;
        NameTrack(at, true, "node " + at.name);
      }
      for (const timeline::Hole& hole : node_holes_) {
        if (hole.track == track) WriteHole(hole, &at, at.name);
      }
      for (const timeline::ClockBound& bound : bounds_) {
        if (bound.node != node) continue;
        std::string* out = NextEvent(file.get());
        Head('C', at, bound.time, out);
        absl::StrAppend(out, ",\"name\":\"clock bound\",\"args\":{\"ns\":", *bound.bound_ns, "}}");
      }
      for (const timeline::ClockEvent& event : clock_events_) {
        if (event.node != node) continue;
        std::string* out = NextEvent(file.get());
        Head('i', at, event.begin, out);
        absl::StrAppend(out, R"(,"s":"p","cat":"clock","name":)", Json(event.name),
                        R"(,"args":{"what":)", Json(event.text), R"(,"until ts":)");
        AppendMicroseconds(InFile(event.end).ns, out);
        out->append("}}");
      }
    }
  }
}

absl::Status ChromeSink::Finish() {
  WriteOfNodes();
  absl::Status first;
  for (const std::unique_ptr<File>& file : files_) {
    absl::StrAppend(file->out.buffer(), "\n]}\n");
    const absl::Status status = file->out.Close();
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace syncline::chrome
