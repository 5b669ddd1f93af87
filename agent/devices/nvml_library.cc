// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/nvml_library.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/text.h"
#include "common/trusted_file.h"

namespace syncline::agent {
namespace {

using evidence::DeviceValue;
using evidence::DeviceValues;
using nvml::Handle;
using nvml::Return;

constexpr char kName[] = "libnvidia-ml.so.1";
constexpr unsigned kDevicesMax = 64;
constexpr unsigned kUsersMax = 256;
constexpr int kEventsMax = 64;  // of a look

struct Policy {
  unsigned number;
  DeviceValue value;
};
constexpr std::array<Policy, 6> kPolicies = {{
    {nvml::kPolicyPower, DeviceValue::kPowerNs},
    {nvml::kPolicyThermal, DeviceValue::kThermalNs},
    {nvml::kPolicySyncBoost, DeviceValue::kSyncBoostNs},
    {nvml::kPolicyBoardLimit, DeviceValue::kBoardLimitNs},
    {nvml::kPolicyLowUtilization, DeviceValue::kLowUseNs},
    {nvml::kPolicyReliability, DeviceValue::kReliabilityNs},
}};

struct Field {
  unsigned number;
  DeviceValue value;
  DeviceLibrary::Depth depth;
};
constexpr auto kLevels = DeviceLibrary::Depth::kLevels;
constexpr auto kCounters = DeviceLibrary::Depth::kCounters;
constexpr std::array<Field, 12> kFields = {{
    {nvml::kFieldEccSingleVolatile, DeviceValue::kCorrectedErrors, kLevels},
    {nvml::kFieldEccDoubleVolatile, DeviceValue::kUncorrectedErrors, kLevels},
    {nvml::kFieldMemoryTemperature, DeviceValue::kMemoryCelsius, kLevels},
    {nvml::kFieldPcieReplays, DeviceValue::kPcieReplays, kCounters},
    {nvml::kFieldNvlinkDataSent, DeviceValue::kNvlinkSentKib, kCounters},
    {nvml::kFieldNvlinkDataReceived, DeviceValue::kNvlinkReceivedKib, kCounters},
    {nvml::kFieldPowerInstant, DeviceValue::kPowerMw, kLevels},
    {nvml::kFieldPowerLimit, DeviceValue::kPowerLimitMw, kLevels},
    {nvml::kFieldPcieSent, DeviceValue::kPcieSentBytes, kCounters},
    {nvml::kFieldPcieReceived, DeviceValue::kPcieReceivedBytes, kCounters},
    {nvml::kFieldHardwareThermal, DeviceValue::kHardwareHotNs, kCounters},
    {nvml::kFieldHardwarePowerBrake, DeviceValue::kHardwarePowerNs, kCounters},
}};

// -1: it does not say.
int64_t AmountOf(const nvml::FieldValue& field) {
  if (field.result != nvml::kSuccess) return -1;
  switch (field.type) {
    case nvml::ValueType::kDouble:
      return field.value.real >= 0 && field.value.real < 9e15
                 ? static_cast<int64_t>(field.value.real)
                 : -1;
    case nvml::ValueType::kUnsignedInt:
      return field.value.unsigned_int;
    case nvml::ValueType::kUnsignedLong:
      return static_cast<int64_t>(field.value.unsigned_long);
    case nvml::ValueType::kUnsignedLongLong:
      return static_cast<int64_t>(field.value.unsigned_long_long);
    case nvml::ValueType::kSignedLongLong:
      return field.value.signed_long_long;
    case nvml::ValueType::kSignedInt:
      return field.value.signed_int;
    case nvml::ValueType::kUnsignedShort:
      return field.value.unsigned_short;
  }
  return -1;
}

template <class Function>
void Look(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(library, absl::StrCat("nvml", name).c_str()));
}

nvml::Functions FunctionsOf(void* library) {
  nvml::Functions all{};
#define SYNCLINE_LOOK(name) Look(library, #name, &all.name)
  SYNCLINE_LOOK(Init_v2);
  SYNCLINE_LOOK(ErrorString);
  SYNCLINE_LOOK(SystemGetDriverVersion);
  SYNCLINE_LOOK(DeviceGetCount_v2);
  SYNCLINE_LOOK(DeviceGetHandleByIndex_v2);
  SYNCLINE_LOOK(DeviceGetName);
  SYNCLINE_LOOK(DeviceGetUUID);
  SYNCLINE_LOOK(DeviceGetPciInfo_v3);
  SYNCLINE_LOOK(DeviceGetMaxClockInfo);
  SYNCLINE_LOOK(DeviceGetClockInfo);
  SYNCLINE_LOOK(DeviceGetPowerUsage);
  SYNCLINE_LOOK(DeviceGetTotalEnergyConsumption);
  SYNCLINE_LOOK(DeviceGetTemperature);
  SYNCLINE_LOOK(DeviceGetUtilizationRates);
  SYNCLINE_LOOK(DeviceGetMemoryInfo);
  SYNCLINE_LOOK(DeviceGetCurrentClocksThrottleReasons);
  SYNCLINE_LOOK(DeviceGetViolationStatus);
  SYNCLINE_LOOK(DeviceGetFieldValues);
  SYNCLINE_LOOK(DeviceGetComputeRunningProcesses_v3);
  SYNCLINE_LOOK(EventSetCreate);
  SYNCLINE_LOOK(DeviceRegisterEvents);
  SYNCLINE_LOOK(EventSetWait_v2);
#undef SYNCLINE_LOOK
  return all;
}

// Calls what the library may not have.
template <class... Parameters, class... Arguments>
bool Got(Return (*function)(Parameters...), Arguments... arguments) {
  return function != nullptr && function(arguments...) == nvml::kSuccess;
}

template <size_t kBytes>
std::string TextOf(Return (*function)(Handle, char*, unsigned), Handle handle) {
  std::array<char, kBytes> text{};
  if (!Got(function, handle, text.data(), static_cast<unsigned>(text.size()))) return "";
  text.back() = '\0';
  return text.data();
}

// Only root and this user can write there.
bool IsClosed(const std::filesystem::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return false;
  return (facts.st_uid == 0 || facts.st_uid == ::geteuid()) && (facts.st_mode & 0022) == 0;
}

absl::Status NotLoaded(const std::filesystem::path& path, std::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("\"", path.string(), "\" is not loaded: ", AbslView(why)));
}

}  // namespace

