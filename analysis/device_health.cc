// SPDX-License-Identifier: Apache-2.0
#include "analysis/device_health.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

namespace syncline::analysis {
namespace {

using evidence::DeviceSample;
using evidence::DeviceValue;

struct Reading {
  int64_t at_ns = 0;
  int64_t until_ns = 0;
  int64_t amount = 0;

  int64_t middle_ns() const { return at_ns + (until_ns - at_ns) / 2; }
};

bool Grows(DeviceValue value) { return value >= DeviceValue::kEnergyMj; }

// NVML's header: "Value can be wrapped".
bool Wraps(DeviceValue value) {
  return value == DeviceValue::kPcieSentBytes || value == DeviceValue::kPcieReceivedBytes;
}

bool IsInside(const DeviceSample& sample, const HealthWindow& window) {
  return window.begin_ns <= sample.at_ns && sample.until_ns <= window.end_ns;
}

std::vector<Reading> ReadingsOf(const std::vector<const DeviceSample*>& samples,
                                DeviceValue value) {
  std::vector<Reading> readings;
  for (const DeviceSample* sample : samples) {
    const auto amount = sample->values.Get(value);
    if (amount.has_value()) readings.push_back({sample->at_ns, sample->until_ns, *amount});
  }
  return readings;
}

ValueSpread SpreadOf(std::vector<int64_t> amounts) {
  std::sort(amounts.begin(), amounts.end());
  const double sum = std::accumulate(amounts.begin(), amounts.end(), 0.0);
  return {.min = amounts.front(),
          .median = amounts[amounts.size() / 2],
          .mean = static_cast<int64_t>(sum / static_cast<double>(amounts.size())),
          .max = amounts.back()};
}

// A counter's readings from the last one before the window to the first one behind it, where there
// are such.
class Counted {
 public:
  Counted(const std::vector<Reading>& readings, const HealthWindow& window) : window_(window) {
    for (const Reading& reading : readings) {
      if (reading.until_ns <= window.begin_ns) around_.clear();
      around_.push_back(reading);
      if (reading.at_ns >= window.end_ns) break;
    }
    // One that begins anew says nothing.
    for (size_t i = 1; i < around_.size(); ++i) {
      if (around_[i].amount < around_[i - 1].amount) around_.clear();
    }
    if (around_.size() < 2 || around_.front().at_ns >= window.end_ns ||
        around_.back().until_ns <= window.begin_ns) {
      around_.clear();
    }
  }

  bool known() const { return !around_.empty(); }
  int64_t grown() const { return around_.back().amount - around_.front().amount; }
  int64_t time_ns() const { return around_.back().middle_ns() - around_.front().middle_ns(); }

  CounterGrowth Growth() const {
    return {.amount = grown(),
            .inside = inside(),
            .beside_ns = std::max({int64_t{0}, window_.begin_ns - around_.front().at_ns,
                                   around_.back().until_ns - window_.end_ns})};
  }

  // What it grew by a second, if its time is that of the window but for a small part.
  std::optional<double> RateOfWindow() const {
    constexpr int64_t kOfWindow = 20;
    const int64_t apart_ns = std::abs(around_.front().middle_ns() - window_.begin_ns) +
                             std::abs(around_.back().middle_ns() - window_.end_ns);
    if (time_ns() <= 0 || apart_ns > (window_.end_ns - window_.begin_ns) / kOfWindow) {
      return std::nullopt;
    }
    constexpr double kNsPerSecond = 1e9;
    return static_cast<double>(grown()) * kNsPerSecond / static_cast<double>(time_ns());
  }

