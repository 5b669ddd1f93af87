// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/amdgpu_devices.h"

#include <algorithm>
#include <cstdio>
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
constexpr size_t kHeadBytes = 4;  // of gpu_metrics
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

// "renderD128"; "": it has none.
std::string RenderNodeOf(const fs::path& device) {
  for (const fs::path& entry : EntriesOf(device / "drm")) {
    std::string name = entry.filename().string();
    if (name.starts_with("renderD")) return name;
  }
  return "";
}

// Of "0000:c1:00.0": the bus, device and function, and the domain, as kfd has them.
struct BusAddress {
  int64_t location = -1;
  int64_t domain = -1;
};
BusAddress AddressOf(const std::string& bus) {
  unsigned domain = 0, number = 0, device = 0, function = 0;
  if (std::sscanf(bus.c_str(), "%x:%x:%x.%x", &domain, &number, &device, &function) != 4) return {};
  return {static_cast<int64_t>(number << 8 | device << 3 | function), domain};
}

// Files of a process by which kfd says what it has on the device, each partition for itself.
std::vector<std::string> UserFilesOf(const fs::path& kfd, const fs::path& device) {
  constexpr int64_t kLocationBits = 0xffff;  // above them is the partition's number
  const BusAddress address = AddressOf(BusOf(device));
  const std::string render_node = RenderNodeOf(device);
  std::vector<std::string> files;
  for (const fs::path& node : EntriesOf(kfd / "topology" / "nodes")) {
    const std::string properties = TextOf(node / "properties");
    const int64_t minor = PropertyOf(properties, "drm_render_minor").value_or(0);
    const int64_t location = PropertyOf(properties, "location_id").value_or(-1);
    const bool is_there = location >= 0 && (location & kLocationBits) == address.location &&
                          PropertyOf(properties, "domain").value_or(0) == address.domain;
    if (minor <= 0) continue;  // a processor
    if (!is_there && absl::StrCat("renderD", minor) != render_node) continue;
    const std::string id = TextOf(node / "gpu_id");
    if (!id.empty()) files.push_back("vram_" + id);
  }
  return files;
}

// Its driver lets it sleep: what reads its registers would wake it.
bool IsAsleep(const fs::path& device) {
  return TextOf(device / "power" / "runtime_status") == "suspended";
}

template <class T>
T At(std::string_view table, size_t offset) {
  T value{};
  std::memcpy(&value, table.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::string AmdgpuMetricsVersion(std::string_view table) {
  if (table.size() < kHeadBytes) return "";
  return absl::StrCat(int{At<uint8_t>(table, 2)}, ".", int{At<uint8_t>(table, 3)});
}

std::optional<AmdgpuMetrics> ParseAmdgpuMetrics(std::string_view table) {
  constexpr uint8_t kFormat = 1;
  constexpr uint8_t kFirst = 6;  // of the versions that count
  constexpr uint8_t kLast = 8;   // the next one has another form
  if (table.size() < kHeadBytes || At<uint16_t>(table, 0) > table.size()) return std::nullopt;
  const auto version = At<uint8_t>(table, 3);
  if (At<uint8_t>(table, 2) != kFormat || version < kFirst || version > kLast) return std::nullopt;
  // Six temperatures, powers and uses; from 1.7 on the bandwidth of memory.
  const size_t energy = kHeadBytes + 6 * 2 + (version > kFirst ? 8 : 0);
  const size_t cycles = energy + 8 + 8;
  AmdgpuMetrics metrics;
  if (At<uint16_t>(table, 0) < cycles + 4 + sizeof metrics.held) return std::nullopt;
  metrics.energy_units = At<uint64_t>(table, energy);
  metrics.clock_ns = At<uint64_t>(table, energy + 8);
  metrics.cycles = At<uint32_t>(table, cycles);
  metrics.held = At<decltype(metrics.held)>(table, cycles + 4);
  return metrics;
}

bool HasAmdgpu(const fs::path& drm) { return !CardsIn(drm).empty(); }

absl::StatusOr<std::unique_ptr<AmdgpuDevices>> AmdgpuDevices::Open(const fs::path& drm,
                                                                   const fs::path& dri) {
  std::vector<fs::path> found = CardsIn(drm);
  const auto is_there = [&](const fs::path& card) {
    const std::string name = RenderNodeOf(card / "device");
    std::error_code error;
    return !name.empty() && fs::exists(dri / name, error);
  };
  if (std::any_of(found.begin(), found.end(), is_there)) {
    std::erase_if(found, [&](const fs::path& card) { return !is_there(card); });
  }
  if (found.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("amdgpu has no device below \"", drm.string(), "\""));
  }
  // Numbers of cards are those of the order in which they were found.
  std::stable_sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return BusOf(a / "device") < BusOf(b / "device");
  });
  if (found.size() > kDevicesMax) found.resize(kDevicesMax);
  std::unique_ptr<AmdgpuDevices> opened(new AmdgpuDevices());
  opened->kfd_ = drm.parent_path() / "kfd" / "kfd";
  for (const fs::path& card : found) {
    Card& made = opened->cards_.emplace_back(CardOf(card / "device"));
    made.user_files = UserFilesOf(opened->kfd_, made.device);
    opened->Describe(made);
  }
  return opened;
}