std::vector<std::filesystem::path> NvmlPlaces() {
  return {
      "/usr/lib/x86_64-linux-gnu",
      "/usr/lib/aarch64-linux-gnu",
      "/usr/lib64",
      "/usr/lib",
      "/usr/local/nvidia/lib64",                  // of Kubernetes' device plugins
      "/home/kubernetes/bin/nvidia/lib64",        // of Google's images for nodes
      "/usr/lib/x86_64-linux-gnu/nvidia/current"  // of Debian's driver
  };
}

absl::Status CheckNvml(const std::filesystem::path& library) {
  std::error_code error;
  const absl::Status way = CheckWay(std::filesystem::absolute(library, error), ::geteuid());
  if (!way.ok()) return NotLoaded(library, std::string(way.message()));
  const std::filesystem::path path = std::filesystem::canonical(library, error);
  if (error) return absl::OkStatus();  // it is not there: nobody else can put it there, either
  if (IsClosed(path) && IsClosed(path.parent_path())) return absl::OkStatus();
  return NotLoaded(path, "others than root can write it or its directory");
}

absl::StatusOr<std::filesystem::path> FindNvml(const std::vector<std::filesystem::path>& places) {
  std::error_code error;
  for (const std::filesystem::path& place : places) {
    const std::filesystem::path path = std::filesystem::canonical(place / kName, error);
    if (error) continue;
    SYNCLINE_RETURN_IF_ERROR(CheckNvml(path));
    return path;
  }
  return absl::NotFoundError(absl::StrCat(
      kName, " is not where the driver's packages put it: install the driver's libraries"));
}

absl::StatusOr<std::unique_ptr<NvmlLibrary>> NvmlLibrary::Load(const std::filesystem::path& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return absl::FailedPreconditionError(
        absl::StrCat("Cannot load NVML: ", why == nullptr ? path.string() : why));
  }
  const nvml::Functions functions = FunctionsOf(library);
  if (functions.Init_v2 == nullptr || functions.DeviceGetCount_v2 == nullptr ||
      functions.DeviceGetHandleByIndex_v2 == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", path.string(), "\" is no NVML of a version that is known"));
  }
  auto nvml = std::unique_ptr<NvmlLibrary>(new NvmlLibrary(functions));
  unsigned count = 0;
  Return result = functions.Init_v2();
  if (result == nvml::kSuccess) result = functions.DeviceGetCount_v2(&count);
  if (result != nvml::kSuccess) {
    return absl::FailedPreconditionError(absl::StrCat("NVML does not start: ", nvml->Text(result)));
  }
  nvml->FindDevices(std::min(count, kDevicesMax));
  nvml->WatchErrors();
  return nvml;
}

