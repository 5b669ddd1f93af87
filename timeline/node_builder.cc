// SPDX-License-Identifier: Apache-2.0
// The walk over a node's events; coverage and losses.
#include "timeline/node_builder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "timeline/clock_bounds.h"
#include "timeline/node_profiles.h"

namespace syncline::timeline {
namespace {

constexpr uint64_t kProgressEvents = 1 << 16;
constexpr int64_t kGateSlackNs = 1'000'000;  // gates are moved at an instant, give or take
constexpr const char* kPaused = "paused by the program (__itt_pause)";
// It may have ended meanwhile, or become another program: nobody knows when.
constexpr const char* kPausedForGood = "paused by the program (__itt_pause), and not resumed";
constexpr const char* kReplaced =
    "the process became another program (exec): that one's events are not in this recording";
constexpr const char* kUnflushed =
    "LTTng exited, or did not finish in time, before it had written the process's later events";

std::string WhyUncovered(const KnownProcess* known, uint64_t counted_lost) {
  if (known != nullptr && known->came_too_late) {
    return "started during the window and exited, or found too late to be recorded";
  }
  if (known != nullptr && known->became_another_program) return kReplaced;
  if (known != nullptr && !known->why_missed.empty()) return known->why_missed;
  if (counted_lost == 0) return "the process made no recordable call in the window";
  return absl::StrCat("LTTng recorded none of the process's calls: it counted ", counted_lost,
                      " that were lost");
}

}  // namespace

NodeBuilder::NodeBuilder(const NodeInput& node, uint32_t index, const BuildOptions& options,
                         Emitter* emitter, SharedTracks* shared, Matchers* matchers)
    : context_{node, index, node.placement->clock(), options, emitter},
      events_(options.events),
      matchers_(matchers),
      tracks_(context_, &tables_, shared),
      ledger_(context_, tracks_, result_.seen),
      losses_(context_, &tracks_, &ledger_),
      foreign_(context_, &tables_, &tracks_, &losses_),
      net_(context_, tables_, &tracks_, &matchers->messages),
      torch_(context_, {.tables = tables_,
                        .tracks = &tracks_,
                        .ledger = &ledger_,
                        .collectives = &matchers->collectives,
                        .transfers = &matchers->transfers}),
      itt_(context_, tables_, &tracks_),
      ids_(emitter, "id"),
      parent_ids_(emitter, "parent id") {
  result_.name = node.name;
  result_.index = index;
}

absl::StatusOr<NodeResult> NodeBuilder::Build() {
  tracks_.AddNode();
  tables_ = NodeTables::Of(context_.node, context_.index);
  if (context_.options.cut.has_value() && context_.options.look_back_ns.has_value()) {
    SYNCLINE_ASSIGN_OR_RETURN(read_, ChoosePart(context_.node, tables_, *context_.options.cut,
                                                *context_.options.look_back_ns));
    result_.read_in_part = !read_.whole();
    result_.inside_of_unread_threads = read_.unresolved_threads;
  }
  SYNCLINE_RETURN_IF_ERROR(tables_.Scan(read_.part, context_.options.threads));
  SYNCLINE_RETURN_IF_ERROR(OpenStreams());
  for (uint64_t events = 0;; ++events) {
    SYNCLINE_ASSIGN_OR_RETURN(const StreamMerger::Head* head, merger_.Next());
    if (head == nullptr) break;
    if (events % kProgressEvents == 0 && context_.options.progress) {
      context_.options.progress({context_.index, head->time, events});
    }
    Dispatch(*head);
  }
  Finish();
  NodeProfiles profiles(context_, {.tables = tables_,
                                   .tracks = &tracks_,
                                   .ledger = &ledger_,
                                   .tensors = &matchers_->tensors,
                                   .collectives = &matchers_->profile_collectives});
  SYNCLINE_ASSIGN_OR_RETURN(NodeProfiles::Results found, profiles.Push());
  result_.profiles = std::move(found.profiles);
  result_.partitions = std::move(found.partitions);
  return TakeResult();
}

absl::Status NodeBuilder::OpenStreams() {
  for (size_t i = 0; i < context_.node.readers.size(); ++i) {
    TraceReader* reader = context_.node.readers[i];
    // Our own events are counted, shown or not.
    const auto wanted =
        std::make_shared<const ClassChoice>(reader, [this](const EventClass& event_class) {
          return KindOf(event_class.name) != EventKind::kForeign ||
                 context_.options.events.Matches(event_class.name);
        });
    for (const StreamInfo& stream : reader->streams()) {
      SYNCLINE_ASSIGN_OR_RETURN(auto cursor,
                                reader->Open(stream.index, read_.part.begin_ns, read_.part.end_ns));
      merger_.Add(KeepWanted(std::move(cursor), wanted), context_.node.placement);
      Source source;
      source.owner = tables_.owner_of_reader(i);
      source.name = stream.name;
      losses_.AddStream();
      sources_.push_back(std::move(source));
      if (stream.begin_ns == 0 && stream.end_ns == 0) continue;
      ledger_.AddStream({stream.begin_ns, stream.end_ns});
    }
  }
  result_.streams = sources_.size();
  return absl::OkStatus();
}

uint32_t NodeBuilder::ThreadOf(uint32_t source, uint32_t thread_key) {
  Source& entry = sources_[source];
  KnownKey& known = entry.known[thread_key % kKnownKeys];
  if (known.key != thread_key || known.thread == kNoNumber) {
    known = {thread_key, tables_.ThreadFor(entry.owner, thread_key)};
  }
  return known.thread;
}

void NodeBuilder::UpdateLosses(uint32_t source) {
  // The threads that it hit have it; of other traces than Syncline's none are known.
  losses_.Update(source, merger_.cursor(source)->losses(),
                 /*draw_on_node=*/tables_.processes().empty());
}

void NodeBuilder::Dispatch(const StreamMerger::Head& head) {
  UpdateLossesOf(head.source);
  if (FollowTask(head)) return;
  const EventKind kind = event_.Kind(*head.record);
  if (kind == EventKind::kCanary) return;
  const bool counted = context_.IsCounted(head.time);
  if (counted && events_.Shows(kind)) ++result_.events;
  const int64_t time_ns = head.record->time_ns;
  if (!result_.seen.has_value()) result_.seen = ClockInterval{time_ns, time_ns};
  result_.seen->end_ns = std::max(result_.seen->end_ns, time_ns);
  if (!event_.Decode(head.cursor, *head.record)) {
    if (counted) ++result_.undecodable_events;
    return;
  }
  if (kind == EventKind::kForeign) {
    if (counted) ++result_.foreign_events;
    const Source& source = sources_[head.source];
    foreign_.On(head, event_, {source.owner, source.name});
    return;
  }
  NodeEvent event{kind, event_, {{context_.clock, time_ns}, head.time}};
  if (HasThread(kind)) {
    event.thread = ThreadOf(head.source, event_.U32(Field::kThread));
    event.process = tracks_.ThreadAt(event.thread).process;
    losses_.Seen(event.thread, head.source, time_ns);
    if (kind == EventKind::kTaskBegin || kind == EventKind::kTaskEnd) {
      if (event_.Has(Field::kNumber)) {
        losses_.Numbered(event.thread, static_cast<uint16_t>(event_.U64(Field::kNumber)), time_ns);
      }
    }
  } else {
    event.process = tables_.ProcessFor(sources_[head.source].owner, event_.U32(Field::kProcess));
  }
  Process& process = tracks_.ProcessAt(event.process);
  ++process.found_events;
  if (counted) ++process.counted_here;
  // Another thread may get a word in before the one that writes `on`.
  if (!process.covered_since.has_value() && kind != EventKind::kOff) {
    Cover(event.process, CoverageBegin(event), /*begin_again=*/false);
  }
  if (events_.Heeds(kind)) Handle(event);
  tracks_.ProcessAt(event.process).last = event.at;
  if (HasThread(kind)) tracks_.ThreadAt(event.thread).spans->Seen(event.at);
}

void NodeBuilder::Handle(const NodeEvent& event) {
  switch (event.kind) {
    case EventKind::kOn:
    case EventKind::kOff:
    case EventKind::kPause:
    case EventKind::kResume:
      OnControl(event);
      break;
    case EventKind::kTaskBegin:
    case EventKind::kTaskEnd:
      OnTask(event);
      break;
    case EventKind::kConnection:
    case EventKind::kConnectionState:
    case EventKind::kSend:
    case EventKind::kReceive:
    case EventKind::kSendUnplaced:
    case EventKind::kReceiveUnplaced:
    case EventKind::kDoubt:
      net_.On(event);
      break;
    case EventKind::kTorchOperators:
    case EventKind::kTorchGroup:
    case EventKind::kTorchCollective:
    case EventKind::kTorchTransferBegin:
    case EventKind::kTorchTransferEnd:
      torch_.On(event);
      break;
    default:
      itt_.On(event);
      break;
  }
}

void NodeBuilder::OnControl(const NodeEvent& event) {
  Process& process = tracks_.ProcessAt(event.process);
  switch (event.kind) {
    case EventKind::kOn:
    case EventKind::kResume:
      Cover(event.process, event.at, /*begin_again=*/true);
      break;
    case EventKind::kOff:
      process.counted_events = event.fields.U64(Field::kEvents);
      process.counted_lost = event.fields.U64(Field::kLost);
      process.cost =
          DurationEstimate{.est_ns = static_cast<int64_t>(event.fields.U64(Field::kCostNs))};
      [[fallthrough]];
    case EventKind::kPause:
      // Paused and then switched off: coverage ended at the pause.
      if (!process.pending_end.has_value()) {
        process.pending_end = event.at;
        process.pauses = event.kind == EventKind::kPause;
      }
      process.end_known = true;
      break;
    default:
      break;
  }
}

// Where the trace is read from its middle, `on` was not met.
Moment NodeBuilder::CoverageBegin(const NodeEvent& event) {
  const KnownProcess* const known = tables_.processes()[event.process].known;
  const bool began_unread = !read_.from_the_start() &&
                            tracks_.ProcessAt(event.process).coverage.empty() &&
                            event.kind != EventKind::kOn && event.kind != EventKind::kResume;
  if (!began_unread || known == nullptr || !known->on_ns.has_value()) return event.at;
  return *known->on_ns < event.at.node.ns ? context_.At(*known->on_ns) : event.at;
}

void NodeBuilder::Cover(uint32_t index, const Moment& moment, bool begin_again) {
  Process& process = tracks_.ProcessAt(index);
  if (begin_again) ApplyPendingEnd(&process, index);
  if (process.covered_since.has_value()) return;
  process.covered_since = moment;
  process.end_known = false;
  process.async->CoverageBegins(moment);
  for (const uint32_t thread : process.threads)
    tracks_.threads()[thread].spans->CoverageBegins(moment);
}

void NodeBuilder::Uncover(uint32_t index, const Moment& moment) {
  Process& process = tracks_.ProcessAt(index);
  if (!process.covered_since.has_value()) return;
  for (const uint32_t thread : tracks_.ThreadsOf(&process)) {
    losses_.Settle(&tracks_.threads()[thread]);
    tracks_.threads()[thread].spans->CoverageEnds(moment);
  }
  process.async->CoverageEnds(moment);
  if (std::exchange(process.pauses, false))
    process.paused_behind.push_back(process.coverage.size());
  process.coverage.push_back({process.covered_since->node.ns, moment.node.ns});
  process.covered_since.reset();
}

// Coverage ends at `off`, but threads that were inside a call then may still write; so spans are
// clipped when the next interval begins, at the time of `off`.
void NodeBuilder::ApplyPendingEnd(Process* process, uint32_t index) {
  if (!process->pending_end.has_value()) return;
  const Moment end = *process->pending_end;
  process->pending_end.reset();
  Uncover(index, end);
}

void NodeBuilder::Finish() {
  for (uint32_t source = 0; source < sources_.size(); ++source) UpdateLosses(source);
  for (const TraceReader* reader : context_.node.readers) {
    for (const Loss& loss : reader->losses()) ledger_.Add(loss, /*draw_on_node=*/true);
  }
  for (const Loss& loss : context_.node.losses) ledger_.Add(loss, /*draw_on_node=*/true);
  for (uint32_t i = 0; i < tables_.processes().size(); ++i) {
    // Coverage is a matter of our own libraries: foreign providers write when they like.
    const bool ours = i < tracks_.processes().size() && tracks_.processes()[i].found_events > 0;
    if (!ours && tables_.processes()[i].known == nullptr) continue;
    FinishProcess(i);
    const std::vector<ClockInterval>& coverage = tracks_.ProcessAt(i).coverage;
    if (!coverage.empty()) torch_.RecordedUntil(i, context_.At(coverage.back().end_ns).timeline);
  }
  LoseUntracked();
  for (uint32_t i = 0; i < tracks_.threads().size(); ++i) {
    Thread& thread = tracks_.threads()[i];
    if (thread.spans == nullptr) continue;
    torch_.Finish(i);
    losses_.Settle(&thread);
    thread.spans->Finish();
    result_.recovered += thread.spans->recovered_count();
  }
  FinishWindow();
  FinishLosses();
  PushClockBounds(context_, tracks_.node_track(), result_.seen);
  for (ClockEvent event : context_.node.clock_events) {
    event.node = context_.index;
    context_.emitter->Push(event);
  }
}

// Where a process's coverage ends whose `off` was not found.
Moment NodeBuilder::EndWithoutOff(Process* process, const KnownProcess* known) {
  const Moment last = process->last.value_or(*process->covered_since);
  if (known == nullptr || !known->off_ns.has_value() || *known->off_ns < last.node.ns) return last;
  const int64_t extent_ns = ledger_.extent().value_or(ClockInterval{}).end_ns;
  const int64_t traced_ns =  // a part may lack its last event
      read_.whole() ? last.node.ns : std::max(last.node.ns, extent_ns);
  const bool all_found =  // what the process counted is of all its events
      read_.whole() && known->counted_lost == 0u && known->counted_events == process->found_events;
  process->cut_off = context_.node.unflushed && !all_found && *known->off_ns > traced_ns;
  if (process->cut_off) return context_.At(traced_ns);
  process->end_known = true;
  return context_.At(*known->off_ns);
}

void NodeBuilder::FinishProcess(uint32_t index) {
  Process& process = tracks_.ProcessAt(index);
  const KnownProcess* known = tables_.processes()[index].known;
  if (!process.covered_since.has_value() && process.coverage.empty() && known != nullptr &&
      known->on_ns.has_value()) {
    Cover(index, context_.At(*known->on_ns), /*begin_again=*/false);
  }
  if (process.pending_end.has_value()) {
    ApplyPendingEnd(&process, index);
  } else if (process.covered_since.has_value()) {
    Uncover(index, EndWithoutOff(&process, known));
  }
  if (known != nullptr) {
    if (!process.counted_events.has_value()) process.counted_events = known->counted_events;
    if (!process.counted_lost.has_value()) process.counted_lost = known->counted_lost;
    if (known->cost.has_value()) process.cost = known->cost;  // the event has no interval
  }
  PushHoles(process, known);
}

// Where the program paused its own recording.
void NodeBuilder::LosePauses(const Process& process, const ClockInterval& window) {
  for (const size_t i : process.paused_behind) {
    const bool last = i + 1 == process.coverage.size();
    const int64_t begin_ns = std::max(window.begin_ns, process.coverage[i].end_ns);
    const int64_t end_ns =
        std::min(window.end_ns, last ? window.end_ns : process.coverage[i + 1].begin_ns);
    if (begin_ns >= end_ns) continue;
    ledger_.Add({LossReason::kNotCovered, begin_ns, end_ns, std::nullopt, process.name,
                 last ? kPausedForGood : kPaused},
                /*draw_on_node=*/false);
  }
}

void NodeBuilder::PushHoles(const Process& process, const KnownProcess* known) {
  const auto hole = [&](int64_t begin_ns, int64_t end_ns, const std::string& detail) {
    if (begin_ns >= end_ns) return;
    ledger_.PushHole(process.track, {LossReason::kNotCovered, begin_ns, end_ns, std::nullopt,
                                     process.name, detail});
  };
  const std::vector<ClockInterval>& coverage = process.coverage;
  for (size_t i = 1; i < coverage.size(); ++i) {
    hole(coverage[i - 1].end_ns, coverage[i].begin_ns, "paused by the program, or switched off");
  }
  if (!context_.options.window.has_value()) return;
  const int64_t begin_ns = context_.node.placement->ClockNs(context_.options.window->begin);
  const int64_t end_ns = context_.node.placement->ClockNs(context_.options.window->end);
  LosePauses(process, {begin_ns, end_ns});
  const bool covers =
      std::any_of(coverage.begin(), coverage.end(), [&](const ClockInterval& interval) {
        return interval.begin_ns < end_ns && interval.end_ns >= begin_ns;
      });
  const bool replaced = known != nullptr && known->became_another_program;
  if (!covers) {
    const std::string why = WhyUncovered(known, process.counted_lost.value_or(0));
    hole(begin_ns, end_ns, why);
    if (known != nullptr && (known->expected || replaced)) LoseAll(*known, process.name, why);
    return;
  }
  hole(begin_ns, std::min(end_ns, coverage.front().begin_ns),
       "a process is recorded from its first call that LTTng records");
  const int64_t last_ns = std::max(begin_ns, coverage.back().end_ns);
  const char* const lost = process.cut_off ? kUnflushed : replaced ? kReplaced : nullptr;
  const bool ended = known != nullptr && known->ended_ns.has_value();
  hole(last_ns, end_ns,
       lost != nullptr ? lost
       : ended         ? "the process ended"
       : process.end_known
           ? "switched off, or the program paused it"
           : "no data after the last event: the process ended, or stayed inside one call");
  const std::vector<size_t>& paused = process.paused_behind;
  const bool told = std::count(paused.begin(), paused.end(), coverage.size() - 1) > 0;
  if (lost == nullptr || told || last_ns >= end_ns) return;
  ledger_.Add({LossReason::kNotCovered, last_ns, end_ns, std::nullopt, process.name, lost},
              /*draw_on_node=*/false);
}

void NodeBuilder::LoseAll(const KnownProcess& known, const std::string& name,
                          const std::string& why) {
  // There may be thousands of short-lived processes: they are one loss.
  ledger_.Add(
      {LossReason::kNotCovered, context_.node.placement->ClockNs(context_.options.window->begin),
       context_.node.placement->ClockNs(context_.options.window->end), std::nullopt,
       known.came_too_late ? "short-lived processes" : name, why},
      /*draw_on_node=*/false);
}

// A user whom LTTng was not to record has no buffers in the trace, and his processes no tracks.
void NodeBuilder::LoseUntracked() {
  if (!context_.options.window.has_value()) return;
  std::set<const KnownProcess*> tracked;
  for (const ProcessEntry& entry : tables_.processes()) tracked.insert(entry.known);
  for (const KnownProcess& known : context_.node.processes) {
    if (!known.expected || tracked.count(&known) != 0) continue;
    ProcessEntry entry;
    entry.key = known.key;
    entry.known = &known;
    LoseAll(known, tracks_.NameOfProcess(entry),
            WhyUncovered(&known, known.counted_lost.value_or(0)));
  }
}

// The gate may have been closed before the window's end, by the agent's lease or for lack of disk.
void NodeBuilder::FinishWindow() {
  if (!context_.options.window.has_value() || !context_.node.closed_ns.has_value()) return;
  const int64_t end_ns = context_.node.placement->ClockNs(context_.options.window->end);
  // The model that placed the window's end then was another one than this.
  const int64_t doubt_ns = 2 * context_.node.placement->BoundNs(end_ns).value_or(0);
  if (end_ns - *context_.node.closed_ns <= std::max(kGateSlackNs, doubt_ns)) return;
  ledger_.Add(
      {LossReason::kNotCovered, *context_.node.closed_ns, end_ns, std::nullopt, context_.node.name,
       absl::StrCat("the agent stopped recording early",
                    context_.node.why_closed.empty() ? "" : ": ", context_.node.why_closed)},
      /*draw_on_node=*/true);
}

// Silent loss: the process counted more events than were found, beyond what the tracer owns up to.
void NodeBuilder::FinishLosses() {
  if (!read_.whole()) return;  // what the processes counted is of all their events
  if (!ledger_.counts_are_known())
    return;  // a whole packet or file is missing: it explains any number
  uint64_t missing = 0;
  std::string who;
  for (const Process& process : tracks_.processes()) {
    if (process.track == kNoTrack || !process.counted_events.has_value()) continue;
    if (*process.counted_events <= process.found_events) continue;
    missing += *process.counted_events - process.found_events;
    absl::StrAppend(&who, who.empty() ? "" : ", ", process.name);
  }
  if (missing <= ledger_.declared()) return;
  ledger_.Add({LossReason::kSilent, 0, 0, missing - ledger_.declared(), who,
               "the processes counted more events than the trace holds"},
              /*draw_on_node=*/true);
}

NodeResult NodeBuilder::TakeResult() {
  for (uint32_t i = 0; i < tracks_.processes().size(); ++i) {
    Process& process = tracks_.processes()[i];
    if (process.track == kNoTrack) continue;
    const ProcessEntry& entry = tables_.processes()[i];
    ProcessResult result;
    result.key = entry.key;
    result.name = process.name;
    if (entry.known != nullptr) {
      result.command_line = entry.known->command_line;
      result.job = entry.known->job;
      result.role = entry.known->role;
      result.part = entry.known->part;
      result.rank = entry.known->rank;
      result.world_size = entry.known->world_size;
      result.ended_ns = entry.known->ended_ns;
    }
    result.coverage = process.coverage;
    result.end_known = process.end_known;
    result.cut_off = process.cut_off;
    result.found_events = process.counted_here;
    if (!context_.options.cut.has_value()) {
      result.counted_events = process.counted_events;
      result.counted_lost = process.counted_lost;
      result.cost = process.cost;
    }
    result.threads = static_cast<uint32_t>(process.threads.size());
    result_.processes.push_back(std::move(result));
  }
  result_.losses = ledger_.TakeTotals();
  return std::move(result_);
}

}  // namespace syncline::timeline
