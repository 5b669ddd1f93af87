// SPDX-License-Identifier: Apache-2.0
#include "agent/code/software_ring.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <utility>

#include "agent/host/perf_ring.h"
#include "common/files.h"
#include "common/status.h"

namespace syncline::agent {
namespace {

// No PERF_SAMPLE_PERIOD: with it the kernel notes each single event of a fixed period.
perf_event_attr Attributes(uint64_t config, bool kernel, uint64_t period) {
  perf_event_attr attr = PerfAttributes(PERF_TYPE_SOFTWARE, config);
  attr.sample_period = period;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_READ;
  attr.exclude_kernel = kernel ? 0 : 1;
  attr.exclude_hv = 1;
  return attr;
}

class PerfSoftwareRing : public SoftwareRing {
 public:
  PerfSoftwareRing(Descriptor minor, Descriptor major, PerfRing ring, uint64_t minor_id)
      : minor_(std::move(minor)),
        major_(std::move(major)),
        ring_(std::move(ring)),
        minor_id_(minor_id) {}

  void Enable() override { Call(PERF_EVENT_IOC_ENABLE); }
  void Disable() override { Call(PERF_EVENT_IOC_DISABLE); }
  void SetPeriod(uint64_t period) override {
    ::ioctl(minor_.get(), PERF_EVENT_IOC_PERIOD, &period);
  }
  SoftwareRecords Drain() override {
    std::vector<uint8_t> bytes;
    ring_.Drain(&bytes);
    return ParseSoftwareRecords(bytes);
  }
  uint64_t minor_id() const override { return minor_id_; }

 private:
  void Call(unsigned long request) {
    ::ioctl(minor_.get(), request, 0);
    ::ioctl(major_.get(), request, 0);
  }

  Descriptor minor_;
  Descriptor major_;  // it writes into the ring of the other
  PerfRing ring_;
  uint64_t minor_id_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SoftwareRing>> OpenPerfSoftwareRing(int32_t tid, bool kernel,
                                                                   uint64_t period) {
  SYNCLINE_ASSIGN_OR_RETURN(
      Descriptor minor,
      OpenPerfEvent(Attributes(PERF_COUNT_SW_PAGE_FAULTS_MIN, kernel, period), tid, -1));
  perf_event_attr rare = Attributes(PERF_COUNT_SW_PAGE_FAULTS_MAJ, kernel, 1);
  rare.context_switch = 1;
  SYNCLINE_ASSIGN_OR_RETURN(Descriptor major, OpenPerfEvent(rare, tid, -1));
  SYNCLINE_ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Map(minor.get(), kSoftwareRingPages));
  uint64_t id = 0;
  if (::ioctl(major.get(), PERF_EVENT_IOC_SET_OUTPUT, minor.get()) != 0 ||
      ::ioctl(minor.get(), PERF_EVENT_IOC_ID, &id) != 0) {
    return PerfOpenError(errno);
  }
  return std::make_unique<PerfSoftwareRing>(std::move(minor), std::move(major), std::move(ring),
                                            id);
}

}  // namespace syncline::agent
