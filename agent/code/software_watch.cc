// SPDX-License-Identifier: Apache-2.0
#include "agent/code/software_watch.h"

#include <algorithm>
#include <utility>

#include "agent/evidence/proc_text.h"
#include "agent/host/process_table.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

using evidence::SoftwareKind;
using evidence::SoftwareTotals;

constexpr uint64_t kPeriodMin = 16;  // of minor faults: a note costs ten times what a fault does
constexpr uint64_t kPeriodMax = 1 << 20;
constexpr uint64_t kPeriodFirst = 64;
constexpr uint64_t kNotesATurn = 200;      // of a thread's minor faults
constexpr uint64_t kRecordsATurn = 2'000;  // of all threads: the agent has to read and write them
// So much in all, whatever it is of the time: a program may have many of them as it begins.
constexpr int64_t kCostFree = 10'000'000;  // ns
constexpr uint64_t kRecordsFree = 20'000;
constexpr int64_t kAnyTicks = 100;  // processor time is not asked for

}  // namespace

SoftwareWatch::SoftwareWatch(OpenSoftwareRing open, SoftwareWatchOptions options)
    : open_(std::move(open)),
      options_(std::move(options)),
      cost_(options_.cost),
      seed_(options_.seed) {}

uint64_t SoftwareWatch::Chance() {
  seed_ ^= seed_ << 13;
  seed_ ^= seed_ >> 7;
  seed_ ^= seed_ << 17;
  return seed_;
}

absl::Status SoftwareWatch::Probe(bool kernel, std::string* text) {
  const absl::Status status = open_(0, kernel, kPeriodFirst).status();
  if (!status.ok()) return status;
  kernel_ = kernel;
  allowed_ = true;
  if (options_.measure) cost_ = MeasureSoftwareCost(open_, kernel);
  evidence::AppendSoftwareHead(kernel, text);
  return absl::OkStatus();
}

std::optional<SoftwareTotals> SoftwareWatch::TotalsOf(uint32_t number, const Thread& thread) const {
  const auto stat = ParseProcStat(ProcFile(thread.folder / "stat"), kAnyTicks);
  const auto switches = ParseSwitchCounts(ProcFile(thread.folder / "status"));
  if (!stat.has_value() || !switches.has_value()) return std::nullopt;
  return SoftwareTotals{
      number, static_cast<uint64_t>(stat->minor_faults), static_cast<uint64_t>(stat->major_faults),
      static_cast<uint64_t>(switches->voluntary), static_cast<uint64_t>(switches->involuntary)};
}

absl::Status SoftwareWatch::Add(uint32_t thread, int32_t pid, int32_t tid) {
  if (!allowed_) return absl::OkStatus();
  if (threads_.size() >= options_.threads_max) {
    ++left_out_;
    return absl::OkStatus();
  }
  SYNCLINE_ASSIGN_OR_RETURN(auto ring, open_(tid, kernel_, kPeriodFirst));
  Thread& added = threads_[thread];
  added.folder = options_.proc / std::to_string(pid) / "task" / std::to_string(tid);
  added.ring = std::move(ring);
  added.period = kPeriodFirst;
  if (!enabled_) return absl::OkStatus();
  added.before = TotalsOf(thread, added);
  if (watching_) added.ring->Enable();
  return absl::OkStatus();
}

void SoftwareWatch::Enable(int64_t now_ns) {
  enabled_ = true;
  watching_ = true;
  turn_begin_ns_ = now_ns;
  for (auto& [number, thread] : threads_) {
    thread.before = TotalsOf(number, thread);
    thread.ring->Enable();
  }
}

void SoftwareWatch::Turn(int64_t now_ns, int64_t used_ns, std::string* text) {
  if (!enabled_) return;
  for (auto& [number, thread] : threads_) Drain(number, &thread, text);
  Count(now_ns, used_ns);
  if (watching_ && CostsTooMuch()) End(text);
  if (!watching_) return;
  for (auto& [number, thread] : threads_) SetPeriod(&thread);
}

// What the turn has cost.
void SoftwareWatch::Count(int64_t now_ns, int64_t used_ns) {
  const int64_t passed_ns = now_ns - std::exchange(turn_begin_ns_, now_ns);
  watched_.all_ns += passed_ns;
  const Work work = std::exchange(work_, {});
  if (!watching_) return;
  used_ns_ += used_ns;
  records_ += work.notes + 2 * work.switches;
  ++turns_;
  watched_.watched_ns += passed_ns;
  watched_.until_ns = now_ns;
  watched_.cost_ns += static_cast<int64_t>(work.faults) * cost_.fault_ns +
                      static_cast<int64_t>(work.notes) * cost_.note_ns +
                      static_cast<int64_t>(work.switches) * cost_.switch_ns;
}

