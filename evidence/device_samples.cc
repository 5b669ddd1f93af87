// SPDX-License-Identifier: Apache-2.0
#include "evidence/device_samples.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "evidence/words.h"
#include "evidence/write.h"

namespace syncline::evidence {
namespace {

constexpr size_t kItemsMax = 1 << 20;  // of a kind; samples of 8 devices for 7 hours
constexpr size_t kDevicesMax = 1024;
constexpr int64_t kBitsMax = int64_t{1} << 62;
constexpr int64_t kGrownMax = 1'000'000'000'000'000'000;  // of links and times, for 30 years
constexpr int64_t kCountMax = 1'000'000'000'000;          // of errors
constexpr size_t kNotesMax = 100;

constexpr std::array<const char*, kDeviceValues> kNames = {"sm_mhz",
                                                           "memory_mhz",
                                                           "power_mw",
                                                           "power_limit_mw",
                                                           "device_celsius",
                                                           "memory_celsius",
                                                           "busy_percent",
                                                           "memory_busy_percent",
                                                           "memory_used_bytes",
                                                           "reasons",
                                                           "energy_mj",
                                                           "power_ns",
                                                           "thermal_ns",
                                                           "sync_boost_ns",
                                                           "board_limit_ns",
                                                           "low_use_ns",
                                                           "reliability_ns",
                                                           "hardware_hot_ns",
                                                           "hardware_power_ns",
                                                           "regulator_hot_ns",
                                                           "memory_hot_ns",
                                                           "corrected_errors",
                                                           "uncorrected_errors",
                                                           "pcie_replays",
                                                           "pcie_sent_bytes",
                                                           "pcie_received_bytes",
                                                           "nvlink_sent_kib",
                                                           "nvlink_received_kib"};

// What no device can have is damage. Guessed, far above all that there is: products of two of them
// fit a double, and quotients of them a number.
int64_t MostOf(DeviceValue value) {
  switch (value) {
    case DeviceValue::kSmMhz:
    case DeviceValue::kMemoryMhz:
      return 100'000;
    case DeviceValue::kPowerMw:
    case DeviceValue::kPowerLimitMw:
      return kPowerMwMax;
    case DeviceValue::kDeviceCelsius:
    case DeviceValue::kMemoryCelsius:
      return 1'000;
    case DeviceValue::kBusyPercent:
    case DeviceValue::kMemoryBusyPercent:
      return 100;
    case DeviceValue::kMemoryUsedBytes:
      return 1'000'000'000'000'000;
    case DeviceValue::kReasons:
      return kBitsMax;
    case DeviceValue::kCorrectedErrors:
    case DeviceValue::kUncorrectedErrors:
    case DeviceValue::kPcieReplays:
      return kCountMax;
    default:
      return kGrownMax;
  }
}

class DevicesParser {
 public:
  void Line(std::string_view line) {
    Words words(line);
    const std::string_view kind = words.Word();
    if (kind.size() != 1 || !Take(kind[0], &words)) ++found_.damaged_lines;
  }
  DeviceSamples Finish() { return std::move(found_); }

 private:
  bool Take(char kind, Words* words) {
    switch (kind) {
      case 'L':
        found_.driver_version = words->Text();
        found_.library = words->Text();
        return words->Whole();
      case 'D':
        return TakeDevice(words);
      case 's':
        return TakeSample(words);
      case 'P':
        return TakeProcess(words);
      case 'u': {
        DeviceUser user{words->Index(found_.devices.size()), words->Ns(),
                        words->Index(found_.processes.size())};
        return words->Keep(user, &found_.users, kItemsMax);
      }
      case 'x': {
        DeviceError error;
        error.device = words->Index(found_.devices.size());
        words->Bracket(&error.at_ns, &error.until_ns);
        error.number = words->Number<int64_t>();
        return words->Keep(error, &found_.errors, kItemsMax);
      }
      case 'c':
        found_.cost_ns = words->Ns();
        return words->Whole();
      case 'N':
        return words->Keep(words->Text(), &found_.notes, kNotesMax);
      case 'E':
        found_.ended |= !words->More();
        return !words->More();
      default:  // of a later version, perhaps: what is not known is left out
        return false;
    }
  }

  // A damaged line of these two still takes its number: others refer to those behind it.
  bool TakeDevice(Words* words) {
    if (found_.devices.size() >= kDevicesMax) return false;
    Device& device = found_.devices.emplace_back();
    device.id = words->Text();
    device.name = words->Text();
    device.bus = words->Text();
    device.memory_bytes = words->Number<int64_t>();
    device.sm_mhz_max = words->Number<int64_t>();
    device.errors_watched = words->Index(2) == 1;
    if (words->Whole()) return true;
    device = {};
    return false;
  }

  bool TakeProcess(Words* words) {
    if (found_.processes.size() >= kItemsMax) return false;
    found_.processes.push_back(TakeIdentity(words));
    return words->Whole();
  }

  bool TakeSample(Words* words) {
    if (found_.samples.size() >= kItemsMax) return false;
    DeviceSample sample;
    sample.device = words->Index(found_.devices.size());
    words->Bracket(&sample.at_ns, &sample.until_ns);
    TakeNamed<DeviceValue, int64_t>(kNames, words, &sample.values);
    if (words->wrong()) return false;
    found_.samples.push_back(sample);
    return true;
  }

  DeviceSamples found_;
};

}  // namespace

const char* DeviceValueName(DeviceValue value) { return kNames[static_cast<size_t>(value)]; }

void DeviceValues::Set(DeviceValue value, int64_t amount) {
  values_[static_cast<size_t>(value)] = amount < 0 || amount > MostOf(value) ? -1 : amount;
}

bool DeviceValues::Any() const {
  return std::any_of(values_.begin(), values_.end(), [](int64_t amount) { return amount >= 0; });
}

absl::StatusOr<DeviceSamples> ParseDeviceSamples(std::string_view text) {
  return ParseText<DevicesParser>(text, kDevicesHead);
}

void AppendDevicesHead(std::string* out) { absl::StrAppend(out, kDevicesHead, "\n"); }

void AppendLibrary(std::string_view driver_version, std::string_view path, std::string* out) {
  absl::StrAppend(out, "L ", Escaped(driver_version), " ", Escaped(path), "\n");
}

void Append(const Device& device, std::string* out) {
  absl::StrAppend(out, "D ", Escaped(device.id), " ", Escaped(device.name), " ");
  absl::StrAppend(out, Escaped(device.bus), " ", device.memory_bytes, " ", device.sm_mhz_max, " ",
                  device.errors_watched ? 1 : 0, "\n");
}

void Append(const DeviceSample& sample, std::string* out) {
  absl::StrAppend(out, "s ", sample.device, " ", sample.at_ns, " ", sample.until_ns);
  AppendNamed<DeviceValue>(kNames, sample.values, out);
  out->push_back('\n');
}

void Append(const DeviceUser& user, std::string* out) {
  absl::StrAppend(out, "u ", user.device, " ", user.at_ns, " ", user.process, "\n");
}

void Append(const DeviceError& error, std::string* out) {
  absl::StrAppend(out, "x ", error.device, " ", error.at_ns, " ", error.until_ns);
  absl::StrAppend(out, " ", error.number, "\n");
}

}  // namespace syncline::evidence
