// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "agent/devices/device_recorder.h"
#include "agent/devices/hung_child.h"
#include "agent/devices/nvml_library.h"
#include "agent/host/fake_process.h"
#include "agent/probe/fake_clock.h"

namespace syncline::agent {
namespace {

namespace fs = std::filesystem;
using evidence::DeviceValue;
using ::testing::HasSubstr;
constexpr auto kAll = DeviceLibrary::Depth::kAll;

class FakeDevices : public DeviceLibrary {
 public:
  std::string driver_version() override { return "580.65.06"; }
  const std::vector<evidence::Device>& devices() override { return list; }
  evidence::DeviceValues Read(uint32_t device, Depth depth) override {
    depths.push_back(depth);
    return values[device];
  }
  std::vector<int32_t> Users(uint32_t device) override { return users[device]; }
  std::vector<Error> TakeErrors() override { return std::exchange(errors, {}); }
  std::vector<std::string> TakeNotes() override { return std::exchange(notes, {}); }

  std::vector<evidence::Device> list = {{.name = "one"}, {.name = "two"}};
  std::vector<evidence::DeviceValues> values{2};
  std::vector<Depth> depths;
  std::vector<std::vector<int32_t>> users{2};
  std::vector<Error> errors;
  std::vector<std::string> notes;
};

class Sampling : public ::testing::Test {
 protected:
  Sampling() {
    std::string pattern = ::testing::TempDir() + "devices-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    proc_ = root_ / "proc";
    AddFakeProcess(proc_, 'S', ::geteuid());
    SetOwnNamespace("4026531836");
    sampling_ = std::make_unique<DeviceSampling>(&devices_, &clock_, proc_);
    evidence::AppendDevicesHead(&text_);
    text_ += sampling_->Describe("/usr/lib/libnvidia-ml.so.1");
  }
  ~Sampling() override { fs::remove_all(root_); }

  void SetOwnNamespace(const std::string& inode) {
    fs::create_directories(proc_ / "self/ns");
    fs::remove(proc_ / "self/ns/pid");
    fs::create_symlink("pid:[" + inode + "]", proc_ / "self/ns/pid");
  }
  evidence::DeviceSamples Read() const {
    auto found = evidence::ParseDeviceSamples(text_);
    EXPECT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->damaged_lines, 0U) << text_;
    return *std::move(found);
  }

