// SPDX-License-Identifier: Apache-2.0
// The agent's program as the process that samples, with a library of the real binary interface
// (fake_nvml.c): what it writes, and what becomes of a library that hangs or crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/devices/device_child.h"
#include "agent/devices/device_recorder.h"
#include "agent/host/process_table.h"
#include "common/files.h"
#include "evidence/device_samples.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;
using evidence::DeviceValue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RealChild : public ::testing::Test {
 protected:
  RealChild() {
    std::string pattern = ::testing::TempDir() + "devices-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~RealChild() override {
    ::unsetenv("FAKE_NVML");
    ::unsetenv("FAKE_NVML_USER");
    fs::remove_all(root_);
  }

  // What the recorder complains of.
  std::vector<std::string> Record(const char* behaviour, int for_ms) {
    ::setenv("FAKE_NVML", behaviour, 1);
    Log log(2, &clock_);
    DeviceRecorder recorder(&log, {.command = {SYNCLINE_AGENT, kDeviceChildFlag},
                                   .library = FAKE_NVML,
                                   .end_limit_ms = 1'000});
    recorder.Find({});
    recorder.Begin({.recording_id = "r1", .directory = root_});
    std::this_thread::sleep_for(std::chrono::milliseconds(for_ms));
    recorder.End();
    std::vector<std::string> said;
    for (const auto& complaint : recorder.Collect()) said.push_back(complaint.what());
    return said;
  }
  evidence::DeviceSamples Read() const {
    const auto text = ReadFile(root_ / "evidence" / evidence::kDevicesFileName);
    EXPECT_TRUE(text.ok()) << text.status();
    auto found = evidence::ParseDeviceSamples(*text);
    EXPECT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->damaged_lines, 0U) << *text;
    return *std::move(found);
  }

  fs::path root_;
  SystemClock clock_;
};

TEST_F(RealChild, WritesWhatTheLibrarySays) {
  EXPECT_THAT(Record("xid", 1'500), IsEmpty());
  const auto found = Read();
  EXPECT_EQ(found.driver_version, "580.65.06");
  EXPECT_EQ(found.library, FAKE_NVML);
  ASSERT_EQ(found.devices.size(), 2U);
  EXPECT_EQ(found.devices[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(found.devices[1].id, "GPU-1");
  EXPECT_EQ(found.devices[1].memory_bytes, int64_t{80} << 30);
  EXPECT_EQ(found.devices[1].sm_mhz_max, 1980);
  EXPECT_EQ(found.devices[1].bus, "00000000:01:00.0");
  EXPECT_TRUE(found.devices[1].errors_watched);
  ASSERT_GE(found.samples.size(), 8U);
  const evidence::DeviceSample& first = found.samples[1];
  const evidence::DeviceSample& last = found.samples.back();
  EXPECT_EQ(last.device, 1U);
  EXPECT_EQ(last.values.Get(DeviceValue::kSmMhz), 1170);
  EXPECT_EQ(last.values.Get(DeviceValue::kMemoryMhz), 2619);
  EXPECT_EQ(last.values.Get(DeviceValue::kPowerMw), 345678);
  EXPECT_EQ(last.values.Get(DeviceValue::kMemoryUsedBytes), int64_t{4} << 30);
  EXPECT_EQ(last.values.Get(DeviceValue::kNvlinkSentKib), int64_t{1} << 40);
  EXPECT_EQ(last.values.Get(DeviceValue::kPowerNs), 5);
  EXPECT_EQ(last.values.Get(DeviceValue::kBusyPercent), 97);
  EXPECT_EQ(last.values.Get(DeviceValue::kMemoryBusyPercent), 31);
  for (const DeviceValue absent :
       {DeviceValue::kDeviceCelsius, DeviceValue::kEnergyMj, DeviceValue::kReliabilityNs,
        DeviceValue::kCorrectedErrors, DeviceValue::kPcieReplays}) {
    EXPECT_FALSE(last.values.Get(absent).has_value()) << evidence::DeviceValueName(absent);
  }
  const auto grown_ns = static_cast<double>(*last.values.Get(DeviceValue::kThermalNs) -
                                            *first.values.Get(DeviceValue::kThermalNs));
  EXPECT_LE(grown_ns, 0.41 * static_cast<double>(last.until_ns - first.at_ns) + 100);
  EXPECT_GE(grown_ns, 0.41 * static_cast<double>(last.at_ns - first.until_ns) - 100);
  ASSERT_EQ(found.errors.size(), 1U);
  EXPECT_EQ(found.errors[0].device, 1U);
  EXPECT_EQ(found.errors[0].number, 79);
  EXPECT_GE(found.cost_ns, 0);
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_TRUE(found.ended);
}

// Numbers of processes are the machine's: where these are others, as in a container, this process
// would have to have a device open.
TEST_F(RealChild, WhoUsesADeviceIsFoundByItsNumber) {
  ::setenv("FAKE_NVML_USER", std::to_string(::getpid()).c_str(), 1);
  EXPECT_THAT(Record("", 500), IsEmpty());
  const auto found = Read();
  const auto self = ReadProcess("/proc", ::getpid());
  ASSERT_TRUE(self.has_value());
  constexpr uint64_t kFirstPidNamespace = 4026531836;
  if (OwnPidNamespace() != kFirstPidNamespace) {
    EXPECT_THAT(found.users, IsEmpty());
    return;
  }
  ASSERT_FALSE(found.users.empty());
  ASSERT_EQ(found.processes.size(), 1U);
  EXPECT_EQ(found.users[0].device, 1U);
  EXPECT_EQ(found.processes[0].pid, self->pid);
  EXPECT_EQ(found.processes[0].own_pid, self->own_pid);
  EXPECT_EQ(found.processes[0].start_ticks, self->start_ticks);
  EXPECT_EQ(found.processes[0].pid_namespace_inode, static_cast<int64_t>(self->pid_namespace));
}

TEST_F(RealChild, ALibraryThatHangsCostsWhatComesBehind) {
  EXPECT_THAT(Record("hang", 2'000), ElementsAre(HasSubstr("did not answer for 1000 ms")));
  const auto found = Read();
  EXPECT_EQ(found.samples.size(), 8U);
  EXPECT_FALSE(found.ended);
}

TEST_F(RealChild, ALibraryThatCrashesTakesNobodyAlong) {
  EXPECT_THAT(Record("crash", 2'000), ElementsAre(HasSubstr("ended by signal 6")));
  const auto found = Read();
  EXPECT_EQ(found.samples.size(), 8U);
  EXPECT_FALSE(found.ended);
}

TEST_F(RealChild, ADeviceThatIsLostIsNotAskedAgain) {
  EXPECT_THAT(Record("lost", 2'000), IsEmpty());
  const auto found = Read();
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("device 1 is lost")));
  EXPECT_EQ(found.samples.back().device, 0U);
  EXPECT_TRUE(found.ended);
}

TEST_F(RealChild, TheErrorOfADeviceThatFallsOffTheBusIsKept) {
  EXPECT_THAT(Record("fallen", 2'000), IsEmpty());
  const auto found = Read();
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("device 1 is lost")));
  ASSERT_EQ(found.errors.size(), 1U);
  EXPECT_EQ(found.errors[0].device, 1U);
  EXPECT_EQ(found.errors[0].number, 79);
}

TEST_F(RealChild, EventsThatNeverEndAreNotWaitedFor) {
  EXPECT_THAT(Record("events", 500), IsEmpty());
  const auto found = Read();
  EXPECT_THAT(found.errors, IsEmpty());
  EXPECT_GE(found.samples.size(), 4U);
  EXPECT_TRUE(found.ended);
}

// The first reading and the last one come when they are asked for; a counter may be due shortly
// before the levels are.
TEST_F(RealChild, NothingIsReadBeforeItsTime) {
  EXPECT_THAT(Record("", 1'500), IsEmpty());
  std::vector<int64_t> at_ns;
  const auto found = Read();
  for (const evidence::DeviceSample& sample : found.samples) {
    if (sample.device == 0) at_ns.push_back(sample.at_ns);
  }
  ASSERT_GE(at_ns.size(), 4U);
  for (size_t i = 1; i + 1 < at_ns.size(); ++i) {
    EXPECT_GE(at_ns[i] - at_ns[i - 1], 100'000'000) << i;
  }
}

// A /proc in which the child never ends.
TEST_F(RealChild, WhereAChildHangsInTheDriverNoOtherIsStarted) {
  ::setenv("FAKE_NVML", "hang", 1);
  Log log(2, &clock_);
  DeviceRecorder recorder(&log, {.command = {SYNCLINE_AGENT, kDeviceChildFlag},
                                 .library = FAKE_NVML,
                                 .end_limit_ms = 100,
                                 .proc = root_ / "proc"});
  recorder.Begin({.recording_id = "r1", .directory = root_ / "1"});
  int32_t child = -1;
  const auto all = ListProcesses();
  ASSERT_TRUE(all.ok()) << all.status();
  for (const ProcessEntry& entry : *all) {
    if (entry.parent_pid == ::getpid()) child = entry.pid;
  }
  ASSERT_GT(child, 0);
  const fs::path kept = root_ / "proc" / std::to_string(child);
  fs::create_directories(kept);
  for (const char* name : {"stat", "status"}) {
    const auto text = ReadFile(fs::path("/proc") / std::to_string(child) / name);
    ASSERT_TRUE(text.ok() && WriteFileAtomically(kept / name, *text).ok());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  recorder.End();
  EXPECT_EQ(recorder.Collect().size(), 1U);
  recorder.Begin({.recording_id = "r2", .directory = root_ / "2"});
  recorder.End();
  const auto said = recorder.Collect();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0].what(),
              HasSubstr(absl::StrCat("still hangs in the driver (pid ", child, ")")));
  EXPECT_FALSE(fs::exists(root_ / "2"));
}

TEST_F(RealChild, ADriverThatIsNotLoadedIsSaidInTheFile) {
  EXPECT_THAT(Record("none", 300), IsEmpty());
  const auto found = Read();
  EXPECT_THAT(found.notes, ElementsAre("NVML does not start: Driver Not Loaded"));
  EXPECT_TRUE(found.devices.empty());
}

TEST_F(RealChild, WithoutADeviceNothingIsStarted) {
  Log log(2, &clock_);
  DeviceRecorder recorder(&log, {.command = {"/nowhere"}, .control = "/nowhere/nvidiactl"});
  recorder.Begin({.recording_id = "r1", .directory = root_});
  recorder.End();
  EXPECT_TRUE(recorder.Collect().empty());
  EXPECT_FALSE(fs::exists(root_ / "evidence"));
}

}  // namespace
}  // namespace syncline::agent
