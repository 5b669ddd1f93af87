// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/device_tracers.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace syncline::cli {
namespace {

constexpr char kOpenClFile[] = "libsyncline_opencl.so";
constexpr char kCudaFile[] = "libsyncline_cuda.so";

}  // namespace

std::vector<std::string> PlanDevices(const Environment& current,
                                     const std::filesystem::path& library_directory,
                                     Environment* set) {
  std::vector<std::string> said;
  const std::string layer = (library_directory / kOpenClFile).string();
  if (!IsSet(current, kOpenClVariable)) {
    (*set)[kOpenClVariable] = layer;
  } else if (const std::string& own = current.at(kOpenClVariable);
             !absl::StrContains(absl::StrCat(":", own, ":"), absl::StrCat(":", layer, ":"))) {
    (*set)[kOpenClVariable] = absl::StrCat(own, ":", layer);
  }
  const std::string injected = (library_directory / kCudaFile).string();
  if (!IsSet(current, kCudaVariable)) {
    (*set)[kCudaVariable] = injected;
  } else if (current.at(kCudaVariable) != injected) {
    said.push_back(absl::StrCat("what CUDA devices do is not recorded: ", kCudaVariable,
                                " names another tool (", current.at(kCudaVariable), ")"));
  }
  return said;
}

std::string DeviceLines(const std::filesystem::path& library_directory) {
  const std::string layer = ShellQuoted((library_directory / kOpenClFile).string());
  const std::string injected = ShellQuoted((library_directory / kCudaFile).string());
  return absl::StrCat("case \":${", kOpenClVariable, ":-}:\" in *:", layer, ":*) ;; *) export ",
                      kOpenClVariable, "=\"${", kOpenClVariable, ":+$", kOpenClVariable, ":}\"",
                      layer, " ;; esac\n", "[ -n \"${", kCudaVariable, ":-}\" ] || export ",
                      kCudaVariable, "=", injected, "\n");
}

}  // namespace syncline::cli
