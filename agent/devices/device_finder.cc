// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_finder.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "evidence/device_samples.h"

namespace syncline::agent {
namespace {

constexpr int kLimitMs = 3'000;
constexpr int64_t kHoldsNs = 600'000'000'000;
constexpr int64_t kProblemHoldsNs = 10'000'000'000;

// "8 devices: NVIDIA H100 80GB HBM3", "2 devices: NVIDIA A2, NVIDIA T4".
std::string DetailOf(const std::vector<evidence::Device>& devices) {
  std::map<std::string, int> names;
  for (const evidence::Device& device : devices) {
    ++names[device.name.empty() ? "one that does not answer" : device.name];
  }
  const auto text = [](std::string* out, const auto& name) { absl::StrAppend(out, name.first); };
  return absl::StrCat(devices.size(), devices.size() == 1 ? " device" : " devices",
                      names.empty() ? "" : ": ", absl::StrJoin(names, ", ", text));
}

}  // namespace

std::optional<v1::NodeTool> DeviceFinder::Find() {
  const std::lock_guard lock(mutex_);
  if (clock_->MonotonicNs() < found_until_ns_) return found_;
  found_ = Ask();
  const bool problem = found_.has_value() && !found_->problem().empty();
  found_until_ns_ = clock_->MonotonicNs() + (problem ? kProblemHoldsNs : kHoldsNs);
  return found_;
}

std::optional<v1::NodeTool> DeviceFinder::Ask() const {
  v1::NodeTool tool;
  tool.set_name("nvml");
  tool.set_path(options_.control.string());
  const auto library = ChooseNvml(options_);
  if (!library.ok()) {
    tool.set_problem(std::string(library.status().message()));
    return tool;
  }
  if (!library->has_value()) return std::nullopt;
  tool.set_path((*library)->string());
  SpawnOptions describe{.arguments = options_.command};
  describe.arguments.push_back(tool.path());
  const auto answer = runner_->Run(describe, kLimitMs);
  if (!answer.ok()) {
    tool.set_problem(std::string(answer.status().message()));
    return tool;
  }
  const auto said = evidence::ParseDeviceSamples(answer->output);
  if (!said.ok()) {
    tool.set_problem("it does not say what devices there are");
  } else if (answer->exit_code != 0) {
    tool.set_problem(said->notes.empty() ? absl::StrCat("it ended with ", answer->exit_code)
                                         : said->notes.front());
  } else {
    tool.set_version(said->driver_version);
    tool.set_detail(DetailOf(said->devices));
  }
  return tool;
}

}  // namespace syncline::agent
