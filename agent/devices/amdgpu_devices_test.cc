// SPDX-License-Identifier: Apache-2.0
// AMD's devices from stand-in files, laid out as amdgpu's documentation and headers have them.
#include "agent/devices/amdgpu_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "agent/devices/device_recorder.h"
#include "common/files.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;
using evidence::DeviceValue;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
constexpr auto kLevels = DeviceLibrary::Depth::kLevels;
constexpr auto kCounters = DeviceLibrary::Depth::kCounters;
constexpr auto kAll = DeviceLibrary::Depth::kAll;

template <class T>
void Put(size_t offset, T value, std::string* table) {
  std::memcpy(table->data() + offset, &value, sizeof value);
}

// `version`: 6 to 8 of format 1; what is not set is all ones, as the driver has it.
std::string Table(uint8_t version, const AmdgpuMetrics& metrics) {
  std::string table(1024, '\xff');
  const size_t energy = version == 6 ? 16 : 24;
  Put<uint16_t>(0, 1024, &table);
  Put<uint8_t>(2, 1, &table);
  Put<uint8_t>(3, version, &table);
  Put<uint64_t>(energy, metrics.energy_units, &table);
  Put<uint64_t>(energy + 8, metrics.clock_ns, &table);
  Put<uint32_t>(energy + 16, metrics.cycles, &table);
  Put(energy + 20, metrics.held, &table);
  return table;
}

class Amdgpu : public ::testing::Test {
 protected:
  Amdgpu() {
    std::string pattern = ::testing::TempDir() + "amdgpu-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    drm_ = root_ / "class/drm";
    fs::create_directories(root_ / "module/amdgpu");
    fs::create_directories(drm_);
  }
  ~Amdgpu() override { fs::remove_all(root_); }

  static void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(WriteFileAtomically(path, text).ok()) << path;
  }
  fs::path Card(const std::string& name, const std::string& vendor = "0x1002",
                const std::string& driver = "amdgpu") {
    const fs::path device = drm_ / name / "device";
    fs::create_directories(root_ / "drivers" / driver);
    fs::create_directories(device);
    fs::create_directory_symlink(root_ / "drivers" / driver, device / "driver");
    Write(device / "vendor", vendor + "\n");
    return device;
  }
  fs::path Mi300(const std::string& name, int minor) {
    const fs::path device = Card(name);
    Write(device / "unique_id", "a1b2c3d4e5f60718\n");
    Write(device / "product_name", "AMD Instinct MI300X OAM\n");
    Write(device / "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0\nMODALIAS=pci:v1002\n");
    Write(device / "mem_info_vram_total", "206141652992\n");
    Write(device / "mem_info_vram_used", "297058304\n");
    Write(device / "pp_dpm_sclk", "0: 132Mhz *\n1: 2100Mhz\n");
    Write(device / "gpu_busy_percent", "97\n");
    Write(device / "mem_busy_percent", "41\n");
    const fs::path sensors = device / "hwmon/hwmon4";
    Write(sensors / "name", "amdgpu\n");
    Write(sensors / "temp1_label", "edge\n");
    Write(sensors / "temp1_input", "41000\n");
    Write(sensors / "temp2_label", "junction\n");
    Write(sensors / "temp2_input", "63000\n");
    Write(sensors / "temp3_label", "mem\n");
    Write(sensors / "temp3_input", "52000\n");
    Write(sensors / "power1_input", "739000000\n");
    Write(sensors / "power1_cap", "750000000\n");
    Write(sensors / "freq1_input", "2087000000\n");
    Write(sensors / "freq2_input", "1300000000\n");
    Write(device / "ras/umc_err_count", "ue: 1\nce: 12\n");
    Write(device / "ras/gfx_err_count", "ue: 0\nce: 3\n");
    Write(device / "ras/features", "feature mask: 0x3\n");
    fs::create_directories(device / ("drm/renderD" + std::to_string(minor)));
    return device;
  }
  std::unique_ptr<AmdgpuDevices> Open() {
    auto opened = AmdgpuDevices::Open(drm_, root_ / "dri");
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  fs::path root_;
  fs::path drm_;
};