std::string NvmlLibrary::Text(Return result) const {
  const char* const text = nvml_.ErrorString == nullptr ? nullptr : nvml_.ErrorString(result);
  return text == nullptr ? absl::StrCat("error ", result) : text;
}

void NvmlLibrary::FindDevices(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    const Return result = nvml_.DeviceGetHandleByIndex_v2(i, &handle);
    if (result != nvml::kSuccess) {
      handle = nullptr;
      notes_.push_back(absl::StrCat("device ", i, " does not answer: ", Text(result)));
    }
    handles_.push_back(handle);
    devices_.push_back(handle == nullptr ? evidence::Device() : Describe(handle));
  }
  lost_.resize(handles_.size());
}

evidence::Device NvmlLibrary::Describe(Handle handle) const {
  evidence::Device device;
  device.id = TextOf<96>(nvml_.DeviceGetUUID, handle);
  device.name = TextOf<96>(nvml_.DeviceGetName, handle);
  nvml::PciInfo pci{};
  if (Got(nvml_.DeviceGetPciInfo_v3, handle, &pci)) {
    device.bus.assign(pci.bus_id, ::strnlen(pci.bus_id, sizeof pci.bus_id));
  }
  nvml::Memory memory{};
  if (Got(nvml_.DeviceGetMemoryInfo, handle, &memory)) {
    device.memory_bytes = static_cast<int64_t>(memory.total);
  }
  unsigned mhz = 0;
  if (Got(nvml_.DeviceGetMaxClockInfo, handle, nvml::kClockSm, &mhz)) device.sm_mhz_max = mhz;
  return device;
}

// No right is needed for it; a device that cannot be watched has other uses.
void NvmlLibrary::WatchErrors() {
  if (nvml_.DeviceRegisterEvents == nullptr || nvml_.EventSetWait_v2 == nullptr) return;
  if (!Got(nvml_.EventSetCreate, &events_)) {
    events_ = nullptr;
    return;
  }
  for (size_t i = 0; i < handles_.size(); ++i) {
    devices_[i].errors_watched =
        handles_[i] != nullptr &&
        nvml_.DeviceRegisterEvents(handles_[i], nvml::kEventXid, events_) == nvml::kSuccess;
  }
}

std::string NvmlLibrary::driver_version() {
  std::array<char, 80> text{};
  if (!Got(nvml_.SystemGetDriverVersion, text.data(), static_cast<unsigned>(text.size()))) {
    return "";
  }
  text.back() = '\0';
  return text.data();
}

DeviceValues NvmlLibrary::Read(uint32_t device, Depth depth) {
  DeviceValues values;
  const Handle handle = handles_[device];
  if (handle == nullptr || lost_[device]) return values;
  unsigned mhz = 0;
  if (nvml_.DeviceGetClockInfo != nullptr) {
    const Return result = nvml_.DeviceGetClockInfo(handle, nvml::kClockSm, &mhz);
    if (result == nvml::kGpuIsLost) {
      notes_.push_back(absl::StrCat("device ", device, " is lost: ", Text(result)));
      lost_[device] = true;
      return values;
    }
    if (result == nvml::kSuccess) values.Set(DeviceValue::kSmMhz, mhz);
  }
  ReadClocks(handle, &values);
  ReadUse(handle, &values);
  ReadFields(handle, depth, &values);
  if (depth >= Depth::kCounters) ReadThrottling(handle, &values);
  if (depth >= Depth::kAll) ReadEnergy(handle, &values);
  return values;
}

void NvmlLibrary::ReadClocks(Handle handle, DeviceValues* values) const {
  unsigned amount = 0;
  if (Got(nvml_.DeviceGetClockInfo, handle, nvml::kClockMem, &amount)) {
    values->Set(DeviceValue::kMemoryMhz, amount);
  }
  if (Got(nvml_.DeviceGetPowerUsage, handle, &amount)) values->Set(DeviceValue::kPowerMw, amount);
  if (Got(nvml_.DeviceGetTemperature, handle, nvml::kSensorGpu, &amount)) {
    values->Set(DeviceValue::kDeviceCelsius, amount);
  }
}