  WindowShare Share() const {
    const int64_t length_ns = window_.end_ns - window_.begin_ns;
    const int64_t open_ns = std::max<int64_t>(0, around_.front().until_ns - window_.begin_ns) +
                            std::max<int64_t>(0, window_.end_ns - around_.back().at_ns);
    const auto part = [&](double ns) {
      return std::clamp(ns / static_cast<double>(length_ns), 0.0, 1.0);
    };
    WindowShare share;
    share.lo = part(static_cast<double>(inside()));
    share.hi = part(static_cast<double>(grown()) + static_cast<double>(open_ns));
    const double rate =
        static_cast<double>(grown()) / static_cast<double>(std::max<int64_t>(1, time_ns()));
    share.est = std::clamp(rate, share.lo, share.hi);
    return share;
  }

 private:
  // From the first reading inside the window to the last one.
  int64_t inside() const {
    const Reading* first = nullptr;
    const Reading* last = nullptr;
    for (const Reading& reading : around_) {
      if (reading.at_ns < window_.begin_ns || reading.until_ns > window_.end_ns) continue;
      if (first == nullptr) first = &reading;
      last = &reading;
    }
    return first == nullptr ? 0 : last->amount - first->amount;
  }

  const HealthWindow window_;
  std::vector<Reading> around_;
};

void AddCounter(DeviceValue value, const Counted& counted, DeviceHealth* health) {
  if (!counted.known()) return;
  if (IsHeldBackTime(value)) {
    health->held_back[value] = counted.Share();
    return;
  }
  health->grown[value] = counted.Growth();
  if (value != DeviceValue::kEnergyMj) return;
  const std::optional<double> mw = counted.RateOfWindow();
  if (!mw.has_value() || *mw > static_cast<double>(evidence::kPowerMwMax)) return;
  health->mean_power_mw = static_cast<int64_t>(*mw);
}

void AddValues(const std::vector<const DeviceSample*>& samples, const HealthWindow& window,
               DeviceHealth* health) {
  for (size_t i = 0; i < evidence::kDeviceValues; ++i) {
    const auto value = static_cast<DeviceValue>(i);
    if (Wraps(value)) continue;
    const std::vector<Reading> readings = ReadingsOf(samples, value);
    if (Grows(value)) {
      AddCounter(value, Counted(readings, window), health);
      continue;
    }
    if (value == DeviceValue::kReasons) continue;  // bits; the counters say for how long
    std::vector<int64_t> inside;
    for (const Reading& reading : readings) {
      if (window.begin_ns <= reading.at_ns && reading.until_ns <= window.end_ns) {
        inside.push_back(reading.amount);
      }
    }
    if (!inside.empty()) health->values[value] = SpreadOf(std::move(inside));
  }
}

// What was said of one device.
struct OfDevice {
  std::vector<const DeviceSample*> samples;
  std::vector<const evidence::DeviceUser*> users;
  std::vector<const evidence::DeviceError*> errors;

