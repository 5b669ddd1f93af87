// SPDX-License-Identifier: Apache-2.0
#include "agent/code/perf_records.h"

#include <linux/perf_event.h>

#include <cstring>
#include <optional>

#include "agent/host/perf_walk.h"

namespace syncline::agent {
namespace {

// Of addresses: those of the kernel are in the upper half.
constexpr uint64_t kKernelBit = uint64_t{1} << 63;
// Whoever wrote a callchain, the kernel's limit for one (kernel.perf_event_max_stack) is far below.
constexpr uint64_t kChainMax = 4096;

class Fields {
 public:
  explicit Fields(std::span<const uint8_t> bytes) : left_(bytes) {}
  std::optional<uint64_t> Word() {
    uint64_t word = 0;
    if (left_.size() < sizeof word) return std::nullopt;
    std::memcpy(&word, left_.data(), sizeof word);
    left_ = left_.subspan(sizeof word);
    return word;
  }

 private:
  std::span<const uint8_t> left_;
};

// IP, TID, TIME, number of addresses, addresses: each kind of them behind a marker of the kernel's.
bool TakeSample(Fields fields, PerfRecords* records) {
  const auto ip = fields.Word();
  const auto ids = fields.Word();
  const auto time = fields.Word();
  const auto count = fields.Word();
  if (!ip || !ids || !time || !count || *count > kChainMax) return false;
  PerfSample sample{.time_ns = static_cast<int64_t>(*time)};
  std::vector<uint64_t>* part = nullptr;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto address = fields.Word();
    if (!address) return false;
    if (*address >= PERF_CONTEXT_MAX) {
      part = *address == PERF_CONTEXT_KERNEL ? &sample.kernel
             : *address == PERF_CONTEXT_USER ? &sample.user
                                             : nullptr;
    } else if (part != nullptr) {
      part->push_back(*address);
    }
  }
  if (sample.kernel.empty() && sample.user.empty()) {
    ((*ip & kKernelBit) != 0 ? sample.kernel : sample.user).push_back(*ip);
  }
  records->samples.push_back(std::move(sample));
  return true;
}

// ID, how many, TID, TIME.
bool TakeLoss(Fields fields, PerfRecords* records) {
  const auto id = fields.Word();
  const auto count = fields.Word();
  const auto ids = fields.Word();
  const auto time = fields.Word();
  if (!id || !count || !ids || !time) return false;
  records->losses.push_back({static_cast<int64_t>(*time), *count});
  return true;
}

// TID, three words, a name, TID, TIME: the last word is the time.
bool TakeMapping(std::span<const uint8_t> body, PerfRecords* records) {
  if (body.size() < 6 * sizeof(uint64_t)) return false;
  const auto time = Fields(body.last(sizeof(uint64_t))).Word();
  records->mapped_ns.push_back(static_cast<int64_t>(*time));
  return true;
}

}  // namespace

PerfRecords ParsePerfRecords(std::span<const uint8_t> bytes) {
  PerfRecords records;
  records.damaged =
      !WalkPerfRecords(bytes, [&](const perf_event_header& header, std::span<const uint8_t> body) {
        switch (header.type) {
          case PERF_RECORD_SAMPLE:
            return TakeSample(Fields(body), &records);
          case PERF_RECORD_LOST:
            return TakeLoss(Fields(body), &records);
          case PERF_RECORD_MMAP:
            return TakeMapping(body, &records);
          case PERF_RECORD_THROTTLE:
            records.throttled = true;
            return true;
          default:
            return true;
        }
      });
  return records;
}

}  // namespace syncline::agent
