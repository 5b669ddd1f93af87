// SPDX-License-Identifier: Apache-2.0
#include "agent/devices/device_finder.h"

#include <fcntl.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/session/output_memory.h"
#include "common/files.h"
#include "evidence/device_samples.h"

namespace syncline::agent {
namespace {

constexpr int kLimitMs = 3'000;
constexpr int kAboveGiven = 10;  // a child's own descriptors are below (spawn.h)
constexpr size_t kPidBytesMax = 32;
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

// What its library and devices are, or what is wrong.
void Take(const RunResult& answer, v1::NodeTool* tool) {
  const auto said = evidence::ParseDeviceSamples(answer.output);
  if (!said.ok()) {
    tool->set_problem("it does not say what devices there are");
  } else if (answer.exit_code != 0) {
    tool->set_problem(said->notes.empty() ? absl::StrCat("it ended with ", answer.exit_code)
                                          : said->notes.front());
  } else {
    tool->set_version(said->driver_version);
    tool->set_detail(DetailOf(said->devices));
  }
}

}  // namespace

std::optional<v1::NodeTool> DeviceFinder::Find() {
  const std::lock_guard lock(mutex_);
  if (clock_->MonotonicNs() < found_until_ns_) return found_;
  Answer answer = Ask();
  found_ = std::move(answer.tool);
  const bool problem = !answer.in_time || (found_.has_value() && !found_->problem().empty());
  found_until_ns_ = clock_->MonotonicNs() + (problem ? kProblemHoldsNs : kHoldsNs);
  return found_;
}

DeviceFinder::Answer DeviceFinder::Ask() {
  Answer asked;
  v1::NodeTool& tool = asked.tool.emplace();
  tool.set_name("nvml");
  tool.set_path(options_.control.string());
  const auto library = ChooseDevices(options_);
  if (!library.ok()) {
    tool.set_problem(std::string(library.status().message()));
    return asked;
  }
  if (!library->has_value()) return {};
  tool.set_path((*library)->string());
  tool.set_name(DevicesName(**library));
  if (const absl::Status hung = hung_.Check(); !hung.ok()) {
    tool.set_problem(std::string(hung.message()));
    return asked;
  }
  // Who cannot be ended says its number there first.
  const auto said_pid = MakeOutputMemory("pid", kPidBytesMax);
  const Descriptor passed(said_pid.ok() ? ::fcntl(said_pid->get(), F_DUPFD_CLOEXEC, kAboveGiven)
                                        : -1);
  SpawnOptions describe{.arguments = options_.command, .pass_as_3 = passed.get()};
  describe.arguments.push_back(tool.path());
  const auto answer = runner_->Run(describe, kLimitMs);
  if (absl::IsDeadlineExceeded(answer.status())) {
    int32_t pid = -1;
    const std::string digits = said_pid.ok() ? ReadOutputMemory(said_pid->get(), kPidBytesMax) : "";
    if (absl::SimpleAtoi(digits, &pid) && pid > 0) hung_.Remember(pid);
    asked.in_time = false;
    tool.set_detail(absl::StrCat("the driver did not answer within ", kLimitMs / 1000,
                                 " s; recordings may begin without samples of devices"));
  } else if (!answer.ok()) {
    tool.set_problem(std::string(answer.status().message()));
  } else {
    Take(*answer, &tool);
  }
  return asked;
}

}  // namespace syncline::agent
