// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/amdgpu_devices.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/text.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;
using evidence::DeviceValue;
using evidence::DeviceValues;

constexpr char kVendor[] = "0x1002";
constexpr uint64_t kBytesMax = 16384;  // of a file: sysfs gives a page
constexpr size_t kDevicesMax = 64;
constexpr double kMjPerEnergyUnit = 1000.0 / 65536;

// The whole text, without its last line break. "": there is none.
std::string TextOf(const fs::path& path) {
  const auto text = ReadFile(path, kBytesMax);
  return text.ok() ? std::string(absl::StripTrailingAsciiWhitespace(AbslView(*text))) : "";
}

std::optional<int64_t> NumberIn(const fs::path& path) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(TextOf(path), &number)) return std::nullopt;
  return number;
}

void SetFrom(const fs::path& path, int64_t divisor, DeviceValue value, DeviceValues* values) {
  const auto number = NumberIn(path);
  if (number.has_value() && *number >= 0) values->Set(value, *number / divisor);
}

// In order of their names; what cannot be read has none.
std::vector<fs::path> EntriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// "card0", and no output of it ("card0-DP-1"), by number.
std::vector<fs::path> CardsIn(const fs::path& drm) {
  std::vector<std::pair<int, fs::path>> cards;
  for (const fs::path& entry : EntriesOf(drm)) {
    const std::string name = entry.filename().string();
    std::string_view number = name;
    int value = 0;
    if (!number.starts_with("card")) continue;
    number.remove_prefix(4);
    if (!absl::SimpleAtoi(AbslView(number), &value)) continue;
    std::error_code error;
    const fs::path driver = fs::canonical(entry / "device" / "driver", error);
    if (error || driver.filename() != "amdgpu") continue;
    if (TextOf(entry / "device" / "vendor") == kVendor) cards.emplace_back(value, entry);
  }
  std::sort(cards.begin(), cards.end());
  std::vector<fs::path> paths;
  for (auto& [value, path] : cards) paths.push_back(std::move(path));
  return paths;
}

// "0000:c1:00.0", of the lines of uevent.
std::string BusOf(const fs::path& device) {
  constexpr std::string_view kSlot = "PCI_SLOT_NAME=";
  const std::string lines = "\n" + TextOf(device / "uevent");
  const size_t at = lines.find("\n" + std::string(kSlot));
  if (at == std::string::npos) return "";
  const size_t begin = at + 1 + kSlot.size();
  return lines.substr(begin, lines.find('\n', begin) - begin);
}

// The highest clock of lines like "1: 2100Mhz *"; -1: there is none.
int64_t HighestMhz(const std::string& levels) {
  int64_t highest = -1;
  std::string_view rest = levels;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view value = line.substr(colon + 2);
    int64_t mhz = 0;
    if (absl::SimpleAtoi(AbslView(value.substr(0, value.find_first_not_of("0123456789"))), &mhz)) {
      highest = std::max(highest, mhz);
    }
  }
  return highest;
}

// Of properties like "drm_render_minor 128".
std::optional<int64_t> PropertyOf(const std::string& lines, std::string_view name) {
  const std::string wanted = absl::StrCat("\n", AbslView(name), " ");
  const std::string all = "\n" + lines;
  const size_t at = all.find(wanted);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + wanted.size();
  int64_t value = 0;
  if (!absl::SimpleAtoi(all.substr(begin, all.find('\n', begin) - begin), &value)) {
    return std::nullopt;
  }
  return value;
}

// The number by which kfd's folders of processes call the device; "": it has none.
std::string KfdIdOf(const fs::path& kfd, const fs::path& device) {
  std::optional<int64_t> minor;
  for (const fs::path& entry : EntriesOf(device / "drm")) {
    const std::string name = entry.filename().string();
    int value = 0;
    if (name.starts_with("renderD") && absl::SimpleAtoi(name.substr(7), &value)) minor = value;
  }
  if (!minor.has_value()) return "";
  for (const fs::path& node : EntriesOf(kfd / "topology" / "nodes")) {
    if (PropertyOf(TextOf(node / "properties"), "drm_render_minor") == minor) {
      return TextOf(node / "gpu_id");
    }
  }
  return "";
}

