// SPDX-License-Identifier: Apache-2.0
#include "timeline/scheduling_series.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "timeline/emitter.h"
#include "timeline/placement.h"

namespace syncline::timeline {
namespace {

using State = ThreadState::State;

constexpr char kGroup[] = "scheduling";

class SchedulingLanes {
 public:
  SchedulingLanes(const SchedulingSeries& series, const SeriesPlace& place, Emitter* emitter)
      : series_(series), place_(place), emitter_(emitter) {
    for (const std::string& name : series.names) {
      names_.push_back(
          {emitter_->Text(name), emitter_->Text(absl::StrCat("had the CPU: ", name, ", ns"))});
    }
    cpu_key_ = emitter_->Text("CPU");
    waker_key_ = emitter_->Text("woken by");
    category_ = emitter_->Text(kGroup);
  }

  void Push(const ScheduledLane& thread) {
    if (thread.turns.empty()) return;
    Track lane;
    place_.Put(thread.process, &lane);
    lane.parent = GroupOf(thread.process, lane);
    lane.kind = TrackKind::kLane;
    lane.tid = thread.tid;
    lane.name = absl::StrCat(thread.name, " ", thread.tid);
    lane_ = emitter_->AddTrack(std::move(lane));
    until_ns_ = 0;
    for (const ScheduledTurn& turn : thread.turns) Push(turn);
  }

  void PushLosses() {
    for (const auto& [process, group] : groups_) {
      for (const Loss& loss : series_.losses) {
        const TimelineTime begin = place_.placement->At(loss.begin_ns);
        emitter_->Push(Hole{group, begin, place_.placement->At(loss.end_ns), loss});
      }
    }
  }

 private:
  struct Name {
    TextId text = kNoText;
    TextId key = kNoText;  // of an argument: that it had the CPU
  };

  TrackId GroupOf(const ProcessKey& process, const Track& lane) {
    const auto [group, added] = groups_.try_emplace(process, kNoTrack);
    if (!added) return group->second;
    Track top = lane;
    top.kind = TrackKind::kGroup;
    top.name =
        lane.parent == place_.node_track ? absl::StrCat(kGroup, " · pid ", process.pid) : kGroup;
    return group->second = emitter_->AddTrack(std::move(top));
  }

  void Push(const ScheduledTurn& turn) {
    const int64_t run_ns = turn.until_ns - turn.ran_ns;
    const int64_t ready_ns = run_ns - turn.ready_ns;
    ThreadState pause = Of(turn.pause, ready_ns - turn.pause_ns, ready_ns);
    Emit(&pause, NameOf(turn.pause));
    ThreadState ready = Of(State::kReady, ready_ns, run_ns);
    if (ready.node_begin.ns < ready.node_end.ns) {
      ready.cpu = turn.cpu;
      Put(cpu_key_, turn.cpu, &ready);
      for (uint32_t i = 0; i < turn.takers; ++i) {
        const ScheduledTurn::Taker& taker = series_.takers[turn.first_taker + i];
        if (taker.who != kNoName) PutTaker(names_[taker.who], taker.ns, &ready);
      }
      Emit(&ready, "ready");
    }
    ThreadState run = Of(State::kRunning, run_ns, turn.until_ns);
    run.cpu = turn.cpu;
    if (turn.waker != kNoName) {
      run.waker = names_[turn.waker].text;
      Argument& waker = run.arguments.emplace_back();
      waker.key = waker_key_;
      waker.kind = Argument::Kind::kText;
      waker.text = run.waker;
    }
    Emit(&run, run.node_begin.ns < run.node_end.ns ? absl::StrCat("CPU ", turn.cpu) : "");
  }

  // Not before what was pushed already: turns of a damaged file may overlap.
  ThreadState Of(State state, int64_t begin_ns, int64_t end_ns) {
    ThreadState made;
    made.state = state;
    made.track = lane_;
    made.node_begin = {place_.placement->clock(), std::max(begin_ns, until_ns_)};
    made.node_end = {place_.placement->clock(), end_ns};
    return made;
  }

  static const char* NameOf(State state) {
    switch (state) {
      case State::kUninterruptible:
        return "uninterruptible";
      case State::kStopped:
        return "stopped";
      default:
        return "asleep";
    }
  }

  // Threads of one process may be called alike: these are added up.
  static void PutTaker(const Name& name, int64_t ns, ThreadState* state) {
    for (size_t i = 0; i < state->had_cpu.size(); ++i) {
      if (state->had_cpu[i].who != name.text) continue;
      state->had_cpu[i].ns += ns;
      state->arguments[state->arguments.size() - state->had_cpu.size() + i].i += ns;
      return;
    }
    state->had_cpu.push_back({name.text, ns});
    Put(name.key, ns, state);
  }
  static void Put(TextId key, int64_t value, ThreadState* state) {
    Argument& argument = state->arguments.emplace_back();
    argument.key = key;
    argument.i = value;
  }

  void Emit(ThreadState* state, std::string_view name) {
    if (state->node_begin.ns >= state->node_end.ns) return;
    until_ns_ = state->node_end.ns;
    state->name = emitter_->Text(name);
    state->category = category_;
    state->begin = place_.placement->At(state->node_begin.ns);
    state->end = place_.placement->At(state->node_end.ns);
    state->self_ns = state->end.ns - state->begin.ns;
    emitter_->Push(*state);
  }

  const SchedulingSeries& series_;
  const SeriesPlace& place_;
  Emitter* emitter_;
  std::vector<Name> names_;  // beside SchedulingSeries::names
  TextId cpu_key_ = kNoText;
  TextId waker_key_ = kNoText;
  TextId category_ = kNoText;
  std::map<ProcessKey, TrackId> groups_;
  TrackId lane_ = kNoTrack;  // at hand
  int64_t until_ns_ = 0;     // on it
};

}  // namespace

void PushScheduling(const SchedulingSeries& series, const SeriesPlace& place, Emitter* emitter) {
  if (series.threads.empty()) return;
  SchedulingLanes lanes(series, place, emitter);
  for (const ScheduledLane& thread : series.threads) lanes.Push(thread);
  lanes.PushLosses();
}

}  // namespace syncline::timeline
