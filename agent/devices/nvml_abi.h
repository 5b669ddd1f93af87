// SPDX-License-Identifier: Apache-2.0
// What is needed of the binary interface of NVIDIA's management library, libnvidia-ml.so.1. It is
// loaded at run time and never linked.
//
// Source: nvml.h of NVML 13 (PyPI nvidia-nvml-dev 13.5.37). Names, numbers and layouts are those of
// that header; functions with a version in their names have kept their layout since they appeared.
#ifndef SYNCLINE_AGENT_DEVICES_NVML_ABI_H_
#define SYNCLINE_AGENT_DEVICES_NVML_ABI_H_

#include <cstdint>

namespace syncline::agent::nvml {

using Handle = void*;  // nvmlDevice_t, nvmlEventSet_t
using Return = int;    // nvmlReturn_t

inline constexpr Return kSuccess = 0;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kGpuIsLost = 15;

inline constexpr unsigned kClockSm = 1;  // nvmlClockType_t
inline constexpr unsigned kClockMem = 2;
inline constexpr unsigned kSensorGpu = 0;  // nvmlTemperatureSensors_t
inline constexpr unsigned long long kEventXid = 0x8;

// nvmlPerfPolicyType_t
inline constexpr unsigned kPolicyPower = 0;
inline constexpr unsigned kPolicyThermal = 1;
inline constexpr unsigned kPolicySyncBoost = 2;
inline constexpr unsigned kPolicyBoardLimit = 3;
inline constexpr unsigned kPolicyLowUtilization = 4;
inline constexpr unsigned kPolicyReliability = 5;

// NVML_FI_DEV_...
inline constexpr unsigned kFieldEccSingleVolatile = 3;
inline constexpr unsigned kFieldEccDoubleVolatile = 4;
inline constexpr unsigned kFieldMemoryTemperature = 82;
inline constexpr unsigned kFieldPcieReplays = 94;
inline constexpr unsigned kFieldNvlinkDataSent = 138;  // KiB
inline constexpr unsigned kFieldNvlinkDataReceived = 139;
inline constexpr unsigned kFieldPowerInstant = 186;  // mW
inline constexpr unsigned kFieldPowerLimit = 190;    // mW, that is enforced
inline constexpr unsigned kFieldPcieSent = 197;      // bytes
inline constexpr unsigned kFieldPcieReceived = 198;
inline constexpr unsigned kFieldHardwareThermal = 270;  // ns
inline constexpr unsigned kFieldHardwarePowerBrake = 271;
inline constexpr unsigned kAllLinks = UINT32_MAX;  // scope of NVLink's fields

enum class ValueType : unsigned {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
  kUnsignedShort = 6,
};

union Value {
  double real;
  int signed_int;
  unsigned unsigned_int;
  unsigned long unsigned_long;
  unsigned long long unsigned_long_long;
  long long signed_long_long;
  unsigned short unsigned_short;
};

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp_us;
  long long latency_us;
  ValueType type;
  Return result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

struct Utilization {
  unsigned gpu;
  unsigned memory;
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct ViolationTime {
  unsigned long long reference_us;
  unsigned long long violation_ns;
};

struct PciInfo {
  char bus_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct EventData {
  Handle device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(EventData) == 32);

// Its functions that are used; nullptr: this library has none of that name.
struct Functions {
  Return (*Init_v2)();
  const char* (*ErrorString)(Return);
  Return (*SystemGetDriverVersion)(char*, unsigned);
  Return (*DeviceGetCount_v2)(unsigned*);
  Return (*DeviceGetHandleByIndex_v2)(unsigned, Handle*);
  Return (*DeviceGetName)(Handle, char*, unsigned);
  Return (*DeviceGetUUID)(Handle, char*, unsigned);
  Return (*DeviceGetPciInfo_v3)(Handle, PciInfo*);
  Return (*DeviceGetMaxClockInfo)(Handle, unsigned, unsigned*);
  Return (*DeviceGetClockInfo)(Handle, unsigned, unsigned*);
  Return (*DeviceGetPowerUsage)(Handle, unsigned*);
  Return (*DeviceGetTotalEnergyConsumption)(Handle, unsigned long long*);
  Return (*DeviceGetTemperature)(Handle, unsigned, unsigned*);
  Return (*DeviceGetUtilizationRates)(Handle, Utilization*);
  Return (*DeviceGetMemoryInfo)(Handle, Memory*);
  Return (*DeviceGetCurrentClocksThrottleReasons)(Handle, unsigned long long*);
  Return (*DeviceGetViolationStatus)(Handle, unsigned, ViolationTime*);
  Return (*DeviceGetFieldValues)(Handle, int, FieldValue*);
  Return (*DeviceGetComputeRunningProcesses_v3)(Handle, unsigned*, ProcessInfo*);
  Return (*EventSetCreate)(Handle*);
  Return (*DeviceRegisterEvents)(Handle, unsigned long long, Handle);
  Return (*EventSetWait_v2)(Handle, EventData*, unsigned);
};

}  // namespace syncline::agent::nvml

#endif  // SYNCLINE_AGENT_DEVICES_NVML_ABI_H_