  bool empty() const { return samples.empty() && users.empty() && errors.empty(); }
};

std::vector<OfDevice> ByDevice(const evidence::DeviceSamples& samples) {
  std::vector<OfDevice> all(samples.devices.size());
  for (const auto& one : samples.samples) all[one.device].samples.push_back(&one);
  for (const auto& one : samples.users) all[one.device].users.push_back(&one);
  for (const auto& one : samples.errors) all[one.device].errors.push_back(&one);
  return all;
}

// How many samples lie inside, and where they end.
void AddExtent(const std::vector<const DeviceSample*>& samples, const HealthWindow& window,
               DeviceHealth* health) {
  constexpr int64_t kEarlyNs = 3'000'000'000;
  const int64_t early_ns = std::min(kEarlyNs, health->window_ns / 3);
  const DeviceSample* last = nullptr;
  for (const DeviceSample* sample : samples) {
    if (!IsInside(*sample, window)) continue;
    ++health->samples;
    last = sample;
  }
  if (last != nullptr && window.end_ns - last->until_ns > early_ns) {
    health->readings_end_ns = last->until_ns - window.begin_ns;
  }
}

// A process is looked for once a second, behind a reading.
constexpr int64_t kLookNs = 1'500'000'000;

// Whether who uses the device was certainly looked for inside the window, also if nobody was found.
bool LooksInside(const OfDevice& given, const HealthWindow& window) {
  const auto inside = [&](const auto* user) {
    return window.begin_ns <= user->at_ns && user->at_ns <= window.end_ns;
  };
  if (std::any_of(given.users.begin(), given.users.end(), inside)) return true;
  const DeviceSample* first = nullptr;
  const DeviceSample* last = nullptr;
  for (const DeviceSample* sample : given.samples) {
    if (!IsInside(*sample, window)) continue;
    if (first == nullptr) first = sample;
    last = sample;
  }
  return first != nullptr && last->at_ns - first->until_ns >= kLookNs;
}

// In a window between two looks one that was found shortly before counts.
void AddUsers(const evidence::DeviceSamples& samples, const OfDevice& given,
              const HealthWindow& window, DeviceHealth* health) {
  const int64_t from_ns = window.begin_ns - (LooksInside(given, window) ? 0 : kLookNs);
  std::set<uint32_t> known;
  for (const evidence::DeviceUser* one : given.users) {
    const evidence::DeviceUser& user = *one;
    if (user.at_ns < from_ns || user.at_ns > window.end_ns) continue;
    if (!known.insert(user.process).second) continue;
    const evidence::DeviceProcess& process = samples.processes[user.process];
    DeviceUserReport& found = health->users.emplace_back();
    found.name = process.name;
    found.pid = process.pid;
    if (process.pid_namespace_inode == 0) continue;
    found.process = {0, static_cast<uint64_t>(process.pid_namespace_inode), process.own_pid,
                     process.start_ticks};
  }
}

void AddErrors(const std::vector<const evidence::DeviceError*>& errors, const HealthWindow& window,
               DeviceHealth* health) {
  for (const evidence::DeviceError* error : errors) {
    if (error->until_ns < window.begin_ns || error->at_ns > window.end_ns) continue;
    health->errors.push_back(
        {error->number, error->at_ns - window.begin_ns, error->until_ns - window.begin_ns});
  }
}

}  // namespace

bool IsHeldBackTime(DeviceValue value) {
  return DeviceValue::kPowerNs <= value && value <= DeviceValue::kMemoryHotNs;
}

const char* HeldBackBy(DeviceValue reason) {
  switch (reason) {
    case DeviceValue::kPowerNs:
      return "by its power limit";
    case DeviceValue::kThermalNs:
      return "by its temperature";
    case DeviceValue::kSyncBoostNs:
      return "to keep step with other devices";
    case DeviceValue::kBoardLimitNs:
      return "by a limit of its board";
    case DeviceValue::kLowUseNs:
      return "because it had little to do";
    case DeviceValue::kReliabilityNs:
      return "by its reliability limit";
    case DeviceValue::kHardwareHotNs:
      return "by its protection from heat";
    case DeviceValue::kHardwarePowerNs:
      return "by a signal to draw less power";
    case DeviceValue::kRegulatorHotNs:
      return "by the temperature of its voltage regulators";
    case DeviceValue::kMemoryHotNs:
      return "by the temperature of its memory";
    default:
      return "";
  }
}

std::vector<DeviceHealth> HealthOf(const evidence::DeviceSamples& samples,
                                   const HealthWindow& window) {
  const std::vector<OfDevice> by_device = ByDevice(samples);
  std::vector<DeviceHealth> all;
  for (uint32_t i = 0; i < by_device.size(); ++i) {
    const OfDevice& given = by_device[i];
    if (given.empty() || window.end_ns <= window.begin_ns) continue;
    DeviceHealth health;
    health.number = i;
    health.device = samples.devices[i];
    health.window_ns = window.end_ns - window.begin_ns;
    AddExtent(given.samples, window, &health);
    AddValues(given.samples, window, &health);
    AddUsers(samples, given, window, &health);
    AddErrors(given.errors, window, &health);
    all.push_back(std::move(health));
  }
  return all;
}

}  // namespace syncline::analysis