bool SoftwareWatch::CostsTooMuch() const {
  return watched_.cost_ns > kCostFree + used_ns_ / options_.share ||
         records_ > kRecordsFree + turns_ * kRecordsATurn;
}

// For good: what is watched by turns stands for what it does not see, and by how much that may be
// wrong nobody can tell of every program.
void SoftwareWatch::End(std::string* text) {
  watching_ = false;
  for (auto& [number, thread] : threads_) {
    SayAway(&thread, 0, text);
    thread.ring->Disable();
  }
}

// Never twice the same: a period that divides what the program does in a step would meet the same
// place each time.
void SoftwareWatch::SetPeriod(Thread* thread) {
  const uint64_t wanted = std::clamp(thread->faults_a_turn / kNotesATurn, kPeriodMin, kPeriodMax);
  if (thread->faults_a_turn == 0 && thread->period == wanted) return;
  thread->period = wanted + (wanted > kPeriodMin ? Chance() % (wanted / 4 + 1) : 0);
  thread->ring->SetPeriod(thread->period);
}

void SoftwareWatch::Drain(uint32_t number, Thread* thread, std::string* text) {
  const uint64_t before = work_.faults;
  const SoftwareRecords records = thread->ring->Drain();
  for (const SoftwareRecord& record : records.records) Take(record, number, thread, text);
  if (!watching_) return;
  // The most of the last turns: many faults may come behind turns without any.
  thread->faults_a_turn = std::max(work_.faults - before, thread->faults_a_turn / 8 * 7);
}

void SoftwareWatch::Take(const SoftwareRecord& record, uint32_t number, Thread* thread,
                         std::string* text) {
  const int64_t at_ns = record.time_ns + options_.time_shift_ns;
  evidence::SoftwareEvent event{number, at_ns, SoftwareKind::kMinorFault, 1, 0};
  const bool lost = record.kind == SoftwareRecord::Kind::kLost;
  const int32_t left = std::exchange(thread->cpu, lost ? -1 : record.cpu);
  switch (record.kind) {
    case SoftwareRecord::Kind::kSample:
      ++work_.notes;
      if (record.id != thread->ring->minor_id()) {
        event.kind = SoftwareKind::kMajorFault;
      } else {
        const uint64_t new_faults = record.count - std::exchange(thread->noted, record.count);
        work_.faults += new_faults;
        event.count = new_faults;
      }
      return evidence::Append(event, text);
    case SoftwareRecord::Kind::kBlocked:
    case SoftwareRecord::Kind::kPreempted:
      ++work_.switches;
      event.kind = record.kind == SoftwareRecord::Kind::kBlocked ? SoftwareKind::kBlocked
                                                                 : SoftwareKind::kPreempted;
      SayAway(thread, 0, text);
      thread->away = event;
      return;
    case SoftwareRecord::Kind::kRuns:
      SayAway(thread, at_ns, text);
      if (left < 0 || left == record.cpu) return;
      event.kind = SoftwareKind::kMoved;
      return evidence::Append(event, text);
    case SoftwareRecord::Kind::kLost:
      work_.switches += (record.count + 1) / 2;  // mostly: away, and back
      SayAway(thread, 0, text);
      return evidence::Append(evidence::SoftwareLoss{number, at_ns, record.count}, text);
  }
}

// `until_ns` 0: it is not known when it ran again.
void SoftwareWatch::SayAway(Thread* thread, int64_t until_ns, std::string* text) {
  if (!thread->away.has_value()) return;
  evidence::SoftwareEvent& away = *thread->away;
  away.away_ns = std::max<int64_t>(until_ns - away.at_ns, 0);
  evidence::Append(away, text);
  thread->away.reset();
}

void SoftwareWatch::Finish(uint32_t number, Thread* thread, std::string* text) {
  Drain(number, thread, text);
  SayAway(thread, 0, text);
  const auto now = TotalsOf(number, *thread);
  if (!now.has_value() || !thread->before.has_value()) return;
  const SoftwareTotals& before = *thread->before;
  evidence::Append(SoftwareTotals{number, now->minor_faults - before.minor_faults,
                                  now->major_faults - before.major_faults,
                                  now->blocked - before.blocked, now->preempted - before.preempted},
                   text);
}

void SoftwareWatch::Remove(uint32_t thread, std::string* text) {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return;
  Finish(thread, &found->second, text);
  threads_.erase(found);
}

void SoftwareWatch::Disable(int64_t now_ns, std::string* text) {
  if (!std::exchange(enabled_, false)) return;
  for (auto& [number, thread] : threads_) thread.ring->Disable();
  for (auto& [number, thread] : threads_) Finish(number, &thread, text);
  threads_.clear();
  Count(now_ns, 0);
  evidence::Append(watched_, text);
}

}  // namespace syncline::agent
