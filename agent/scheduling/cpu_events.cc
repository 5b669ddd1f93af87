// SPDX-License-Identifier: Apache-2.0
#include "agent/scheduling/cpu_events.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/strip.h"
#include "agent/host/cpu_list.h"
#include "agent/host/perf_ring.h"
#include "common/files.h"
#include "common/status.h"
#include "common/text.h"

namespace syncline::agent {
namespace {

// A switch takes some 90 bytes, a wake-up 60. 1 MiB holds 0.1 s of 70,000 switches a second; the
// smaller size is what agents without CAP_IPC_LOCK may have (kernel.perf_event_mlock_kb).
constexpr size_t kPages = 256;
constexpr size_t kPagesMin = 64;
constexpr size_t kManyCpus = 64;
// The kernel drops a record for which there is no room: with so much left there was none dropped.
constexpr size_t kRoomFor = 1024;

// `forks`: with records of new threads.
absl::StatusOr<Descriptor> Open(uint32_t tracepoint, int32_t cpu, bool forks) {
  perf_event_attr attr = PerfAttributes(PERF_TYPE_TRACEPOINT, tracepoint);
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  attr.task = forks ? 1 : 0;
  return OpenPerfEvent(attr, -1, cpu);
}

struct WatchedCpu {
  int32_t cpu = 0;
  std::vector<Descriptor> events;  // the first one has the ring
  PerfRing ring;
  int64_t last_ns = 0;   // of the last record that was read, or the end of the last loss
  bool overrun = false;  // the next record is one of a loss that was told already
};

absl::StatusOr<WatchedCpu> Watch(int32_t cpu, size_t pages, const SchedulerTracepoints& points) {
  std::vector<Descriptor> events;
  for (const uint32_t id : {points.switch_id, points.waking_id, points.migrate_id}) {
    SYNCLINE_ASSIGN_OR_RETURN(Descriptor event, Open(id, cpu, id == points.switch_id));
    events.push_back(std::move(event));
  }
  SYNCLINE_ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Map(events.front().get(), pages));
  for (size_t i = 1; i < events.size(); ++i) {
    if (::ioctl(events[i].get(), PERF_EVENT_IOC_SET_OUTPUT, events.front().get()) != 0) {
      return ErrnoStatus(errno, "perf_event_open: no common ring");
    }
  }
  return WatchedCpu{cpu, std::move(events), std::move(ring)};
}

class Rings : public CpuEvents {
 public:
  Rings(const SchedulerTracepoints& points, std::vector<WatchedCpu> cpus)
      : points_(points), cpus_(std::move(cpus)) {}

  void Enable() override { Tell(PERF_EVENT_IOC_ENABLE); }
  void Disable() override { Tell(PERF_EVENT_IOC_DISABLE); }

  std::set<int32_t> Cpus() const override {
    std::set<int32_t> numbers;
    for (const WatchedCpu& cpu : cpus_) numbers.insert(cpu.cpu);
    return numbers;
  }

  CpuDrain Drain(const std::function<int64_t()>& now_ns) override {
    CpuDrain drain{.events = {}, .complete_ns = now_ns()};
    for (WatchedCpu& cpu : cpus_) {
      bytes_.clear();
      cpu.ring.Drain(&bytes_);
      SchedulerRecords records = ParseSchedulerRecords(bytes_, points_, cpu.cpu, cpu.last_ns);
      drain.damaged |= records.damaged;
      for (SchedulerEvent& event : records.events) {
        const bool told = event.kind == SchedulerEvent::Kind::kLoss && cpu.overrun;
        if (told) event.at_ns = event.until_ns = cpu.last_ns;  // its number is new, its time not
        cpu.overrun = false;
        cpu.last_ns = std::max({cpu.last_ns, event.at_ns, event.until_ns});
      }
      const double fill = static_cast<double>(bytes_.size()) / static_cast<double>(cpu.ring.size());
      drain.fullest = std::max(drain.fullest, fill);
      if (bytes_.size() + kRoomFor > cpu.ring.size()) {
        const int64_t emptied_ns = std::max(cpu.last_ns, now_ns());
        records.events.push_back({.kind = SchedulerEvent::Kind::kLoss,
                                  .cpu = cpu.cpu,
                                  .at_ns = cpu.last_ns,
                                  .until_ns = emptied_ns});
        cpu.last_ns = emptied_ns;
        cpu.overrun = true;
      }
      drain.events.insert(drain.events.end(), records.events.begin(), records.events.end());
    }
    return drain;
  }

 private:
  void Tell(unsigned long request) {
    for (const WatchedCpu& cpu : cpus_) {
      for (const Descriptor& event : cpu.events) ::ioctl(event.get(), request, 0);
    }
  }

  const SchedulerTracepoints points_;
  std::vector<WatchedCpu> cpus_;
  std::vector<uint8_t> bytes_;
};

absl::StatusOr<std::vector<WatchedCpu>> WatchAll(const CpuSet& online, size_t pages,
                                                 const SchedulerTracepoints& points) {
  std::vector<WatchedCpu> cpus;
  for (const uint32_t cpu : online) {
    SYNCLINE_ASSIGN_OR_RETURN(WatchedCpu watched, Watch(static_cast<int32_t>(cpu), pages, points));
    cpus.push_back(std::move(watched));
  }
  return cpus;
}

// Not empty.
absl::StatusOr<CpuSet> Online(const CpuEventsOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.online));
  auto online = ParseCpuList(StdView(absl::StripAsciiWhitespace(text)));
  if (online.has_value() && !online->empty()) return *std::move(online);
  return absl::FailedPreconditionError("the kernel does not say which CPUs are online");
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuEvents>> OpenSchedulerEvents(const CpuEventsOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const SchedulerTracepoints points,
                            FindSchedulerTracepoints(options.tracefs));
  SYNCLINE_ASSIGN_OR_RETURN(const CpuSet online, Online(options));
  auto cpus = WatchAll(online, online.size() > kManyCpus ? kPagesMin : kPages, points);
  // All smaller: the first ones would use up what may be locked.
  if (absl::IsResourceExhausted(cpus.status())) cpus = WatchAll(online, kPagesMin, points);
  if (!cpus.ok()) return cpus.status();
  return std::make_unique<Rings>(points, *std::move(cpus));
}

absl::Status ProbeSchedulerEvents(const CpuEventsOptions& options) {
  SYNCLINE_ASSIGN_OR_RETURN(const SchedulerTracepoints points,
                            FindSchedulerTracepoints(options.tracefs));
  SYNCLINE_ASSIGN_OR_RETURN(const CpuSet online, Online(options));
  return Open(points.switch_id, static_cast<int32_t>(*online.begin()), false).status();
}

}  // namespace syncline::agent
