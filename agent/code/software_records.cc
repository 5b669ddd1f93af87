// SPDX-License-Identifier: Apache-2.0
#include "agent/code/software_records.h"

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>

#include "agent/host/perf_walk.h"

namespace syncline::agent {
namespace {

// The body's first words, if it has as many.
template <size_t kWords>
std::optional<std::array<uint64_t, kWords>> WordsOf(std::span<const uint8_t> body) {
  std::array<uint64_t, kWords> words{};
  if (body.size() < sizeof words) return std::nullopt;
  std::memcpy(words.data(), body.data(), sizeof words);
  return words;
}

int32_t CpuOf(uint64_t word) { return static_cast<int32_t>(static_cast<uint32_t>(word)); }

// IDENTIFIER, TIME, CPU, the event's count.
bool TakeSample(std::span<const uint8_t> body, SoftwareRecords* records) {
  const auto words = WordsOf<4>(body);
  if (!words.has_value()) return false;
  const auto& [id, time, cpu, count] = *words;
  records->records.push_back({.kind = SoftwareRecord::Kind::kSample,
                              .time_ns = static_cast<int64_t>(time),
                              .cpu = CpuOf(cpu),
                              .id = id,
                              .count = count});
  return true;
}

// TIME, CPU, IDENTIFIER.
bool TakeSwitch(uint16_t misc, std::span<const uint8_t> body, SoftwareRecords* records) {
  const auto words = WordsOf<3>(body);
  if (!words.has_value()) return false;
  const auto& [time, cpu, id] = *words;
  const auto kind = (misc & PERF_RECORD_MISC_SWITCH_OUT) == 0 ? SoftwareRecord::Kind::kRuns
                    : (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0
                        ? SoftwareRecord::Kind::kPreempted
                        : SoftwareRecord::Kind::kBlocked;
  records->records.push_back(
      {.kind = kind, .time_ns = static_cast<int64_t>(time), .cpu = CpuOf(cpu), .id = id});
  return true;
}

// ID, how many, TIME, CPU, IDENTIFIER.
bool TakeLoss(std::span<const uint8_t> body, SoftwareRecords* records) {
  const auto words = WordsOf<3>(body);
  if (!words.has_value()) return false;
  const auto& [id, count, time] = *words;
  records->records.push_back({.kind = SoftwareRecord::Kind::kLost,
                              .time_ns = static_cast<int64_t>(time),
                              .id = id,
                              .count = count});
  return true;
}

}  // namespace

SoftwareRecords ParseSoftwareRecords(std::span<const uint8_t> bytes) {
  SoftwareRecords records;
  records.damaged =
      !WalkPerfRecords(bytes, [&](const perf_event_header& header, std::span<const uint8_t> body) {
        switch (header.type) {
          case PERF_RECORD_SAMPLE:
            return TakeSample(body, &records);
          case PERF_RECORD_SWITCH:
            return TakeSwitch(header.misc, body, &records);
          case PERF_RECORD_LOST:
            return TakeLoss(body, &records);
          default:
            return true;
        }
      });
  return records;
}

}  // namespace syncline::agent