TEST_F(Amdgpu, ADeviceIsDescribedAndRead) {
  Mi300("card1", 128);
  const auto devices = Open();
  ASSERT_EQ(devices->devices().size(), 1);
  const evidence::Device& device = devices->devices()[0];
  EXPECT_EQ(device.id, "a1b2c3d4e5f60718");
  EXPECT_EQ(device.name, "AMD Instinct MI300X OAM");
  EXPECT_EQ(device.bus, "0000:05:00.0");
  EXPECT_EQ(device.memory_bytes, 206'141'652'992);
  EXPECT_EQ(device.sm_mhz_max, 2100);
  EXPECT_FALSE(device.errors_watched);
  const evidence::DeviceValues values = devices->Read(0, kAll);
  EXPECT_EQ(values.Get(DeviceValue::kSmMhz), 2087);
  EXPECT_EQ(values.Get(DeviceValue::kMemoryMhz), 1300);
  EXPECT_EQ(values.Get(DeviceValue::kPowerMw), 739'000);
  EXPECT_EQ(values.Get(DeviceValue::kPowerLimitMw), 750'000);
  EXPECT_EQ(values.Get(DeviceValue::kDeviceCelsius), 63);
  EXPECT_EQ(values.Get(DeviceValue::kMemoryCelsius), 52);
  EXPECT_EQ(values.Get(DeviceValue::kBusyPercent), 97);
  EXPECT_EQ(values.Get(DeviceValue::kMemoryBusyPercent), 41);
  EXPECT_EQ(values.Get(DeviceValue::kMemoryUsedBytes), 297'058'304);
  EXPECT_EQ(values.Get(DeviceValue::kCorrectedErrors), 12);
  EXPECT_EQ(values.Get(DeviceValue::kUncorrectedErrors), 1);
  EXPECT_FALSE(values.Get(DeviceValue::kPowerNs).has_value()) << "there is no gpu_metrics";
  EXPECT_FALSE(devices->Read(0, kLevels).Get(DeviceValue::kCorrectedErrors).has_value());
}

TEST_F(Amdgpu, CardsAreThoseOfAmdgpuByNumber) {
  EXPECT_FALSE(HasAmdgpu(drm_));
  EXPECT_FALSE(AmdgpuDevices::Open(drm_).ok());
  Card("card0", "0x10de", "nvidia");
  Card("card3", "0x1002", "radeon");
  Card("card4-DP-1");
  EXPECT_FALSE(HasAmdgpu(drm_));
  for (const char* const name : {"card10", "card2"}) {
    Write(Card(name) / "unique_id", std::string("of ") + name);
  }
  EXPECT_TRUE(HasAmdgpu(drm_));
  const auto devices = Open();
  ASSERT_EQ(devices->devices().size(), 2);
  EXPECT_EQ(devices->devices()[0].id, "of card2");
  EXPECT_EQ(devices->devices()[1].id, "of card10");
  EXPECT_FALSE(devices->Read(0, kAll).Any()) << "it says nothing";
  EXPECT_THAT(devices->Users(0), IsEmpty());
}

// In 300 of 1,000 cycles of 2 s its power held it back, in 40, 70 and 100 heat of three kinds.
TEST_F(Amdgpu, CyclesInWhichItWasHeldBackAreTime) {
  const fs::path device = Mi300("card1", 128);
  for (const uint8_t version : {6, 7, 8}) {
    const AmdgpuMetrics begin{
        65536, 5'000'000'000, UINT32_MAX - 99, {7, UINT32_MAX - 9, 50, 9, 20}};
    Write(device / "gpu_metrics", Table(version, begin));
    const auto devices = Open();
    EXPECT_THAT(devices->TakeNotes(), IsEmpty());
    EXPECT_EQ(devices->Read(0, kCounters).Get(DeviceValue::kPowerNs), 0);
    EXPECT_EQ(devices->Read(0, kCounters).Get(DeviceValue::kEnergyMj), 1'000);
    const AmdgpuMetrics end{3 * 65536, 7'000'000'000, 900, {7, 290, 90, 79, 120}};
    Write(device / "gpu_metrics", Table(version, end));
    const evidence::DeviceValues values = devices->Read(0, kCounters);
    EXPECT_EQ(values.Get(DeviceValue::kPowerNs), 600'000'000) << int{version};
    EXPECT_EQ(values.Get(DeviceValue::kThermalNs), 80'000'000);
    EXPECT_EQ(values.Get(DeviceValue::kRegulatorHotNs), 140'000'000);
    EXPECT_EQ(values.Get(DeviceValue::kMemoryHotNs), 200'000'000);
    EXPECT_EQ(values.Get(DeviceValue::kHardwareHotNs), 0);
    EXPECT_EQ(values.Get(DeviceValue::kEnergyMj), 3'000);
    EXPECT_FALSE(devices->Read(0, kLevels).Get(DeviceValue::kPowerNs).has_value());
  }
}

// Started anew between two readings.
TEST_F(Amdgpu, CountersThatBeginAnewAreNoTime) {
  const fs::path device = Mi300("card1", 128);
  Write(device / "gpu_metrics", Table(8, {9, 5'000'000'000, 80'000, {0, 70'000}}));
  const auto devices = Open();
  devices->Read(0, kCounters);
  Write(device / "gpu_metrics", Table(8, {9, 6'000'000'000, 100, {0, 10}}));
  EXPECT_EQ(devices->Read(0, kCounters).Get(DeviceValue::kPowerNs), 0);
}

TEST_F(Amdgpu, WhatItDoesNotCountIsNotKnown) {
  const fs::path device = Mi300("card1", 128);
  Write(device / "gpu_metrics", Table(8, {9, 5'000'000'000, 100, {0, 5, UINT32_MAX, 0, 0}}));
  const auto devices = Open();
  EXPECT_FALSE(devices->Read(0, kCounters).Get(DeviceValue::kThermalNs).has_value());
  EXPECT_TRUE(devices->Read(0, kCounters).Get(DeviceValue::kPowerNs).has_value());
  Write(device / "gpu_metrics", Table(8, {9, 6'000'000'000, 100, {0, 5, UINT32_MAX, 0, 0}}));
  EXPECT_FALSE(devices->Read(0, kCounters).Get(DeviceValue::kPowerNs).has_value()) << "it stands";
}

TEST_F(Amdgpu, OneThatSleepsIsNotWoken) {
  const fs::path device = Mi300("card1", 128);
  Write(device / "power/runtime_status", "suspended\n");
  const auto devices = Open();
  EXPECT_EQ(devices->devices()[0].sm_mhz_max, -1);
  EXPECT_THAT(devices->TakeNotes(), IsEmpty());
  EXPECT_FALSE(devices->Read(0, kAll).Any());
  Write(device / "power/runtime_status", "active\n");
  EXPECT_EQ(devices->Read(0, kAll).Get(DeviceValue::kSmMhz), 2087);
}

TEST_F(Amdgpu, WhichTableIsNotReadIsSaid) {
  Mi300("card1", 128);
  EXPECT_THAT(Open()->TakeNotes(), ElementsAre(::testing::HasSubstr("GPU 0 does not say what held "
                                                                    "its clocks back: it has no")));
  Write(drm_ / "card1/device/gpu_metrics", Table(9, {}));
  const auto devices = Open();
  EXPECT_THAT(devices->TakeNotes(),
              ElementsAre(::testing::HasSubstr("is of version 1.9, and only")));
  EXPECT_THAT(devices->TakeNotes(), IsEmpty());
}

// While a device is started anew its driver has other lines in there.
TEST_F(Amdgpu, ErrorsAreThoseOfItsMemoryOrNotKnown) {
  const fs::path device = Mi300("card1", 128);
  const auto devices = Open();
  for (const char* const text : {"ue: 1\n", "Query currently inaccessible\n", ""}) {
    Write(device / "ras/umc_err_count", text);
    EXPECT_FALSE(devices->Read(0, kAll).Get(DeviceValue::kUncorrectedErrors).has_value()) << text;
  }
}

TEST_F(Amdgpu, DevicesThatMayNotBeUsedAreLeftOut) {
  Mi300("card1", 128);
  Mi300("card2", 129);
  EXPECT_EQ(Open()->devices().size(), 2) << "none is there: nothing is known";
  Write(root_ / "dri/renderD129", "");
  const auto devices = Open();
  ASSERT_EQ(devices->devices().size(), 1);
  EXPECT_EQ(devices->devices()[0].name, "AMD Instinct MI300X OAM");
}

TEST_F(Amdgpu, TheirOrderIsThatOfTheirBus) {
  for (const auto& [name, bus] : {std::pair("card1", "c1"), {"card2", "05"}}) {
    const fs::path device = Mi300(name, name == std::string("card1") ? 128 : 129);
    Write(device / "uevent", std::string("PCI_SLOT_NAME=0000:") + bus + ":00.0\n");
  }
  const auto devices = Open();
  EXPECT_EQ(devices->devices()[0].bus, "0000:05:00.0");
  EXPECT_EQ(devices->devices()[1].bus, "0000:c1:00.0");
}

TEST_F(Amdgpu, OtherTablesSayNothing) {
  const AmdgpuMetrics any{1, 2, 3, {0, 1, 0, 0, 0}};
  EXPECT_TRUE(ParseAmdgpuMetrics(Table(8, any)).has_value());
  EXPECT_FALSE(ParseAmdgpuMetrics(Table(3, any)).has_value());
  EXPECT_FALSE(ParseAmdgpuMetrics(Table(9, any)).has_value());
  EXPECT_FALSE(ParseAmdgpuMetrics(Table(8, any).substr(0, 1000)).has_value()) << "cut";
  EXPECT_FALSE(ParseAmdgpuMetrics("").has_value());
  std::string other = Table(8, any);
  Put<uint8_t>(2, 2, &other);
  EXPECT_FALSE(ParseAmdgpuMetrics(other).has_value());
  other = Table(8, any);
  Put<uint16_t>(0, 40, &other);
  EXPECT_FALSE(ParseAmdgpuMetrics(other).has_value()) << "it says that it is shorter";
}

TEST_F(Amdgpu, UsersAreThoseWithMemoryOnIt) {
  Mi300("card1", 128);
  Write(Mi300("card2", 129) / "uevent", "PCI_SLOT_NAME=0000:06:00.0\n");
  const fs::path kfd = root_ / "class/kfd/kfd";
  Write(kfd / "topology/nodes/0/properties", "cpu_cores_count 96\ndrm_render_minor 0\n");
  Write(kfd / "topology/nodes/0/gpu_id", "0\n");
  Write(kfd / "topology/nodes/1/properties", "simd_count 1216\ndrm_render_minor 128\n");
  Write(kfd / "topology/nodes/1/gpu_id", "28851\n");
  Write(kfd / "topology/nodes/2/properties", "simd_count 1216\ndrm_render_minor 129\n");
  Write(kfd / "topology/nodes/2/gpu_id", "51499\n");
  // A second part of the first board.
  Write(kfd / "topology/nodes/3/properties",
        "simd_count 304\nlocation_id 268436736\ndomain 0\ndrm_render_minor 136\n");
  Write(kfd / "topology/nodes/3/gpu_id", "4711\n");
  Write(kfd / "proc/79/vram_4711", "4096\n");
  Write(kfd / "proc/77/vram_28851", "1048576\n");
  Write(kfd / "proc/77/vram_51499", "0\n");
  Write(kfd / "proc/78/vram_51499", "4096\n");
  const auto devices = Open();
  EXPECT_THAT(devices->Users(0), ElementsAre(77, 79));
  EXPECT_THAT(devices->Users(1), ElementsAre(78));
}

TEST_F(Amdgpu, AnAgentTakesThemWhereThereIsNoDeviceOfNvidias) {
  Mi300("card1", 128);
  DeviceOptions options{.command = {}, .control = root_ / "nvidiactl", .drm = drm_, .places = {}};
  const auto chosen = ChooseDevices(options);
  ASSERT_TRUE(chosen.ok() && chosen->has_value());
  EXPECT_EQ(**chosen, drm_);
  EXPECT_EQ(DevicesName(**chosen), "amdgpu");
  Write(root_ / "nvidiactl", "");
  EXPECT_FALSE(ChooseDevices(options).ok()) << "NVIDIA's driver without its library";
}

}  // namespace
}  // namespace syncline::agent