void AmdgpuDevices::Describe(const Card& card) {
  const fs::path& device = card.device;
  const size_t number = devices_.size();
  evidence::Device& described = devices_.emplace_back();
  described.id = TextOf(device / "unique_id");
  described.name = TextOf(device / "product_name");
  if (described.name.empty()) {
    described.name = absl::StrCat("AMD GPU ", TextOf(device / "device"));  // its PCI number
  }
  described.bus = BusOf(device);
  described.memory_bytes = NumberIn(device / "mem_info_vram_total").value_or(-1);
  if (IsAsleep(device)) return;
  described.sm_mhz_max = HighestMhz(TextOf(device / "pp_dpm_sclk"));
  const auto table = ReadFile(device / "gpu_metrics", kBytesMax);
  if (table.ok() && ParseAmdgpuMetrics(*table).has_value()) return;
  const std::string version = table.ok() ? AmdgpuMetricsVersion(*table) : "";
  notes_.push_back(absl::StrCat("GPU ", number, " does not say what held its clocks back: ",
                                version.empty()
                                    ? "it has no gpu_metrics"
                                    : absl::StrCat("its gpu_metrics is of version ", version,
                                                   ", and only 1.6 to 1.8 are read")));
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
  if (IsAsleep(card.device)) return values;
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

// Of its memory's controller: the lines "ue: 0" and "ce: 12". While a device is started anew there
// are others.
void AmdgpuDevices::ReadErrors(const Card& card, DeviceValues* values) {
  const std::string lines = TextOf(card.device / "ras" / "umc_err_count");
  const auto corrected = PropertyOf(lines, "ce:");
  const auto uncorrected = PropertyOf(lines, "ue:");
  if (!corrected.has_value() || !uncorrected.has_value()) return;
  values->Set(DeviceValue::kCorrectedErrors, *corrected);
  values->Set(DeviceValue::kUncorrectedErrors, *uncorrected);
}

void AmdgpuDevices::ReadMetrics(Card* card, DeviceValues* values) {
  const auto table = ReadFile(card->device / "gpu_metrics", kBytesMax);
  const auto now = table.ok() ? ParseAmdgpuMetrics(*table) : std::nullopt;
  if (!now.has_value()) return;
  if (now->energy_units != UINT64_MAX) {
    values->Set(DeviceValue::kEnergyMj,
                static_cast<int64_t>(static_cast<double>(now->energy_units) * kMjPerEnergyUnit));
  }
  const AmdgpuMetrics before = card->last.value_or(*now);
  card->last = now;
  const uint32_t cycles = now->cycles - before.cycles;
  const double passed_ns =
      now->clock_ns > before.clock_ns ? static_cast<double>(now->clock_ns - before.clock_ns) : 0;
  if (cycles == 0 && passed_ns > 0) return;  // it does not count
  for (size_t i = 0; i < kAmdgpuReasons.size(); ++i) {
    if (now->held[i] == UINT32_MAX && before.held[i] == UINT32_MAX) continue;  // not this one
    const uint32_t held = now->held[i] - before.held[i];
    // More than there were: the device was started anew meanwhile.
    if (cycles > 0 && held <= cycles) {
      card->held_ns[i] += passed_ns * static_cast<double>(held) / static_cast<double>(cycles);
    }
    values->Set(kAmdgpuReasons[i], static_cast<int64_t>(card->held_ns[i]));
  }
}

std::vector<int32_t> AmdgpuDevices::Users(uint32_t device) {
  std::vector<int32_t> pids;
  const std::vector<std::string>& files = cards_[device].user_files;
  if (files.empty()) return pids;
  for (const fs::path& process : EntriesOf(kfd_ / "proc")) {
    int32_t pid = 0;
    if (!absl::SimpleAtoi(process.filename().string(), &pid)) continue;
    const bool uses = std::any_of(files.begin(), files.end(), [&](const std::string& file) {
      return NumberIn(process / file).value_or(0) > 0;
    });
    if (uses) pids.push_back(pid);
  }
  return pids;
}

}  // namespace syncline::agent