template <class T>
T At(std::string_view table, size_t offset) {
  T value{};
  std::memcpy(&value, table.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::optional<AmdgpuMetrics> ParseAmdgpuMetrics(std::string_view table) {
  constexpr size_t kHead = 4;
  constexpr uint8_t kFormat = 1;
  constexpr uint8_t kFirst = 6;       // of the versions that count
  constexpr uint8_t kLast = 8;        // the next one has another form
  constexpr size_t kFourths = 6 * 4;  // six counters
  if (table.size() < kHead || At<uint16_t>(table, 0) > table.size()) return std::nullopt;
  const auto version = At<uint8_t>(table, 3);
  if (At<uint8_t>(table, 2) != kFormat || version < kFirst || version > kLast) return std::nullopt;
  // Six temperatures, powers and uses; from 1.7 on the bandwidth of memory.
  const size_t energy = kHead + 6 * 2 + (version > kFirst ? 8 : 0);
  const size_t counters = energy + 8 + 8;
  if (At<uint16_t>(table, 0) < counters + kFourths) return std::nullopt;
  AmdgpuMetrics metrics{At<uint64_t>(table, energy),       At<uint64_t>(table, energy + 8),
                        At<uint32_t>(table, counters),     At<uint32_t>(table, counters + 4),
                        At<uint32_t>(table, counters + 8), At<uint32_t>(table, counters + 12),
                        At<uint32_t>(table, counters + 20)};
  // What a device does not have is all ones.
  if (metrics.cycles == UINT32_MAX && metrics.by_power == UINT32_MAX) return std::nullopt;
  return metrics;
}

bool HasAmdgpu(const fs::path& drm) { return !CardsIn(drm).empty(); }

absl::StatusOr<std::unique_ptr<AmdgpuDevices>> AmdgpuDevices::Open(const fs::path& drm) {
  std::vector<fs::path> found = CardsIn(drm);
  if (found.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("amdgpu has no device below \"", drm.string(), "\""));
  }
  if (found.size() > kDevicesMax) found.resize(kDevicesMax);
  std::unique_ptr<AmdgpuDevices> opened(new AmdgpuDevices());
  opened->kfd_ = drm.parent_path() / "kfd" / "kfd";
  for (const fs::path& card : found) {
    const fs::path device = card / "device";
    Card& made = opened->cards_.emplace_back(CardOf(device));
    const std::string kfd_id = KfdIdOf(opened->kfd_, device);
    if (!kfd_id.empty()) made.user_file = "vram_" + kfd_id;
    evidence::Device& described = opened->devices_.emplace_back();
    described.id = TextOf(device / "unique_id");
    described.name = TextOf(device / "product_name");
    if (described.name.empty()) {
      described.name = absl::StrCat("AMD GPU ", TextOf(device / "device"));  // its PCI number
    }
    described.bus = BusOf(device);
    described.memory_bytes = NumberIn(device / "mem_info_vram_total").value_or(-1);
    described.sm_mhz_max = HighestMhz(TextOf(device / "pp_dpm_sclk"));
  }
  return opened;
}

AmdgpuDevices::Card AmdgpuDevices::CardOf(const fs::path& device) {
  Card card;
  card.device = device;
  for (const fs::path& sensors : EntriesOf(device / "hwmon")) {
    if (TextOf(sensors / "name") != "amdgpu") continue;
    card.sensors = sensors;
    for (const char* const sensor : {"temp1", "temp2", "temp3"}) {
      const std::string label = TextOf(sensors / absl::StrCat(sensor, "_label"));
      const std::string file = absl::StrCat(sensor, "_input");
      // The hottest place of the chip is what limits it; old ones know their edge alone.
      const bool is_first = card.device_temperature.empty();
      if (label == "junction" || (label == "edge" && is_first)) card.device_temperature = file;
      if (label == "mem") card.memory_temperature = file;
    }
  }
  return card;
}

std::string AmdgpuDevices::driver_version() {
  // Of AMD's own packages; the kernel's amdgpu has the kernel's version.
  const std::string version = TextOf(cards_.front().device / "driver" / "module" / "version");
  return version.empty() ? "amdgpu of the kernel" : absl::StrCat("amdgpu ", version);
}

DeviceValues AmdgpuDevices::Read(uint32_t device, Depth depth) {
  constexpr int64_t kThousand = 1'000;
  constexpr int64_t kMillion = 1'000'000;
  Card& card = cards_[device];
  DeviceValues values;
  if (!card.sensors.empty()) {
    SetFrom(card.sensors / "freq1_input", kMillion, DeviceValue::kSmMhz, &values);
    SetFrom(card.sensors / "freq2_input", kMillion, DeviceValue::kMemoryMhz, &values);
    SetFrom(card.sensors / "power1_average", kThousand, DeviceValue::kPowerMw, &values);
    SetFrom(card.sensors / "power1_input", kThousand, DeviceValue::kPowerMw, &values);
    SetFrom(card.sensors / "power1_cap", kThousand, DeviceValue::kPowerLimitMw, &values);
    if (!card.device_temperature.empty()) {
      SetFrom(card.sensors / card.device_temperature, kThousand, DeviceValue::kDeviceCelsius,
              &values);
    }
    if (!card.memory_temperature.empty()) {
      SetFrom(card.sensors / card.memory_temperature, kThousand, DeviceValue::kMemoryCelsius,
              &values);
    }
  }
  SetFrom(card.device / "gpu_busy_percent", 1, DeviceValue::kBusyPercent, &values);
  SetFrom(card.device / "mem_busy_percent", 1, DeviceValue::kMemoryBusyPercent, &values);
  SetFrom(card.device / "mem_info_vram_used", 1, DeviceValue::kMemoryUsedBytes, &values);
  if (depth >= Depth::kCounters) ReadMetrics(&card, &values);
  if (depth >= Depth::kAll) ReadErrors(card, &values);
  return values;
}

// Files like "umc_err_count" have the lines "ue: 0" and "ce: 12".
void AmdgpuDevices::ReadErrors(const Card& card, DeviceValues* values) {
  int64_t corrected = -1;
  int64_t uncorrected = -1;
  const auto add = [](const std::string& lines, std::string_view name, int64_t* sum) {
    const auto count = PropertyOf(lines, name);
    if (count.has_value()) *sum = std::max<int64_t>(0, *sum) + *count;
  };
  for (const fs::path& file : EntriesOf(card.device / "ras")) {
    if (!file.filename().string().ends_with("_err_count")) continue;
    const std::string lines = TextOf(file);
    add(lines, "ue:", &uncorrected);
    add(lines, "ce:", &corrected);
  }
  if (corrected >= 0) values->Set(DeviceValue::kCorrectedErrors, corrected);
  if (uncorrected >= 0) values->Set(DeviceValue::kUncorrectedErrors, uncorrected);
}

void AmdgpuDevices::ReadMetrics(Card* card, DeviceValues* values) {
  const auto table = ReadFile(card->device / "gpu_metrics", kBytesMax);
  const auto now = table.ok() ? ParseAmdgpuMetrics(*table) : std::nullopt;
  if (!now.has_value()) return;
  if (card->last.has_value()) {
    const AmdgpuMetrics& before = *card->last;
    const uint32_t cycles = now->cycles - before.cycles;
    const double passed_ns =
        now->clock_ns > before.clock_ns ? static_cast<double>(now->clock_ns - before.clock_ns) : 0;
    // More than there were: the device was started anew meanwhile.
    const auto part_ns = [&](uint32_t held) {
      return cycles == 0 || held > cycles
                 ? 0
                 : passed_ns * static_cast<double>(held) / static_cast<double>(cycles);
    };
    card->power_ns += part_ns(now->by_power - before.by_power);
    card->protection_ns += part_ns(now->by_protection - before.by_protection);
    // They may hold at once: the longer one is the least that both can be.
    card->heat_ns += std::max(part_ns(now->by_heat - before.by_heat),
                              part_ns(now->by_memory_heat - before.by_memory_heat));
  }
  card->last = now;
  values->Set(DeviceValue::kPowerNs, static_cast<int64_t>(card->power_ns));
  values->Set(DeviceValue::kThermalNs, static_cast<int64_t>(card->heat_ns));
  values->Set(DeviceValue::kHardwareHotNs, static_cast<int64_t>(card->protection_ns));
  if (now->energy_units != UINT64_MAX) {
    values->Set(DeviceValue::kEnergyMj,
                static_cast<int64_t>(static_cast<double>(now->energy_units) * kMjPerEnergyUnit));
  }
}

std::vector<int32_t> AmdgpuDevices::Users(uint32_t device) {
  std::vector<int32_t> pids;
  const std::string& file = cards_[device].user_file;
  if (file.empty()) return pids;
  for (const fs::path& process : EntriesOf(kfd_ / "proc")) {
    int32_t pid = 0;
    if (!absl::SimpleAtoi(process.filename().string(), &pid)) continue;
    if (NumberIn(process / file).value_or(0) > 0) pids.push_back(pid);
  }
  return pids;
}

}  // namespace syncline::agent