void NvmlLibrary::ReadUse(Handle handle, DeviceValues* values) const {
  nvml::Utilization use{};
  if (Got(nvml_.DeviceGetUtilizationRates, handle, &use)) {
    values->Set(DeviceValue::kBusyPercent, use.gpu);
    values->Set(DeviceValue::kMemoryBusyPercent, use.memory);
  }
  nvml::Memory memory{};
  if (Got(nvml_.DeviceGetMemoryInfo, handle, &memory)) {
    values->Set(DeviceValue::kMemoryUsedBytes, static_cast<int64_t>(memory.used));
  }
  unsigned long long reasons = 0;
  if (Got(nvml_.DeviceGetCurrentClocksThrottleReasons, handle, &reasons)) {
    values->Set(DeviceValue::kReasons, static_cast<int64_t>(reasons));
  }
}

void NvmlLibrary::ReadEnergy(Handle handle, DeviceValues* values) const {
  unsigned long long energy_mj = 0;
  if (Got(nvml_.DeviceGetTotalEnergyConsumption, handle, &energy_mj)) {
    values->Set(DeviceValue::kEnergyMj, static_cast<int64_t>(energy_mj));
  }
}

// The function is called deprecated since NVML 13.0. It says the unit of its times; the fields in
// its place did not before that version.
void NvmlLibrary::ReadThrottling(Handle handle, DeviceValues* values) const {
  for (const Policy& policy : kPolicies) {
    nvml::ViolationTime time{};
    if (Got(nvml_.DeviceGetViolationStatus, handle, policy.number, &time)) {
      values->Set(policy.value, static_cast<int64_t>(time.violation_ns));
    }
  }
}

void NvmlLibrary::ReadFields(Handle handle, Depth depth, DeviceValues* values) const {
  std::array<nvml::FieldValue, kFields.size()> asked{};
  std::array<DeviceValue, kFields.size()> meant{};
  int count = 0;
  for (const Field& field : kFields) {
    if (field.depth > depth) continue;
    meant[count] = field.value;
    nvml::FieldValue& one = asked[count++];
    one.field = field.number;
    one.result = nvml::kNotSupported;
    const bool of_links =
        one.field == nvml::kFieldNvlinkDataSent || one.field == nvml::kFieldNvlinkDataReceived;
    if (of_links) one.scope = nvml::kAllLinks;
  }
  if (!Got(nvml_.DeviceGetFieldValues, handle, count, asked.data())) return;
  for (int i = 0; i < count; ++i) {
    const int64_t amount = AmountOf(asked[i]);
    if (amount >= 0) values->Set(meant[i], amount);
  }
}

std::vector<int32_t> NvmlLibrary::Users(uint32_t device) {
  std::vector<int32_t> pids;
  if (handles_[device] == nullptr || lost_[device]) return pids;
  std::vector<nvml::ProcessInfo> users(kUsersMax);
  unsigned count = kUsersMax;
  if (!Got(nvml_.DeviceGetComputeRunningProcesses_v3, handles_[device], &count, users.data())) {
    return pids;
  }
  for (unsigned i = 0; i < std::min(count, kUsersMax); ++i) {
    pids.push_back(static_cast<int32_t>(users[i].pid));
  }
  return pids;
}

// Also of a device that is lost: its last error says why.
std::vector<DeviceLibrary::Error> NvmlLibrary::TakeErrors() {
  std::vector<Error> errors;
  if (events_ == nullptr) return errors;
  for (int i = 0; i < kEventsMax; ++i) {
    nvml::EventData event{};
    if (nvml_.EventSetWait_v2(events_, &event, 0) != nvml::kSuccess) break;
    if (event.type != nvml::kEventXid || event.device == nullptr) continue;
    const auto device = std::find(handles_.begin(), handles_.end(), event.device);
    if (device == handles_.end()) continue;
    errors.push_back(
        {static_cast<uint32_t>(device - handles_.begin()), static_cast<int64_t>(event.data)});
  }
  return errors;
}

std::vector<std::string> NvmlLibrary::TakeNotes() { return std::exchange(notes_, {}); }

}  // namespace syncline::agent
