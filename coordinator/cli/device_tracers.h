// SPDX-License-Identifier: Apache-2.0
// `syncline run --devices` and `--nccl`: the environment by which the loaders of OpenCL and CUDA,
// and NCCL, take in our tracers; those of Level Zero and ROCm are preloaded, and the tracing layer
// of Level Zero's loader is switched on. What the user has there stays: a list is appended to, of a
// variable that holds one value only, ours gives way.
#ifndef SYNCLINE_COORDINATOR_CLI_DEVICE_TRACERS_H_
#define SYNCLINE_COORDINATOR_CLI_DEVICE_TRACERS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "coordinator/cli/environment.h"

namespace syncline::cli {

inline constexpr char kOpenClVariable[] = "OPENCL_LAYERS";               // a list, by colons
inline constexpr char kCudaVariable[] = "CUDA_INJECTION64_PATH";         // one path
inline constexpr char kLevelZeroVariable[] = "ZE_ENABLE_TRACING_LAYER";  // 1: on
inline constexpr char kLevelZeroFile[] = "libsyncline_level_zero.so";    // to be preloaded
inline constexpr char kRocmFile[] = "libsyncline_rocm.so";               // the same
inline constexpr char kNcclVariable[] = "NCCL_PROFILER_PLUGIN";          // one path, or a name

// Adds to `set` what is to be set; what is said of it, a line each.
std::vector<std::string> PlanDevices(const Environment& current,
                                     const std::filesystem::path& library_directory,
                                     Environment* set);

// The same for a job script (sh), decided where it runs.
std::string DeviceLines(const std::filesystem::path& library_directory);

// The same two for NCCL's collectives.
std::vector<std::string> PlanNccl(const Environment& current,
                                  const std::filesystem::path& library_directory, Environment* set);
std::string NcclLines(const std::filesystem::path& library_directory);

}  // namespace syncline::cli

#endif  // SYNCLINE_COORDINATOR_CLI_DEVICE_TRACERS_H_
