// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/scheduler_records.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "agent/host/perf_walk.h"

namespace syncline::agent {
namespace {

// Of common_flags: hardware interrupt, software interrupt, NMI.
constexpr uint8_t kInterruptFlags = 0x08 | 0x10 | 0x40;

template <class T>
T At(std::span<const uint8_t> bytes, const TraceField& field) {
  T value{};
  if (sizeof value == field.size && field.offset + sizeof value <= bytes.size()) {
    std::memcpy(&value, bytes.data() + field.offset, sizeof value);
  }
  return value;
}

struct Ids {
  int32_t pid = 0;
  int32_t tid = 0;
};

// TID, TIME, size of the tracepoint's own record, that record.
std::optional<SchedulerEvent> EventOf(std::span<const uint8_t> body,
                                      const SchedulerTracepoints& points) {
  constexpr size_t kHead = sizeof(Ids) + sizeof(int64_t) + sizeof(uint32_t);
  if (body.size() < kHead) return std::nullopt;
  Ids ids;
  SchedulerEvent event;
  uint32_t size = 0;
  std::memcpy(&ids, body.data(), sizeof ids);
  std::memcpy(&event.at_ns, body.data() + sizeof ids, sizeof event.at_ns);
  std::memcpy(&size, body.data() + sizeof ids + sizeof event.at_ns, sizeof size);
  if (size > body.size() - kHead || size < sizeof(uint16_t)) return std::nullopt;
  const auto raw = body.subspan(kHead, size);
  const auto id = At<uint16_t>(raw, {0, sizeof(uint16_t)});
  event.seen_pid = std::max(0, ids.pid);
  event.seen_tid = std::max(0, ids.tid);
  event.current_tid = At<int32_t>(raw, points.current);
  event.interrupt = (At<uint8_t>(raw, points.flags) & kInterruptFlags) != 0;
  if (id == points.switch_id) {
    event.kind = SchedulerEvent::Kind::kSwitch;
    event.tid = At<int32_t>(raw, points.prev_tid);
    event.state = At<int64_t>(raw, points.prev_state);
    event.next_tid = At<int32_t>(raw, points.next_tid);
    event.name = At<ThreadName>(raw, points.prev_name);
    event.next_name = At<ThreadName>(raw, points.next_name);
    event.name.back() = event.next_name.back() = 0;
  } else if (id == points.waking_id) {
    event.kind = SchedulerEvent::Kind::kWake;
    event.tid = At<int32_t>(raw, points.woken_tid);
    event.to_cpu = At<int32_t>(raw, points.woken_cpu);
  } else if (id == points.migrate_id) {
    event.kind = SchedulerEvent::Kind::kMove;
    event.tid = At<int32_t>(raw, points.moved_tid);
    event.to_cpu = At<int32_t>(raw, points.moved_to);
  } else {
    return std::nullopt;
  }
  return event;
}

// PID, PID of the parent, TID, TID of the parent, TIME; as the agent sees them.
std::optional<SchedulerEvent> ForkOf(std::span<const uint8_t> body) {
  struct Body {
    int32_t pid;
    int32_t parent_pid;
    int32_t tid;
    int32_t parent_tid;
    int64_t at_ns;
  } fork{};
  if (body.size() < sizeof fork) return std::nullopt;
  std::memcpy(&fork, body.data(), sizeof fork);
  SchedulerEvent event{.kind = SchedulerEvent::Kind::kFork, .at_ns = fork.at_ns, .tid = fork.tid};
  event.seen_pid = std::max(0, fork.pid);
  event.seen_tid = std::max(0, fork.tid);
  event.parent_pid = std::max(0, fork.parent_pid);
  return event;
}

// ID, how many, TID, TIME.
std::optional<SchedulerEvent> LossOf(std::span<const uint8_t> body) {
  if (body.size() < 4 * sizeof(uint64_t)) return std::nullopt;
  SchedulerEvent loss{.kind = SchedulerEvent::Kind::kLoss};
  std::memcpy(&loss.count, body.data() + sizeof(uint64_t), sizeof loss.count);
  std::memcpy(&loss.until_ns, body.data() + 3 * sizeof(uint64_t), sizeof loss.until_ns);
  return loss;
}

}  // namespace

SchedulerRecords ParseSchedulerRecords(std::span<const uint8_t> bytes,
                                       const SchedulerTracepoints& tracepoints, int32_t cpu,
                                       int64_t last_ns) {
  SchedulerRecords records;
  records.damaged =
      !WalkPerfRecords(bytes, [&](const perf_event_header& header, std::span<const uint8_t> body) {
        const bool lost = header.type == PERF_RECORD_LOST;
        std::optional<SchedulerEvent> event;
        if (lost) {
          event = LossOf(body);
        } else if (header.type == PERF_RECORD_FORK) {
          event = ForkOf(body);
        } else if (header.type == PERF_RECORD_SAMPLE) {
          event = EventOf(body, tracepoints);
        } else {
          return true;
        }
        if (!event.has_value()) return false;
        if (lost) event->at_ns = std::min(last_ns, event->until_ns);
        event->cpu = cpu;
        last_ns = std::max(last_ns, lost ? event->until_ns : event->at_ns);
        records.events.push_back(*event);
        return true;
      });
  return records;
}

}  // namespace syncline::agent