  fs::path root_;
  fs::path proc_;
  FakeClock clock_;
  FakeDevices devices_;
  std::unique_ptr<DeviceSampling> sampling_;
  std::string text_;
};

TEST_F(Sampling, ADeviceThatSaysNothingHasNoSample) {
  devices_.values[1].Set(DeviceValue::kSmMhz, 1980);
  text_ += sampling_->Round(kAll);
  const auto found = Read();
  ASSERT_EQ(found.samples.size(), 1U);
  EXPECT_EQ(found.samples[0].device, 1U);
  EXPECT_EQ(found.samples[0].values.Get(DeviceValue::kSmMhz), 1980);
  EXPECT_LT(found.samples[0].at_ns, found.samples[0].until_ns);
}

TEST_F(Sampling, WhoUsesADeviceIsLookedForOnceASecond) {
  devices_.users[0] = {1234, 99};  // 99 is not there
  text_ += sampling_->Round(kAll);
  text_ += sampling_->Round(kAll);
  EXPECT_EQ(Read().users.size(), 1U);
  clock_.SleepNs(1'000'000'000);
  text_ += sampling_->Round(kAll);
  const auto found = Read();
  ASSERT_EQ(found.processes.size(), 1U);
  EXPECT_EQ(found.processes[0].start_ticks, 5678U);
  EXPECT_EQ(found.processes[0].pid_namespace_inode, 4026531836);
  EXPECT_EQ(found.processes[0].own_pid, 1234);
  EXPECT_EQ(found.users.size(), 2U);
}

TEST_F(Sampling, InAContainerAProcessMustHaveADeviceOpen) {
  SetOwnNamespace("4026539999");
  devices_.users[0] = {1234};
  text_ += sampling_->Round(kAll);
  EXPECT_TRUE(Read().users.empty());
  fs::create_directories(proc_ / "1234/fd");
  fs::create_symlink("/dev/nvidia0", proc_ / "1234/fd/7");
  clock_.SleepNs(1'000'000'000);
  text_ += sampling_->Round(kAll);
  EXPECT_EQ(Read().users.size(), 1U);
}

TEST_F(Sampling, ErrorsLieBetweenTwoLooks) {
  const int64_t begin_ns = clock_.MonotonicNs();
  text_ += sampling_->Round(kAll);
  const int64_t middle_ns = clock_.MonotonicNs();
  devices_.errors = {{1, 79}};
  devices_.notes = {"device 1 is lost"};
  text_ += sampling_->Round(kAll);
  const auto found = Read();
  ASSERT_EQ(found.errors.size(), 1U);
  EXPECT_EQ(found.errors[0].device, 1U);
  EXPECT_EQ(found.errors[0].number, 79);
  EXPECT_GT(found.errors[0].at_ns, begin_ns);
  EXPECT_LT(found.errors[0].at_ns, middle_ns);
  EXPECT_GT(found.errors[0].until_ns, middle_ns);
  EXPECT_EQ(found.notes.at(0), "device 1 is lost");
}

TEST_F(Sampling, OnlyALibraryThatOthersCannotChangeIsLoaded) {
  EXPECT_TRUE(absl::IsNotFound(FindNvml({root_ / "none"}).status()));
  const fs::path place = root_ / "lib";
  fs::create_directories(place);
  ASSERT_TRUE(WriteFileAtomically(place / "libnvidia-ml.so.580", "x").ok());
  fs::create_symlink("libnvidia-ml.so.580", place / "libnvidia-ml.so.1");
  fs::permissions(place, fs::perms(0755));
  const auto found = FindNvml({root_ / "none", place});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->filename(), "libnvidia-ml.so.580");
  fs::permissions(place, fs::perms(0777));
  EXPECT_THAT(std::string(FindNvml({place}).status().message()), HasSubstr("others may write"));
  fs::permissions(place, fs::perms(0755));
  fs::permissions(*found, fs::perms(0664));
  EXPECT_FALSE(FindNvml({place}).ok());
}

TEST_F(Sampling, NorOneOnAWayThatOthersCanChange) {
  const fs::path place = root_ / "driver" / "lib";
  fs::create_directories(place);
  fs::permissions(place, fs::perms(0755));
  ASSERT_TRUE(WriteFileAtomically(place / "libnvidia-ml.so.1", "x").ok());
  EXPECT_TRUE(FindNvml({place}).ok());
  DeviceOptions by_hand{.command = {}, .library = place / "libnvidia-ml.so.1"};
  EXPECT_TRUE(ChooseDevices(by_hand).ok());
  fs::permissions(root_ / "driver", fs::perms(0777));
  EXPECT_THAT(std::string(FindNvml({place}).status().message()), HasSubstr("others may write"));
  EXPECT_EQ(ChooseDevices(by_hand).ok(), ::geteuid() != 0);
  fs::permissions(root_ / "driver", fs::perms(0755));
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown((root_ / "driver").c_str(), 61234, 61234), 0);
  EXPECT_FALSE(FindNvml({place}).ok());
  EXPECT_FALSE(ChooseDevices(by_hand).ok());
}

TEST_F(Sampling, AChildHangsForAsLongAsItIsThere) {
  HungChild hung(proc_);
  EXPECT_TRUE(hung.Check().ok());
  hung.Remember(99);  // has ended
  EXPECT_TRUE(hung.Check().ok());
  AddFakeProcess(proc_, 'D', ::geteuid());
  hung.Remember(1234);
  EXPECT_EQ(hung.Check().message(),
            "an earlier look at the devices still hangs in the driver (pid 1234)");
  const auto stat = ReadFile(proc_ / "1234/stat");
  std::string later = *stat;
  later.replace(later.find("5678"), 4, "9999");  // another process of the same number
  ASSERT_TRUE(WriteFileAtomically(proc_ / "1234/stat", later).ok());
  EXPECT_TRUE(hung.Check().ok());
  ASSERT_TRUE(WriteFileAtomically(proc_ / "1234/stat", *stat).ok());
  EXPECT_FALSE(hung.Check().ok());
  fs::remove_all(proc_ / "1234");
  EXPECT_TRUE(hung.Check().ok());
}

}  // namespace
}  // namespace syncline::agent
