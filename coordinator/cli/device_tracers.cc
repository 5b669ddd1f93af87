// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cli/device_tracers.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace syncline::cli {
namespace {

constexpr char kOpenClFile[] = "libsyncline_opencl.so";
constexpr char kCudaFile[] = "libsyncline_cuda.so";
constexpr char kNcclFile[] = "libsyncline_nccl.so";

// Of a variable that holds one path: what is said where it holds another's.
std::string TakeUnlessSet(const Environment& current, const char* variable, const std::string& own,
                          const char* what, Environment* set) {
  if (!IsSet(current, variable)) {
    (*set)[variable] = own;
  } else if (current.at(variable) != own) {
    return absl::StrCat(what, " is not recorded: ", variable, " names another tool (",
                        current.at(variable), ")");
  }
  return "";
}

std::string LineUnlessSet(const char* variable, const std::string& quoted) {
  return absl::StrCat("[ -n \"${", variable, ":-}\" ] || export ", variable, "=", quoted, "\n");
}

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
  const std::string refused =
      TakeUnlessSet(current, kCudaVariable, injected, "what CUDA devices do", set);
  if (!refused.empty()) said.push_back(refused);
  if (!IsSet(current, kLevelZeroVariable)) {
    set->insert_or_assign(kLevelZeroVariable, std::string("1"));
  } else if (const std::string& own = current.at(kLevelZeroVariable); own != "1") {
    said.push_back(absl::StrCat(
        "what Level Zero's devices do is not recorded: ", kLevelZeroVariable, " is ", own));
  }
  return said;
}

std::string DeviceLines(const std::filesystem::path& library_directory) {
  const std::string layer = ShellQuoted((library_directory / kOpenClFile).string());
  const std::string injected = ShellQuoted((library_directory / kCudaFile).string());
  return absl::StrCat("case \":${", kOpenClVariable, ":-}:\" in *:", layer, ":*) ;; *) export ",
                      kOpenClVariable, "=\"${", kOpenClVariable, ":+$", kOpenClVariable, ":}\"",
                      layer, " ;; esac\n", LineUnlessSet(kCudaVariable, injected),
                      LineUnlessSet(kLevelZeroVariable, "1"));
}

std::vector<std::string> PlanNccl(const Environment& current,
                                  const std::filesystem::path& library_directory,
                                  Environment* set) {
  const std::string plugin = (library_directory / kNcclFile).string();
  const std::string refused =
      TakeUnlessSet(current, kNcclVariable, plugin, "what GPUs do for NCCL's collectives", set);
  if (refused.empty()) return {};
  return {refused};
}

std::string NcclLines(const std::filesystem::path& library_directory) {
  return LineUnlessSet(kNcclVariable, ShellQuoted((library_directory / kNcclFile).string()));
}

}  // namespace syncline::cli
